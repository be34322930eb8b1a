package sim

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
)

// memoryMost is the memory in bytes beyond which the garbage collector runs during an episode. An
// episode takes a fraction of it.
const memoryMost = 2 << 30

// Child runs an episode in this process, writes its Result as a line of JSON, and ends the process.
// Its exit code is 1 if a law is broken. args are the last ones of the command line that Run has
// made. Child returns only if they are wrong.
//
// testing/synctest wants a test, so this process becomes a test binary with one test. One goroutine
// runs at a time, without the garbage collector, so that an episode depends on as little as possible
// besides its seed.
func Child(args []string, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("%d arguments, want the seed and the episode", len(args))
	}
	seed, wrongSeed := strconv.ParseUint(args[0], 10, 64)
	number, wrongNumber := strconv.ParseUint(args[1], 10, 64)
	if err := errors.Join(wrongSeed, wrongNumber); err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memoryMost)
	tests := []testing.InternalTest{{Name: "episode", F: func(t *testing.T) {
		var r Result
		cryptotest.SetGlobalRandom(t, seed^number)
		synctest.Test(t, func(*testing.T) { r = runEpisode(seed, number) })
		if len(r.Violations) > 0 {
			t.Fail()
		}
		if err := json.NewEncoder(out).Encode(r); err != nil {
			t.Error(err)
		}
	}}}
	// testing.Main reads flags; there are none
	os.Args = os.Args[:1]
	flag.CommandLine = flag.NewFlagSet(os.Args[0], flag.ContinueOnError)
	testing.Init()
	testing.Main(func(_, _ string) (bool, error) { return true, nil }, tests, nil, nil)
	return nil
}
