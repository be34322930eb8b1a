package kv

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// smallDisk is a file system in memory with room for so many bytes.
type smallDisk struct {
	FS
	mu struct {
		sync.Mutex
		size, used int64
	}
}

func newSmallDisk(size int64) *smallDisk {
	d := &smallDisk{FS: vfs.NewMem()}
	d.mu.size = size
	return d
}

// take uses n bytes, or returns an error if too few are free.
func (d *smallDisk) take(n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.used+n > d.mu.size {
		return syscall.ENOSPC
	}
	d.mu.used += n
	return nil
}

func (d *smallDisk) grow(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.size += n
}

func (d *smallDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, category)
	return smallFile{f, d}, err
}

// ReuseForWrite makes a new file, so that every byte written counts.
func (d *smallDisk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.Remove(oldname); err != nil {
		return nil, err
	}
	return d.Create(newname, category)
}

func (d *smallDisk) Remove(name string) error {
	info, err := d.Stat(name)
	if err == nil {
		err = d.FS.Remove(name)
	}
	if err == nil && !info.IsDir() {
		_ = d.take(-info.Size())
	}
	return err
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return vfs.DiskUsage{AvailBytes: uint64(d.mu.size - d.mu.used), TotalBytes: uint64(d.mu.size), UsedBytes: uint64(d.mu.used)}, nil
}

type smallFile struct {
	vfs.File
	disk *smallDisk
}

func (f smallFile) Write(p []byte) (int, error) {
	if err := f.disk.take(int64(len(p))); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// fill writes batches from number next on, until the function stops it or a write fails. It returns
// the number of the last acknowledged batch.
func fill(db *DB, next int, until func() bool) (last int, err error) {
	for n := next; n < 10_000; n++ {
		if until() {
			return n - 1, nil
		}
		if err := write(db, batchOf(0, n)...); err != nil {
			return n - 1, err
		}
	}
	return 0, errors.New("the disk never got full")
}

// On a full disk the store removes the reserve, and the write that found the disk full succeeds.
// Deletes continue. Once there is room the reserve is restored.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newSmallDisk(3 << 20)
		opts := crashOpts(disk)
		opts.ReserveBytes = 1 << 20
		db, err := Open(opts)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if db.Full() || !db.TryRestore() {
			t.Error("full from the start")
		}
		last := -1
		for db.TryRestore() { // the end of a compaction may make room once more
			if last, err = fill(db, last+1, db.Full); err != nil {
				t.Fatalf("with a reserve: %v", err)
			}
			synctest.Wait()
		}
		if _, err := disk.Stat("data/RESERVE"); err == nil {
			t.Error("the reserve is still there")
		}
		if !db.Metrics().ReserveGivenUp {
			t.Error("the metrics do not tell")
		}
		for n := range last {
			mustWrite(t, db, fmt.Sprintf("0/z/%03d", n))
		}
		disk.grow(64 << 20)
		if !db.TryRestore() || db.Full() {
			t.Error("not restored with room for it")
		}
		if info, err := disk.Stat("data/RESERVE"); err != nil || info.Size() != 1<<20 {
			t.Errorf("the reserve is %v, %v", info, err)
		}
		mustWrite(t, db, "a=1")
		if got := get(t, db, fmt.Sprintf("0/z/%03d", last)); !strings.HasPrefix(got, fmt.Sprint(last)) {
			t.Errorf("row %d is %.5q", last, got)
		}
	})
}

// A full disk without reserve stops the store when the log cannot grow. Every acknowledged write
// exists once there is room again.
func TestDiskFullWithoutReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newSmallDisk(2 << 20)
		db, err := Open(crashOpts(disk))
		if err != nil {
			t.Fatal(err)
		}
		last, err := fill(db, 0, func() bool { return false })
		if !errors.Is(err, ErrStopped) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("stopped with %v", err)
		}
		if err := db.Close(); !errors.Is(err, ErrStopped) {
			t.Errorf("close: %v", err)
		}
		if db, err := Open(crashOpts(disk)); err == nil {
			db.Close()
		} else if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("open on a full disk: %v", err)
		}
		disk.grow(64 << 20)
		check(t, disk, [2]int{last, -1})
	})
}

// A disk too small for the reserve counts as full from the start, and still opens.
func TestNoRoomForReserve(t *testing.T) {
	disk := newSmallDisk(1 << 20)
	opts := crashOpts(disk)
	opts.ReserveBytes = 2 << 20
	db := open(t, opts)
	if !db.Full() {
		t.Error("not full")
	}
	if _, err := disk.Stat("data/RESERVE"); err == nil {
		t.Error("half a reserve was left")
	}
	mustWrite(t, db, "a=1")
	disk.grow(8 << 20)
	if !db.TryRestore() {
		t.Error("not restored")
	}
}

// A directory that cannot be opened because the disk is full returns ErrNoSpace, and opens with all
// its data once there is room.
func TestOpenOnFullDisk(t *testing.T) {
	disk := newSmallDisk(1 << 20)
	db, err := Open(crashOpts(disk))
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db, "a=1")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	disk.grow(-1 << 20)
	if db, err := Open(crashOpts(disk)); !errors.Is(err, ErrNoSpace) {
		t.Errorf("opened with %v, %v", db, err)
	}
	disk.grow(1 << 20)
	if got := get(t, open(t, crashOpts(disk)), "a"); got != "1" {
		t.Errorf("a is %q", got)
	}
}
