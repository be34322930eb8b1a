package kv

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly/internal/testkit"
)

// crashOpts are options under which a little work goes through memtables, flushes and log rotation.
func crashOpts(fs FS) Options {
	return Options{FS: fs, MemTableBytes: 256 << 10, CacheBytes: 1 << 20}
}

// batchOf returns batch n of a writer: three keys with the value n.
func batchOf(writer, n int) []string {
	value := fmt.Sprintf("%d %s", n, strings.Repeat(string(rune('a'+n%26)), 20_000))
	return []string{
		fmt.Sprintf("%d/x=%s", writer, value),
		fmt.Sprintf("%d/y=%s", writer, value),
		fmt.Sprintf("%d/z/%03d=%s", writer, n, value),
	}
}

// work writes batches from two goroutines until one fails, and returns the number of the last
// acknowledged batch of each, or -1.
func work(fs FS) (acknowledged [2]int, err error) {
	acknowledged = [2]int{-1, -1}
	db, err := Open(crashOpts(fs))
	if err != nil {
		return acknowledged, err
	}
	var writers sync.WaitGroup
	var errs [2]error
	for writer := range acknowledged {
		writers.Go(func() {
			for n := range 12 {
				if errs[writer] = write(db, batchOf(writer, n)...); errs[writer] != nil {
					return
				}
				acknowledged[writer] = n
			}
		})
	}
	writers.Wait()
	return acknowledged, errors.Join(errs[0], errs[1], db.Close())
}

// check opens a disk after a crash: every acknowledged batch must exist, and none in part.
func check(t *testing.T, fs FS, acknowledged [2]int) {
	t.Helper()
	db, err := Open(crashOpts(fs))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for writer, last := range acknowledged {
		x, y := get(t, db, fmt.Sprintf("%d/x", writer)), get(t, db, fmt.Sprintf("%d/y", writer))
		if x != y {
			t.Errorf("writer %d: half a batch: x is %.3q, y is %.3q", writer, x, y)
		}
		found := -1
		if x != "-" {
			_, _ = fmt.Sscanf(x, "%d", &found)
		}
		if found < last {
			t.Errorf("writer %d: batch %d was acknowledged, but %d is the last", writer, last, found)
		}
		if rows := list(t, db, fmt.Sprintf("%d/z/", writer), fmt.Sprintf("%d/z0", writer)); len(rows) != found+1 {
			t.Errorf("writer %d: %d rows after batch %d", writer, len(rows), found)
		}
	}
	mustWrite(t, db, "after=1")
}

// Acknowledged batches survive a crash at any write or sync, and a batch exists as a whole or not
// at all, whichever unsynced blocks the disk has kept.
func TestNothingLost(t *testing.T) {
	for percent, step := range map[int]int64{0: testkit.Size[int64](3, 1), 50: testkit.Size[int64](7, 3)} {
		t.Run(fmt.Sprintf("%d%% of unsynced kept", percent), func(t *testing.T) {
			if testing.Short() {
				step *= 10
			}
			for k := int64(0); ; k += step {
				disk := NewCrashFS()
				disk.KeepUnsynced(percent, uint64(k))
				disk.CutAfter(k)
				// a cut of the removal of an obsolete file may go unnoticed
				acknowledged, _ := work(disk)
				cut := disk.WasCut()
				check(t, disk.AfterCrash(), acknowledged)
				if t.Failed() {
					t.Fatalf("cut after %d operations, acknowledged %v", k, acknowledged)
				}
				if !cut {
					return
				}
			}
		})
	}
}

// A crash during recovery loses nothing either.
func TestCrashTwice(t *testing.T) {
	disk := NewCrashFS()
	disk.CutAfter(60)
	acknowledged, _ := work(disk)
	for k := int64(0); k < 60; k += 3 {
		again := disk.AfterCrash()
		again.CutAfter(k)
		if db, err := Open(crashOpts(again)); err == nil {
			db.Close()
		}
		check(t, again.AfterCrash(), acknowledged)
	}
}

// An applied batch is visible, but not yet on disk.
func TestAppliedIsNotDurable(t *testing.T) {
	disk := NewCrashFS()
	db := open(t, Options{FS: disk, Durability: Async})
	mustWrite(t, db, "a=1")
	if got := get(t, db, "a"); got != "1" {
		t.Errorf("a is %q", got)
	}
	after := open(t, Options{FS: disk.AfterCrash()})
	equal(t, list(t, after, "", ""))
}

// Operations after the cut fail, and the disk then holds the synced data.
func TestCrashFS(t *testing.T) {
	disk := NewCrashFS()
	if err := disk.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := disk.OpenDir("d")
	if err != nil {
		t.Fatal(err)
	}
	f, err := disk.Create("d/f", "")
	if err != nil {
		t.Fatal(err)
	}
	root, err := disk.OpenDir("")
	if err != nil {
		t.Fatal(err)
	}
	put := func(text string) error { _, err := f.Write([]byte(text)); return err }
	if err := errors.Join(root.Sync(), dir.Sync(), put("one"), f.Sync(), put("two")); err != nil {
		t.Fatal(err)
	}
	disk.CutAfter(disk.Ops())
	if disk.WasCut() {
		t.Error("cut before the next operation")
	}
	for name, err := range map[string]error{
		"write": put("three"), "sync": f.Sync(), "sync data": f.SyncData(), "remove": disk.Remove("d/f"), "rename": disk.Rename("d/f", "d/g"),
		"link": disk.Link("d/f", "d/g"), "mkdir": disk.MkdirAll("e", 0o755), "remove all": disk.RemoveAll("d"),
	} {
		if !errors.Is(err, ErrCut) {
			t.Errorf("%s after the cut: %v", name, err)
		}
	}
	if _, err := disk.Create("d/g", ""); !errors.Is(err, ErrCut) {
		t.Errorf("create after the cut: %v", err)
	}
	info, err := disk.AfterCrash().Stat("d/f")
	if err != nil || info.Size() != 3 {
		t.Errorf("after the crash: %v, %v", info, err)
	}
}
