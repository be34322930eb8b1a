package kv

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Reader reads keys: a DB, whose state changes, or a Snapshot of it.
type Reader interface {
	// Get returns the value of key, or ErrNotFound. The value is valid until the caller closes
	// closer.
	Get(key []byte) (value []byte, closer io.Closer, err error)
	// NewIter returns an iterator over the present keys in [lower, upper). Nil means no bound. The
	// caller must close it.
	NewIter(lower, upper []byte) *Iter
}

// DB is an open store. Its methods are safe for concurrent use, but not during or after Close.
type DB struct {
	opts        Options
	log         *slog.Logger
	pebble      *pebble.DB
	lock        *pebble.Lock
	guard       *guardFS
	journal     *journal // nil in Memory mode
	unjournaled bool     // the directory held a store without a journal
	reserve     *reserve
	failure     failure
	stall       stall
	damages     damages
	compactions *scheduler
	syncer      syncer
	background  background
	healing     atomic.Bool
	copying     atomic.Bool                   // a Copy is open
	warned      atomic.Pointer[clock.Elapsed] // when a failure in the background was last logged
	opened      atomic.Bool
	closed      atomic.Bool
	close       func() error // closes once
}

// Open opens the store in a directory, creating it if it is missing, and recovers the log. It
// returns ErrLocked while another process holds the directory, and an error marked ErrCorrupt if
// its files are damaged, ErrForeign if they do not belong to a store, or ErrNoSpace if the disk is
// too full to open it.
func Open(opts Options) (*DB, error) {
	given := opts
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("store options: %w", err)
	}
	db := &DB{opts: opts, log: opts.Logger}
	db.close = sync.OnceValue(db.closeFirst)
	db.failure.init(opts.Logger)
	db.damages.init()
	if err := refuseForeign(db.opts.FS, db.opts.Dir); err != nil {
		return nil, err
	}
	if err := db.makeDirectory(); err != nil {
		return nil, fmt.Errorf("create data directory: %w", markNoSpace(err))
	}
	db.opts = db.opts.fitDisk(given)
	if db.lock, err = lockDirectory(db.opts); err != nil {
		return nil, err
	}
	if err := db.openLocked(); err != nil {
		return nil, errors.Join(err, db.lock.Close())
	}
	return db, nil
}

// makeDirectory creates the directory and finds its canonical name, because the lock identifies a
// directory by its name.
func (db *DB) makeDirectory() error {
	if err := makeDirectories(db.opts.FS, db.opts.Dir); err != nil {
		return err
	}
	if _, system := db.opts.FS.(privateFS); !system {
		return nil
	}
	dir, err := filepath.Abs(db.opts.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	db.opts.Dir = dir
	return err
}

// makeDirectories creates a directory with its missing parents, and syncs each into its parent.
// Otherwise a power cut may lose the entry of a directory, and with it all files in it.
func makeDirectories(fs FS, dir string) error {
	var above []string // of each missing one, innermost first
	for missing := dir; ; missing = fs.PathDir(missing) {
		parent := fs.PathDir(missing)
		if _, err := fs.Stat(missing); err == nil || parent == missing {
			break
		}
		above = append(above, parent)
	}
	if len(above) > 1 {
		if err := fs.MkdirAll(above[0], 0o755); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, directoryMode); err != nil {
		return err
	}
	for _, parent := range slices.Backward(above) {
		if err := syncDirectory(fs, parent); err != nil {
			return err
		}
	}
	return nil
}

func syncDirectory(fs FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// lockDirectory locks the directory before the store opens, so that "in use" has an error of its
// own.
func lockDirectory(opts Options) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(opts.Dir, opts.FS)
	if err == nil {
		return lock, nil
	}
	if isLockHeld(err) {
		return nil, fmt.Errorf("open %q: %w", opts.Dir, ErrLocked)
	}
	return nil, fmt.Errorf("lock %q: %w", opts.Dir, markNoSpace(err))
}

// openLocked verifies the directory whose lock is held, and opens it. It changes nothing in a
// directory that is damaged or of a newer program.
func (db *DB) openLocked() error {
	found, err := db.verify()
	if err != nil {
		return err
	}
	if found != nil {
		db.unjournaled = found.Legacy && !found.Empty
		db.logEnd(found)
		if err := removeSeal(db.opts.FS, found); err != nil {
			return fmt.Errorf("open %q: remove the seal: %w", db.opts.Dir, err)
		}
		if err := db.removeCopies(); err != nil {
			return fmt.Errorf("open %q: remove an unfinished copy: %w", db.opts.Dir, err)
		}
	}
	db.background.init()
	db.reserve = newReserve(db.opts, db.log, db.startHealing)
	db.guard = newGuardFS(db.opts, db.reserve, &db.failure)
	if db.journal, err = startJournal(db.guard.FS, db.opts.Dir, found); err != nil {
		return fmt.Errorf("open %q: write the journal: %w", db.opts.Dir, markNoSpace(err))
	}
	if err := db.openGuarded(found); err != nil {
		return errors.Join(err, db.journal.close())
	}
	return nil
}

// openGuarded opens Pebble over the guard. The guard hides a failure of the disk from Pebble, so
// openGuarded returns that failure once Pebble has opened.
func (db *DB) openGuarded(found *inspection) error {
	db.guard.journal = db.journal
	if found != nil {
		db.guard.sums = newTableSums(found.sealedFiles)
	}
	p := pebbleOptions(db.opts)
	p.FS = db.guard
	p.Lock = db.lock
	p.Logger = pebbleLogger{db}
	db.compactions = newScheduler(&db.background)
	p.Experimental.CompactionScheduler = db.compactions
	p.CompactionConcurrencyRange = db.compactionsAtOnce
	p.EventListener = &pebble.EventListener{
		DataCorruption:  db.corrupted,
		TableDeleted:    db.tableDeleted,
		CompactionEnd:   db.compactionEnded,
		FlushEnd:        db.flushEnded,
		BackgroundError: db.backgroundError,
		WALCreated:      db.logCreated,
		WriteStallBegin: db.stall.begin,
		WriteStallEnd:   db.stall.end,
	}
	opened, err := openPebble(db.opts.Dir, p)
	if failed := db.failure.err(); failed != nil {
		err = failed
	}
	if err != nil {
		db.guard.release()
		db.background.stop()
		if opened != nil {
			_ = opened.Close() // err explains its error
		}
		return openError(db.opts.Dir, err)
	}
	if system, ok := db.opts.FS.(privateFS); ok {
		system.adopt(db.opts.Dir)
		system.warnExposed(db.opts.Dir, db.log)
	}
	db.pebble = opened
	db.syncer.init(db)
	db.opened.Store(true)
	db.compactions.open()
	db.fitReserve()
	if db.Full() {
		db.startHealing()
	}
	return nil
}

// openPebble turns a panic over damaged files into an error.
func openPebble(dir string, p *pebble.Options) (opened *pebble.DB, err error) {
	defer rescue(&err, ErrCorrupt)
	return pebble.Open(dir, p)
}

// rescue turns a panic of Pebble over damaged bytes into an error marked as cause. Defer it.
func rescue(err *error, cause error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", cause, r)
	}
}

// Close syncs the unsynced writes of Async mode, and releases the directory. Every snapshot and
// iterator must be closed before. It returns the failure if the store has stopped. A second call
// returns the result of the first.
func (db *DB) Close() error { return db.close() }

func (db *DB) closeFirst() error {
	db.syncer.stop()
	db.closed.Store(true)
	db.guard.release()
	db.background.stop()
	err := db.pebble.Close()
	if failed := db.failure.err(); failed != nil {
		err = failed
	}
	err = errors.Join(err, db.journal.close())
	if err == nil {
		db.seal()
	}
	return errors.Join(err, db.lock.Close())
}

// Failed returns nil while the store runs, and otherwise the reason why it stopped, in an error
// marked ErrStopped.
func (db *DB) Failed() error { return db.failure.err() }

// Stopped returns a channel that is closed when the store stops because of a failure.
func (db *DB) Stopped() <-chan struct{} { return db.failure.stopped }

// Unjournaled reports whether the directory held a store without a journal of its files, because a
// mayfly before format 3 wrote it or the file was lost.
func (db *DB) Unjournaled() bool { return db.unjournaled }

// Get reads the latest applied state.
func (db *DB) Get(key []byte) (value []byte, closer io.Closer, err error) {
	value, closer, err = db.pebble.Get(key)
	return value, closer, db.readFailed(err)
}

// NewIter reads the state applied at the moment of the call.
func (db *DB) NewIter(lower, upper []byte) *Iter { return newIter(db, db.pebble, lower, upper) }

// Snapshot is the store's state at one moment. The store keeps all data that the snapshot can see,
// so close it soon.
type Snapshot struct {
	db     *DB
	pebble *pebble.Snapshot
}

// NewSnapshot returns the state applied at the moment of the call.
func (db *DB) NewSnapshot() *Snapshot { return &Snapshot{db, db.pebble.NewSnapshot()} }

// Get reads the snapshot.
func (s *Snapshot) Get(key []byte) (value []byte, closer io.Closer, err error) {
	value, closer, err = s.pebble.Get(key)
	return value, closer, s.db.readFailed(err)
}

// NewIter reads the snapshot.
func (s *Snapshot) NewIter(lower, upper []byte) *Iter { return newIter(s.db, s.pebble, lower, upper) }

// Close releases the snapshot.
func (s *Snapshot) Close() error { return s.pebble.Close() }

// Flush writes the memtables to tables, so that compactions can reclaim the range of a large
// DeleteRange.
func (db *DB) Flush() error {
	if err := db.writable(); err != nil {
		return err
	}
	if err := db.pebble.Flush(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return db.failure.err()
}

// writable returns an error if no write may begin.
func (db *DB) writable() error {
	if db.closed.Load() {
		return ErrClosed
	}
	return db.failure.err()
}
