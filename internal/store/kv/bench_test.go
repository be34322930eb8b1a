package kv

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkCommit writes batches of three keys, 400 bytes each, and waits for the disk, from as
// many writers.
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 64} {
		for _, d := range []Durability{Sync, Async, Memory} {
			b.Run(fmt.Sprintf("%v/writers=%d", d, writers), func(b *testing.B) {
				db := openBench(b, Options{Dir: b.TempDir(), Durability: d, ReserveBytes: -1})
				value := make([]byte, 400)
				b.SetParallelism(writers)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					key := make([]byte, 17)
					for pb.Next() {
						batch := db.NewBatch()
						binary.BigEndian.PutUint64(key[1:], rand.Uint64())
						for space := range byte(3) {
							key[0] = space
							batch.Set(key, value)
						}
						if err := db.Apply(batch); err != nil {
							b.Fatal(err)
						}
						if err := db.Wait(batch); err != nil {
							b.Fatal(err)
						}
						batch.Close()
					}
				})
			})
		}
	}
}

// BenchmarkGet reads keys at random from 100,000 of 400 bytes that have been flushed.
func BenchmarkGet(b *testing.B) {
	db := openBench(b, Options{Durability: Memory})
	const keys = 100_000
	for n := range keys {
		batch := db.NewBatch()
		batch.Set(binary.BigEndian.AppendUint64(nil, uint64(n)), make([]byte, 400))
		if err := db.Apply(batch); err != nil {
			b.Fatal(err)
		}
		batch.Close()
	}
	if err := db.Flush(); err != nil {
		b.Fatal(err)
	}
	key := make([]byte, 8)
	b.ReportAllocs()
	for b.Loop() {
		binary.BigEndian.PutUint64(key, rand.Uint64N(keys))
		_, closer, err := db.Get(key)
		if err != nil {
			b.Fatal(err)
		}
		closer.Close()
	}
}

func openBench(b *testing.B, opts Options) *DB {
	b.Helper()
	db, err := Open(opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return db
}
