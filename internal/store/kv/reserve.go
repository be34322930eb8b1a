package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// reserveName is the file that exists only to be removed when the disk is full.
const reserveName = "RESERVE"

// leastReserve is the reserve of a store with small memtables. Beside a flush it leaves room for
// the log of deletes and for a compaction.
const leastReserve = 12 << 20

// reserve keeps disk space for a full disk: with it the memtables can be flushed, which frees their
// logs, and deletes can be logged meanwhile. So it is a third larger than the largest memtable, and
// grows with it.
type reserve struct {
	fs     FS // the plain file system: the wrapped one blocks while the reserve is given up
	dir    string
	most   int64 // bytes; 0: there is none
	log    *slog.Logger
	onFull func()      // starts to heal the disk
	full   atomic.Bool // the disk was full, and the reserve has not been restored since
	// everything has been compacted since then: only deletes, or another program, make more room
	tidy   atomic.Bool
	size   atomic.Int64
	mu     sync.Mutex // guards the file and unmade
	unmade error      // why the file could not be created, although the disk reports enough room
}

// newReserve creates the reserve of a directory. A disk without room for it counts as full from the
// start.
func newReserve(opts Options, log *slog.Logger, onFull func()) *reserve {
	r := &reserve{fs: opts.FS, dir: opts.Dir, most: opts.ReserveBytes, log: log, onFull: onFull}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size.Store(min(leastReserve, r.most))
	if err := r.createLocked(); err != nil {
		r.becomeFullLocked("no reserve file: " + err.Error())
	}
	return r
}

func (r *reserve) path() string { return r.fs.PathJoin(r.dir, reserveName) }

// wrap returns a file system that removes the reserve when a write finds the disk full, and repeats
// the write.
func (r *reserve) wrap(fs FS) FS { return vfs.OnDiskFull(fs, r.giveUp) }

// becomeFullLocked marks the disk full.
func (r *reserve) becomeFullLocked(message string) {
	if !r.full.Swap(true) {
		r.tidy.Store(false)
		r.sayFullLocked(message)
	}
}

// giveUp removes the reserve and marks the disk full. A write that finds the disk full calls it,
// and is repeated afterwards.
func (r *reserve) giveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.becomeFullLocked("disk is full")
	if r.size.Load() > 0 {
		_ = r.fs.Remove(r.path()) // already gone after an earlier full disk
	}
	r.onFull()
}

// fit makes the reserve a third larger than the largest memtable, so that a full disk has room for
// its flush and for the log of deletes. The reserve never shrinks. A disk without room for it
// counts as full.
func (r *reserve) fit(largestMemtable int64) {
	want := min(max(largestMemtable/3*4, leastReserve), r.most)
	r.mu.Lock()
	defer r.mu.Unlock()
	if want <= r.size.Load() {
		return
	}
	r.size.Store(want)
	if r.full.Load() {
		return // created when there is room
	}
	if err := r.createLocked(); err != nil {
		r.becomeFullLocked("no larger reserve file: " + err.Error())
		r.onFull()
	}
}

// sayFullLocked logs that the disk is full, and how much room is missing.
func (r *reserve) sayFullLocked(message string) {
	attributes := []any{"needed", r.needed()}
	if free := r.free(); free != unknown {
		attributes = append(attributes, "free", free)
	}
	if r.unmade != nil {
		attributes = append(attributes, "error", r.unmade)
	}
	r.log.Warn(message+": writes that grow the data are refused until there is room", attributes...)
}

func (r *reserve) sayStillFull() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sayFullLocked("disk is still full")
}

// unknown is the free room of a disk that does not report it.
const unknown = math.MaxUint64

// free returns the free bytes of the disk.
func (r *reserve) free() uint64 {
	usage, err := r.fs.GetDiskUsage(r.dir)
	if err != nil {
		return unknown
	}
	return usage.AvailBytes
}

// needed returns the free bytes from which the reserve is restored. While compactions continue it
// is twice as much, so that the next one does not fill the disk again.
func (r *reserve) needed() uint64 {
	size := uint64(r.size.Load())
	if r.tidy.Load() {
		return 2 * size
	}
	return 4 * size
}

// errNoRoom is the error of a compaction that would need the room left for the log.
var errNoRoom = errors.New("no room for a compaction on the disk")

// roomFor returns errNoRoom if less than half of the reserve's size would be free after a
// compaction has written n bytes. That half is for the log and for flushes. A disk without room for
// a compaction is full: the compaction gets the reserve's room, and the caller refuses writes that
// would make the next compaction larger.
func (r *reserve) roomFor(n int) error {
	size := uint64(r.size.Load())
	if size == 0 {
		return nil // there is no reserve
	}
	needed := size/2 + uint64(n)
	if r.free() >= needed {
		return nil
	}
	if !r.full.Load() {
		r.giveUp()
	}
	if r.free() < needed {
		return errNoRoom
	}
	return nil
}

// createLocked creates the file with its space really allocated, so that removing it really frees
// some. An existing file is kept if its length shows that it was written. A file that was only
// allocated has no length, and creating it again is cheap.
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
	if err = errors.Join(fillFile(f, size), f.Close()); err != nil {
		_ = r.fs.Remove(r.path()) // the next start would ignore half a reserve anyway
		return fmt.Errorf("allocate reserve file: %w", err)
	}
	return nil
}

// fillFile allocates a file's space on the disk: by a system call if there is one, otherwise by
// writing bytes that do not compress.
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

// Full reports whether the disk has been full and the reserve has not been restored since. The
// caller must then refuse writes that grow data.
func (db *DB) Full() bool { return db.reserve.full.Load() }

// FullReason returns the reason to refuse writes that grow data, or nil unless Full.
func (db *DB) FullReason() error {
	if !db.Full() {
		return nil
	}
	db.reserve.mu.Lock()
	unmade := db.reserve.unmade
	db.reserve.mu.Unlock()
	if unmade != nil {
		return fmt.Errorf("writes that grow the data are refused until the reserve file can be made: %w", unmade)
	}
	const needed = "the disk is full: writes that grow the data are refused until %d MB are free"
	return fmt.Errorf(needed, (db.reserve.needed()+1<<20-1)>>20)
}

// TryRestore creates the reserve again if the disk has the room that FullReason names. It reports
// whether the store has its reserve, and costs one system call while there is no room.
func (db *DB) TryRestore() bool {
	r := db.reserve
	if !r.full.Load() {
		return true
	}
	if r.free() < r.needed() {
		return false
	}
	// Under the lock, so that a disk that fills up again meanwhile finds either no reserve and full
	// set, or both unchanged.
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.full.Load() {
		return true // another call was first
	}
	if err := r.createLocked(); err != nil {
		if !isDiskFull(err) && r.free() != unknown {
			r.unmade = err
		}
		return false
	}
	r.unmade = nil
	r.full.Store(false)
	db.compactions.resume()
	r.log.Info("disk has room again: writes are accepted", "reserve", r.size.Load())
	return true
}

// fitReserve fits the reserve to the largest memtable, in the background. Memtables grow with the
// writes, so it is called whenever one begins.
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
