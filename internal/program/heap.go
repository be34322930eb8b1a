package program

import (
	"os"
	"runtime/debug"
	"time"
)

// heapFloor is memory that is never touched, so it occupies only addresses. The garbage collector
// counts it as live.
var heapFloor []byte

// heapFloorBytes is the growth of the heap, besides the size of live data, before a garbage
// collection.
const heapFloorBytes = 32 << 20

// raiseHeap makes garbage collections rarer while little memory is live, and more frequent when the
// heap grows far beyond the store's cache. GOGC or GOMEMLIMIT override it. The collector runs after
// each doubling of the heap. With cgo the cache and the memtables lie outside of Go's heap, which
// then has 5 MB of live data. 50,000 calls a second fill that 25 times a second, and each
// collection costs more than it frees. (Without cgo they lie on the heap, and a store in use needs
// no floor.) GOGC does not help: it is a factor, and would apply to a large heap as well. With a
// floor of 32 MB GetItem takes a seventh less CPU at 64 connections, and its p99 is half; PutItem
// takes a tenth less.
//
// A database in memory has no limit: its data is on the heap, and beyond the limit the collector
// would run without end. GetItem took twelve times the CPU then.
func raiseHeap(cache int64, inMemory bool) {
	if addFloor() && !inMemory {
		debug.SetMemoryLimit(cache + besideCache)
	}
}

// addFloor raises the heap's floor, unless the environment configures the collector.
func addFloor() bool {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return false
	}
	if heapFloor == nil {
		heapFloor = make([]byte, heapFloorBytes)
	}
	return true
}

// besideCache is the memory beyond the store's cache at which collections become more frequent: 96
// MB of memtables, the floor, and room for the garbage of calls. Without cgo, cache and memtables
// lie on the heap, which may then double: the program took 490 MB with a cache of 64 MB. The limit
// is soft, as live data stays. At 288 MB the program took 345 MB, and UpdateItem a fifth more CPU.
const besideCache = 320 << 20

// startEnds is the time after which the start of a server is over. Raising the heap takes a garbage
// collection, which would be a fifth of the start.
const startEnds = time.Second

// afterStart raises the heap, and gives up the memory that only the start has used, when the start
// is over. The caller stops the timer before it ends.
func afterStart(cache int64, inMemory bool) *time.Timer {
	return time.AfterFunc(startEnds, func() {
		raiseHeap(cache, inMemory)
		dropStartPages()
	})
}

// holdHeap is raiseHeap for a process with much long-lived data, such as a million deadlines. The
// collector runs after the heap has grown by half, not after it has doubled.
func holdHeap() {
	if addFloor() {
		debug.SetGCPercent(50)
	}
}
