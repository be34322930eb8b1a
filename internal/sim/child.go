package sim

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// memoryMost is the memory in bytes beyond which the garbage collector runs during an episode. An
// episode takes a fraction of it.
const memoryMost = 2 << 30

// Child runs episodes in this process, writes the Result of each as a line of JSON, and ends the
// process. Its exit code is 1 if a law is broken.
//
// testing/synctest wants a test, so this process becomes a test binary with one test. One goroutine
// runs at a time, and the garbage collector runs between episodes only, so that an episode depends
// on as little as possible besides its seed.
func Child(seed, first uint64, count int, out io.Writer) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memoryMost)
	var tests []testing.InternalTest
	for n := range uint64(count) {
		tests = append(tests, testing.InternalTest{Name: "episode", F: func(t *testing.T) {
			began := time.Now()
			var r Result
			synctest.Test(t, func(*testing.T) { r = runEpisode(seed, first+n) })
			r.Seconds = time.Since(began).Seconds()
			if len(r.Violations) > 0 {
				t.Fail()
			}
			if err := json.NewEncoder(out).Encode(r); err != nil {
				t.Error(err)
			}
			runtime.GC()
		}})
	}
	// testing.Main reads flags; there are none
	os.Args = os.Args[:1]
	flag.CommandLine = flag.NewFlagSet(os.Args[0], flag.ContinueOnError)
	testing.Init()
	testing.Main(func(_, _ string) (bool, error) { return true, nil }, tests, nil, nil)
}
