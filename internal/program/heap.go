package program

import (
	"os"
	"runtime/debug"
	"time"
)

// heapFloor is memory that is never touched, so it occupies only addresses. The garbage collector
// counts it as live.
var heapFloor []byte

// heapGrowth is the least growth of the heap before a garbage collection.
const heapGrowth = 32 << 20

// heapPercent is how much the heap grows with long-lived data before a garbage collection, in
// percent of that data. Go's default is 100.
const heapPercent = 50

// raiseHeap makes garbage collections rarer while little memory is live, and more frequent when much
// is. GOGC or GOMEMLIMIT override it. By default the collector runs after each doubling of the heap.
// With cgo the cache and the memtables lie outside of Go's heap, which then has 5 MB of live data.
// 50,000 calls a second fill that 25 times a second, and each collection costs more than it frees.
// GOGC does not help: it is a factor, and would apply to a large heap as well. With a growth of 32
// MB GetItem takes a seventh less CPU at 64 connections, and its p99 is half; PutItem takes a tenth
// less.
//
// Without cgo the cache and the memtables lie on the heap. Under load 190 MB are live, and with a
// doubling the program took 385 MB. With a growth by half it takes 285 MB, and no more CPU that can
// be measured, since the collector does not look into the cache and the memtables.
//
// With a database in memory, whose data is on the heap, the heap may double and has no limit. With a
// growth by half, calls took a fifth more CPU. Beyond a limit the collector would run without end:
// GetItem took twelve times the CPU.
func raiseHeap(cache int64, inMemory bool) {
	if inMemory {
		setHeap(100)
	} else if setHeap(heapPercent) {
		debug.SetMemoryLimit(cache + besideCache)
	}
}

// holdHeap is raiseHeap for a process with much long-lived data, such as a million deadlines.
func holdHeap() { setHeap(heapPercent) }

// setHeap has the collector run when the heap has grown by a percentage of its live data and by
// heapGrowth. It does nothing and returns false if the environment configures the collector.
func setHeap(percent int) bool {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return false
	}
	if size := heapGrowth * 100 / percent; len(heapFloor) != size {
		heapFloor = make([]byte, size)
	}
	debug.SetGCPercent(percent)
	return true
}

// besideCache is the memory beyond the store's cache at which collections become more frequent: 96
// MB of memtables, the floor, and room for the garbage of calls. The limit is soft, as live data
// stays. With 80 MB less, the live data of a busy server would be above it at times.
const besideCache = 256 << 20

// startEnds is the time after which the start of a server is over. Raising the heap takes a garbage
// collection, which would be a fifth of the start.
const startEnds = time.Second

// afterStart returns a timer that fires when the start is over. It raises the heap then, and gives
// the start's own memory back. The caller stops the timer before it ends.
func afterStart(cache int64, inMemory bool) *time.Timer {
	return time.AfterFunc(startEnds, func() {
		raiseHeap(cache, inMemory)
		dropStartPages()
	})
}
