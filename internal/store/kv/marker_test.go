package kv

import "testing"

// A disk may keep a directory entry that was made later and lose one that was made before, where
// nothing synced the directory in between. Whichever it keeps of a new store's files, or of those
// that a flush makes, the directory opens.
func TestEntriesOutOfOrder(t *testing.T) {
	for k := int64(0); k < 90; k++ {
		for seed := range uint64(8) {
			disk := NewCrashFS()
			disk.KeepUnsynced(50, seed)
			disk.CutAfter(k)
			if db, err := Open(crashOpts(disk)); err == nil {
				b := db.NewBatch()
				b.Set([]byte("a"), []byte("1"))
				_ = db.Apply(b) // whatever comes after the cut fails
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
