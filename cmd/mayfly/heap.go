package main

import (
	"os"
	"runtime/debug"
)

// heapFloor is memory that is never touched, so that it takes addresses and nothing else. To the collector it is live.
var heapFloor []byte

// heapFloorBytes lets the heap grow by so much and by what is live before the collector runs.
const heapFloorBytes = 32 << 20

// raiseHeap makes the garbage collector run less often while little is live, and more often where the heap would take far more than the store's cache,
// of so many bytes, needs; unless GOGC or GOMEMLIMIT say when it shall. It runs whenever the heap has doubled. With cgo the cache and the memtables lie
// outside of Go's heap, so that is 5 MB, which 50,000 calls a second fill 25 times a second; each run then costs more than it frees. (Without cgo they lie
// on it, and a store in use needs no floor.) GOGC is no way out: it is a factor, and would apply to a large heap as well. With a floor of 32 MB GetItem
// takes a seventh less CPU at 64 connections, and its p99 is half; PutItem takes a tenth less.
//
// A database in memory has no limit: its data is on the heap, and beyond the limit the collector would run without end. GetItem took twelve times the
// CPU then.
func raiseHeap(cache int64, inMemory bool) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if heapFloor == nil {
		heapFloor = make([]byte, heapFloorBytes)
	}
	if !inMemory {
		debug.SetMemoryLimit(cache + besideCache)
	}
}

// besideCache is how much memory may be taken beside the store's cache before the collector runs more often than the heap's growth asks: 96 MB of
// memtables, the floor, and room for what calls leave behind. Without cgo, cache and memtables lie on the heap, which may then double: the program took
// 490 MB with a cache of 64 MB. A limit is soft: what
// is live stays. At 288 MB it took 345 MB, and UpdateItem a fifth more CPU.
const besideCache = 320 << 20

// holdHeap is raiseHeap for a process in which most of what is live stays, as a million deadlines do: the heap may grow by half of it before the collector runs, and not by all of it.
func holdHeap() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if heapFloor == nil {
		heapFloor = make([]byte, heapFloorBytes)
	}
	debug.SetGCPercent(50)
}
