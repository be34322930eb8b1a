package program

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// The collector lets the heap grow by the floor, which raiseHeap keeps, and to its limit.
func TestRaiseHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	none := debug.SetMemoryLimit(-1)
	raiseHeap(1<<30, true)
	if limit := debug.SetMemoryLimit(-1); limit != none {
		t.Errorf("with the data in memory, the collector has a limit of %d MB", limit>>20)
	}
	raiseHeap(1<<30, false)
	if len(heapFloor) != heapFloorBytes {
		t.Fatalf("the floor has %d bytes", len(heapFloor))
	}
	if limit := debug.SetMemoryLimit(-1); limit != 1<<30+besideCache {
		t.Errorf("the collector lets it grow to %d MB", limit>>20)
	}
	runtime.GC()
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(goal)
	if got := goal[0].Value.Uint64(); got < 2*heapFloorBytes {
		t.Errorf("the heap may grow to %d MB", got>>20)
	}
}
