package kv

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// reserveName is the file whose only purpose is to be removed when the disk is full.
const reserveName = "RESERVE"

// reserve holds disk space back for the time when there is no other.
type reserve struct {
	fs   FS // the plain file system: the wrapped one blocks while the reserve is given up
	dir  string
	size int64 // 0: there is none
	log  *slog.Logger
	full atomic.Bool // the disk was full, and the reserve has not been restored since
	mu   sync.Mutex  // guards the file
}

// newReserve makes the reserve of a directory. A disk that has no room for it counts as full from the start.
func newReserve(opts Options, log *slog.Logger) *reserve {
	r := &reserve{fs: opts.FS, dir: opts.Dir, size: opts.ReserveBytes, log: log}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.createLocked(); err != nil {
		r.full.Store(true)
		r.log.Warn("no room for the reserve file", "bytes", r.size, "error", err)
	}
	return r
}

func (r *reserve) path() string { return r.fs.PathJoin(r.dir, reserveName) }

// wrap makes a file system that gives the reserve up at the first write that finds the disk full, and tries that write again.
func (r *reserve) wrap(fs FS) FS { return vfs.OnDiskFull(fs, r.giveUp) }

// giveUp removes the reserve. It runs while all writes wait for it.
func (r *reserve) giveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.full.Swap(true) {
		r.log.Error("disk is full: giving up the reserve file", "bytes", r.size)
	}
	if r.size > 0 {
		_ = r.fs.Remove(r.path()) // already gone after an earlier full disk
	}
}

// createLocked makes the file with its space really allocated, so that removing it really frees some. An existing file is kept if its
// length shows that it was written; one that was only allocated has no length, and making it anew is cheap.
func (r *reserve) createLocked() error {
	if r.size == 0 {
		return nil
	}
	if info, err := r.fs.Stat(r.path()); err == nil && info.Size() == r.size {
		return nil
	}
	f, err := r.fs.Create(r.path(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create reserve file: %w", err)
	}
	err = r.fill(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = r.fs.Remove(r.path()) // half a reserve would be taken for none at the next start anyway
		return fmt.Errorf("allocate reserve file: %w", err)
	}
	return nil
}

// fill takes the file's space from the disk: by asking for it where the system can, else by writing bytes that do not compress.
func (r *reserve) fill(f vfs.File) error {
	if runtime.GOOS == "linux" && f.Fd() != vfs.InvalidFd && f.Preallocate(0, r.size) == nil {
		return f.Sync()
	}
	block := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{})
	for left := r.size; left > 0; {
		_, _ = random.Read(block) // never fails
		n, err := f.Write(block[:min(left, int64(len(block)))])
		if err != nil {
			return err
		}
		left -= int64(n)
	}
	return f.Sync()
}

// Full reports whether the disk has been full and the reserve has not been restored since. Writes that grow data are then to be refused.
func (db *DB) Full() bool { return db.reserve.full.Load() }

// TryRestore takes the reserve back when the disk has room for it and as much again, and reports whether the store is whole. It
// costs one question to the file system while there is no room.
func (db *DB) TryRestore() bool {
	r := db.reserve
	if !r.full.Load() {
		return true
	}
	usage, err := r.fs.GetDiskUsage(r.dir)
	if err == nil && usage.AvailBytes < 2*uint64(r.size) {
		return false
	}
	// Under the lock, so that a disk that fills up again meanwhile finds either no reserve and full set, or both as they were at first.
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.full.Load() {
		return true // another call was first
	}
	if err := r.createLocked(); err != nil {
		return false
	}
	r.full.Store(false)
	r.log.Info("disk has room again: reserve file restored", "bytes", r.size)
	return true
}
