package main

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

// The collector lets the heap grow by the floor, which raiseHeap keeps.
func TestRaiseHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	raiseHeap()
	if len(heapFloor) != heapFloorBytes {
		t.Fatalf("the floor has %d bytes", len(heapFloor))
	}
	runtime.GC()
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(goal)
	if got := goal[0].Value.Uint64(); got < 2*heapFloorBytes {
		t.Errorf("the heap may grow to %d MB", got>>20)
	}
}
