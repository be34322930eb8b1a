package guardsim

import (
	"os"
	"runtime"
	"testing"
)

// TestMain has the tests use one processor. Go 1.26's race detector has one context for all timers of a
// bubble; it crashes or reports races that do not exist if goroutines on two processors receive from
// expired timers at once.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}
