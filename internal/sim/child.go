package sim

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"flag"
	"io"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
)

// memoryMost is the memory in bytes beyond which the garbage collector runs during an episode. An
// episode takes a fraction of it.
const memoryMost = 2 << 30

// Child runs an episode in this process, writes its Result as a line of JSON, and ends the process.
// Its exit code is 1 if a law is broken.
//
// testing/synctest wants a test, so this process becomes a test binary with one test. One goroutine
// runs at a time, without the garbage collector, so that an episode depends on as little as possible
// besides its seed.
func Child(seed, number uint64, out io.Writer) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], number)
	rand.Reader = &random{source: mathrand.NewChaCha8(key)} // the database draws the names of tables from it
	debug.SetMemoryLimit(memoryMost)
	tests := []testing.InternalTest{{Name: "episode", F: func(t *testing.T) {
		var r Result
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
}

// random is a source of random numbers for all goroutines.
type random struct {
	mu     sync.Mutex
	source *mathrand.ChaCha8 // guarded by mu
}

func (r *random) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(p)
}
