package kv

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrCut is the error of every change of a CrashFS after its cut.
var ErrCut = errors.New("power was cut")

// CrashFS is a file system in memory whose power can be cut. Each change (a write, a sync, a file
// created, renamed or removed) is one operation. The first operation after the cut, and all later
// ones, return ErrCut. AfterCrash then returns the content of the disk: all synced data, and
// nothing or a part of the rest.
//
// A crash test cuts at every k in turn:
//
//	for k := int64(0); ; k++ {
//		disk := kv.NewCrashFS()
//		disk.CutAfter(k)
//		acknowledged := work(disk) // until it fails or ends
//		done := !disk.WasCut()     // the work has fewer operations than k
//		check(disk.AfterCrash(), acknowledged)
//		if done {
//			break
//		}
//	}
//
// CrashFS and its files implement vfs.FS and vfs.File.
type CrashFS struct {
	FS
	// BeforeSync is called before each sync of a file or directory, in the goroutine that syncs.
	// Its error replaces the sync. Nil: not called. Set it before the first operation.
	BeforeSync func(name string) error
	// Room bounds what can be written. A log that is reused frees its old content. Nil: no bound. Set
	// it before the first operation.
	Room *Room

	mem  *vfs.MemFS
	ops  atomic.Int64 // operations begun
	cut  atomic.Int64 // the number of operations allowed; negative: all
	part struct {
		percent int
		seed    uint64
	}
	mu struct {
		// read-locked during every operation, locked while the state at the cut is copied
		sync.RWMutex
		after *vfs.MemFS // the state at the cut; nil before it
	}
}

// NewCrashFS returns an empty file system that is never cut.
func NewCrashFS() *CrashFS { return newCrashFS(vfs.NewCrashableMem()) }

func newCrashFS(mem *vfs.MemFS) *CrashFS {
	c := &CrashFS{FS: mem, mem: mem}
	c.cut.Store(-1)
	return c
}

// CutAfter allows k operations, counted from the first one of this file system; negative: all of
// them.
func (c *CrashFS) CutAfter(k int64) { c.cut.Store(k) }

// CutNow cuts the power at this moment.
func (c *CrashFS) CutNow() {
	c.cut.Store(0)
	c.takeState()
}

// KeepUnsynced makes AfterCrash keep each unsynced block and directory entry with a probability of
// percent, as a disk may. By default it keeps none. Call it before the cut.
func (c *CrashFS) KeepUnsynced(percent int, seed uint64) { c.part.percent, c.part.seed = percent, seed }

// Ops returns the number of operations begun.
func (c *CrashFS) Ops() int64 { return c.ops.Load() }

// WasCut reports whether the cut has happened, also by AfterCrash.
func (c *CrashFS) WasCut() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.mu.after != nil
}

// AfterCrash returns the disk after the cut, itself a CrashFS that can be cut again. Without an
// earlier cut it cuts now. Every call returns an equal disk of its own.
func (c *CrashFS) AfterCrash() *CrashFS {
	// everything that survived a crash is synced, so this copies all of it
	return newCrashFS(c.takeState().CrashClone(vfs.CrashCloneCfg{}))
}

// takeState copies the disk once, at the cut. It waits for the operations that began before.
func (c *CrashFS) takeState() *vfs.MemFS {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.after == nil {
		c.mu.after = c.mem.CrashClone(vfs.CrashCloneCfg{
			UnsyncedDataPercent: c.part.percent,
			RNG:                 rand.New(rand.NewPCG(c.part.seed, 0)),
		})
	}
	return c.mu.after
}

// do performs one operation, or fails it if the power is cut.
func (c *CrashFS) do(op func() error) error {
	c.mu.RLock()
	n, cut := c.ops.Add(1), c.cut.Load()
	if c.mu.after == nil && (cut < 0 || n <= cut) {
		defer c.mu.RUnlock() // no cut copies half of the operation
		return op()
	}
	c.mu.RUnlock()
	c.takeState()
	return ErrCut
}

// file performs an operation that creates a file.
func (c *CrashFS) file(name string, make func() (vfs.File, error)) (file vfs.File, err error) {
	err = c.do(func() error {
		made, err := make()
		if err == nil {
			file = &crashFile{File: made, fs: c, name: name}
		}
		return err
	})
	return file, err
}

func (c *CrashFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return c.file(name, func() (vfs.File, error) { return c.FS.Create(name, category) })
}

func (c *CrashFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return c.file(name, func() (vfs.File, error) { return c.FS.OpenReadWrite(name, category, opts...) })
}

func (c *CrashFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return c.file(newname, func() (file vfs.File, err error) {
		err = c.free(oldname, func() error { file, err = c.FS.ReuseForWrite(oldname, newname, category); return err })
		return file, err
	})
}

// OpenDir opens a directory, which is no operation. Syncing it is one.
func (c *CrashFS) OpenDir(name string) (vfs.File, error) {
	f, err := c.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &crashFile{File: f, fs: c, name: name}, nil
}

func (c *CrashFS) Link(oldname, newname string) error {
	return c.do(func() error { return c.FS.Link(oldname, newname) })
}

func (c *CrashFS) Remove(name string) error {
	return c.do(func() error { return c.free(name, func() error { return c.FS.Remove(name) }) })
}

func (c *CrashFS) RemoveAll(name string) error {
	return c.do(func() error { return c.FS.RemoveAll(name) })
}

func (c *CrashFS) Rename(oldname, newname string) error {
	return c.do(func() error { return c.FS.Rename(oldname, newname) })
}

func (c *CrashFS) MkdirAll(dir string, perm os.FileMode) error {
	return c.do(func() error { return c.FS.MkdirAll(dir, perm) })
}

func (c *CrashFS) Unwrap() vfs.FS { return c.FS }

// crashFile is a file of a CrashFS.
type crashFile struct {
	vfs.File
	fs   *CrashFS
	name string
}

func (f *crashFile) Write(p []byte) (n int, err error) {
	err = f.fs.do(func() error { n, err = f.fs.Room.write(p, f.File.Write); return err })
	return n, err
}

func (f *crashFile) WriteAt(p []byte, offset int64) (n int, err error) {
	at := func(p []byte) (int, error) { return f.File.WriteAt(p, offset) }
	err = f.fs.do(func() error { n, err = f.fs.Room.write(p, at); return err })
	return n, err
}

func (f *crashFile) Sync() error { return f.sync(f.File.Sync) }

func (f *crashFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *crashFile) SyncTo(length int64) (fullSync bool, err error) {
	err = f.sync(func() error { fullSync, err = f.File.SyncTo(length); return err })
	return fullSync, err
}

func (f *crashFile) sync(op func() error) error {
	if before := f.fs.BeforeSync; before != nil {
		if err := before(f.name); err != nil {
			return err
		}
	}
	return f.fs.do(op)
}
