package kv

import (
	"context"
	"errors"
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

// leastReserve is the reserve of a store with small memtables. Beside a flush it leaves room for the log of deletes and for a compaction.
const leastReserve = 12 << 20

// reserve holds disk space back for the time when there is no other: what the memtables hold can be flushed, which frees their logs,
// and deletes can be logged meanwhile. So it is a third larger than the largest memtable, and grows with it.
type reserve struct {
	fs     FS // the plain file system: the wrapped one blocks while the reserve is given up
	dir    string
	most   int64 // bytes; 0: there is none
	log    *slog.Logger
	onFull func()      // starts to heal the disk
	full   atomic.Bool // the disk was full, and the reserve has not been restored since
	size   atomic.Int64
	mu     sync.Mutex // guards the file
}

// newReserve makes the reserve of a directory. A disk that has no room for it counts as full from the start.
func newReserve(opts Options, log *slog.Logger, onFull func()) *reserve {
	r := &reserve{fs: opts.FS, dir: opts.Dir, most: opts.ReserveBytes, log: log, onFull: onFull}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size.Store(min(leastReserve, r.most))
	if err := r.createLocked(); err != nil {
		r.full.Store(true)
		r.sayFull("no room for the reserve file: " + err.Error())
	}
	return r
}

func (r *reserve) path() string { return r.fs.PathJoin(r.dir, reserveName) }

// wrap returns a file system that removes the reserve when a write finds the disk full, and repeats the write.
func (r *reserve) wrap(fs FS) FS { return vfs.OnDiskFull(fs, r.giveUp) }

// giveUp removes the reserve. It runs while all writes wait for it.
func (r *reserve) giveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.full.Swap(true) {
		r.sayFull("disk is full")
	}
	if r.size.Load() > 0 {
		_ = r.fs.Remove(r.path()) // already gone after an earlier full disk
	}
	r.onFull()
}

// fit makes the reserve large enough for memtables of so many bytes: two at most, of which the first to be flushed frees its log. A disk that has no room for it counts as full.
func (r *reserve) fit(memtables int64) {
	want := min(max(memtables/3*4, leastReserve), r.most)
	if want <= r.size.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size.Store(want)
	if r.full.Load() {
		return // it is made when there is room
	}
	if err := r.createLocked(); err != nil {
		r.full.Store(true)
		r.sayFull("no room for a larger reserve file: " + err.Error())
		r.onFull()
	}
}

// sayFull logs that the disk is full, and how much room is missing.
func (r *reserve) sayFull(message string) {
	attributes := []any{"needed", r.needed()}
	if usage, err := r.fs.GetDiskUsage(r.dir); err == nil {
		attributes = append(attributes, "free", usage.AvailBytes)
	}
	r.log.Warn(message+": writes that grow the data are refused until there is room", attributes...)
}

// needed is how many bytes have to be free for the reserve to be taken back.
func (r *reserve) needed() uint64 { return 2 * uint64(r.size.Load()) }

// errNoRoom is the error of a compaction that would need what is left for the log.
var errNoRoom = errors.New("no room for a compaction on the disk")

// roomFor returns errNoRoom if less than half of the reserve's size would be free after a compaction has written n bytes. That half is
// for the log and for flushes, so a compaction never makes the disk full, and on a full disk it leaves them what the reserve gave.
func (r *reserve) roomFor(n int) error {
	if r.size.Load() == 0 {
		return nil // there is no reserve
	}
	usage, err := r.fs.GetDiskUsage(r.dir)
	if err == nil && usage.AvailBytes < uint64(r.size.Load())/2+uint64(n) {
		return errNoRoom
	}
	return nil
}

// createLocked makes the file with its space really allocated, so that removing it really frees some. An existing file is kept if its
// length shows that it was written; one that was only allocated has no length, and making it anew is cheap.
func (r *reserve) createLocked() error {
	size := r.size.Load()
	if size == 0 {
		return nil
	}
	if info, err := r.fs.Stat(r.path()); err == nil && info.Size() == size {
		return nil
	}
	f, err := r.fs.Create(r.path(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create reserve file: %w", err)
	}
	err = fillFile(f, size)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = r.fs.Remove(r.path()) // half a reserve would be taken for none at the next start anyway
		return fmt.Errorf("allocate reserve file: %w", err)
	}
	return nil
}

// fillFile takes a file's space from the disk: by asking for it where the system can, else by writing bytes that do not compress.
func fillFile(f vfs.File, size int64) error {
	if runtime.GOOS == "linux" && f.Fd() != vfs.InvalidFd && f.Preallocate(0, size) == nil {
		return f.Sync()
	}
	block := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{})
	for left := size; left > 0; {
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

// FullReason returns why writes that grow data are to be refused; nil unless Full.
func (db *DB) FullReason() error {
	if !db.Full() {
		return nil
	}
	const needed = "the disk is full: writes that grow the data are refused until %d MB are free"
	return fmt.Errorf(needed, (db.reserve.needed()+1<<20-1)>>20)
}

// TryRestore takes the reserve back when the disk has room for it and as much again, and reports whether the store is whole. It
// costs one question to the file system while there is no room.
func (db *DB) TryRestore() bool {
	r := db.reserve
	if !r.full.Load() {
		return true
	}
	usage, err := r.fs.GetDiskUsage(r.dir)
	if err == nil && usage.AvailBytes < r.needed() {
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
	r.log.Info("disk has room again: writes are accepted", "reserve", r.size.Load())
	return true
}

// fitReserve makes the reserve fit the memtables, which grow while the store is written to.
func (db *DB) fitReserve() {
	if db.opts.ReserveBytes > db.reserve.size.Load() && db.opened.Load() {
		db.background.start(func(context.Context) {
			m := db.pebble.Metrics().MemTable
			largest := m.Size
			if m.Count > 1 {
				largest = m.Size / 3 * 2 // each is at most twice as large as the one before
			}
			db.reserve.fit(int64(largest))
		})
	}
}
