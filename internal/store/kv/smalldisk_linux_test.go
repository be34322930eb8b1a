package kv

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// realDisk returns options for a directory on a disk of so many bytes: a real one if this process
// may mount it, otherwise one in memory.
func realDisk(t *testing.T, size int64) Options {
	t.Helper()
	mount := t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Logf("a disk in memory stands in for a real one: %v", err)
		return Options{FS: newSmallDisk(size), ReserveBytes: max(size/12, leastReserve)}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return Options{Dir: filepath.Join(mount, "data")}
}

// A real disk heals too: the smallest supported one, and a larger one with larger memtables.
func TestRealDiskHeals(t *testing.T) {
	sizes := []int64{smallestDisk, 160 << 20}
	if testing.Short() { // as in survives
		sizes = sizes[:1]
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size>>20), func(t *testing.T) { survives(t, realDisk(t, size)) })
	}
}

// occupied returns the bytes that the files of a directory take on the disk.
func occupied(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		var stat unix.Stat_t
		switch err := unix.Stat(filepath.Join(dir, entry.Name()), &stat); {
		case err == nil:
			bytes += stat.Blocks * 512
		case !os.IsNotExist(err): // a compaction has removed it meanwhile
			t.Fatal(err)
		}
	}
	return bytes
}

// A new store takes at most 20 MB on the disk, and one with 10 MB of items at most 60 MB, also with
// an index and a stream beside them.
func TestFootprint(t *testing.T) {
	dir := t.TempDir()
	db := open(t, Options{Dir: dir})
	if db.Full() {
		t.Fatal("no room here for a store")
	}
	if got := occupied(t, dir); got > 20<<20 {
		t.Errorf("a new store takes %d MB", got>>20)
	}
	largest := int64(0)
	for n := range 1000 {
		value := noise(n, 10_000)
		if err := write(db, fmt.Sprintf("item%06d=%s", n, value), fmt.Sprintf("record%06d=%s", n, value)); err != nil {
			t.Fatal(err)
		}
		largest = max(largest, occupied(t, dir))
	}
	db.background.work.Wait() // the reserve fits
	largest = max(largest, occupied(t, dir))
	t.Logf("%d MB", largest>>20)
	if largest > 60<<20 {
		t.Errorf("with 10 MB of items the store takes %d MB", largest>>20)
	}
}
