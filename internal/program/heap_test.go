package program

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// The collector lets the heap grow by 32 MB at least and to its limit. With the data on disk, it collects more often.
func TestRaiseHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	defer debug.SetGCPercent(debug.SetGCPercent(70))
	none := debug.SetMemoryLimit(-1)
	raiseHeap(1<<30, true)
	if limit := debug.SetMemoryLimit(-1); limit != none {
		t.Errorf("with the data in memory, the collector has a limit of %d MB", limit>>20)
	}
	if percent := debug.SetGCPercent(100); percent != 100 {
		t.Errorf("with the data in memory, the heap grows by %d percent", percent)
	}
	raiseHeap(1<<30, false)
	if limit := debug.SetMemoryLimit(-1); limit != 1<<30+besideCache {
		t.Errorf("the collector lets it grow to %d MB", limit>>20)
	}
	if percent := debug.SetGCPercent(heapPercent); percent != heapPercent {
		t.Errorf("the heap grows by %d percent", percent)
	}
	runtime.GC()
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(goal)
	if got := goal[0].Value.Uint64(); got < 3*heapGrowth {
		t.Errorf("the heap may grow to %d MB", got>>20)
	}
}
