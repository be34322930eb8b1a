package kv

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A block with a wrong checksum is not verified again at each read, which would take long, but once
// a minute.
func TestBadBlockIsRemembered(t *testing.T) {
	opts, file := damagedStore(t, 5000)
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(opts)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		read := func() {
			it := db.NewIter(nil, nil)
			for ok := it.First(); ok; ok = it.Next() {
			}
			if err := it.Close(); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("read: %v", err)
			}
		}
		if read(); len(db.guard.bad.since) != 1 {
			t.Fatalf("%d bad blocks are known, want 1", len(db.guard.bad.since))
		}
		for block := range db.guard.bad.since {
			if err := db.guard.bad.check(file, block.offset); err == nil || block.file != file {
				t.Errorf("block %v is read again: %v", block, err)
			}
			if err := db.guard.bad.check(file, block.offset+1); err != nil {
				t.Error(err)
			}
		}
		read()
		synctest.Wait()
		time.Sleep(repeatEvery)
		for block := range db.guard.bad.since {
			if err := db.guard.bad.check(file, block.offset); err != nil {
				t.Errorf("after a minute: %v", err)
			}
		}
		if read(); len(db.guard.bad.since) != 1 {
			t.Error("the block is not bad any more")
		}
	})
}
