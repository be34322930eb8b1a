package kv

import "testing"

// Without a sync in between, a disk may keep a later directory entry and lose an earlier one. The
// directory opens with any subset of the entries of a new store, or of a flush.
func TestEntriesOutOfOrder(t *testing.T) {
	for k := range int64(90) {
		for seed := range uint64(8) {
			disk := NewCrashFS()
			disk.KeepUnsynced(50, seed)
			disk.CutAfter(k)
			if db, err := Open(crashOpts(disk)); err == nil {
				b := db.NewBatch()
				b.Set([]byte("a"), []byte("1"))
				_ = db.Apply(b) // operations after the cut fail
				_ = b.Close()
				_ = db.Flush()
				_ = db.Close()
			}
			db, err := Open(crashOpts(disk.AfterCrash()))
			if err != nil {
				t.Fatalf("cut after %d operations, seed %d: %v", k, seed, err)
			}
			db.Close()
		}
	}
}
