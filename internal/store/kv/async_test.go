package kv

import (
	"testing"
	"testing/synctest"
	"time"
)

// An unsynced write of Async mode is on disk when the window ends. Without unsynced writes nothing
// is synced.
func TestAsyncWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := NewCrashFS()
		db, err := Open(Options{FS: disk, Durability: Async, AsyncWindow: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		onDisk := func(key string) string {
			t.Helper()
			after, err := Open(Options{FS: newCrashFS(disk.mem).AfterCrash()})
			if err != nil {
				t.Fatal(err)
			}
			defer after.Close()
			return get(t, after, key)
		}
		for _, key := range []string{"a", "b"} {
			mustWrite(t, db, key+"=1")
			time.Sleep(49 * time.Millisecond)
			if onDisk(key) != "-" {
				t.Errorf("%s was synced early", key)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if onDisk(key) != "1" {
				t.Errorf("%s is not on disk at the end of the window", key)
			}
			ops := disk.Ops()
			time.Sleep(time.Hour)
			if disk.Ops() != ops {
				t.Errorf("%d operations with nothing to sync", disk.Ops()-ops)
			}
		}
		mustWrite(t, db, "c=1")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if onDisk("c") != "1" {
			t.Error("close did not sync")
		}
	})
}
