package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mayflydb/mayfly/internal/clock"
)

// failure stores the first cause that stopped the store.
type failure struct {
	log     *slog.Logger
	first   atomic.Pointer[error]
	stopped chan struct{} // closed once first is set
}

func (f *failure) init(log *slog.Logger) {
	f.log = log
	f.stopped = make(chan struct{})
}

// set stops the store. Only the first cause is stored.
func (f *failure) set(cause error) {
	err := fmt.Errorf("%w: %w", ErrStopped, cause)
	if f.first.CompareAndSwap(nil, &err) {
		close(f.stopped)
		f.log.Error("store has stopped", "error", cause)
	}
}

// err returns the failure, marked ErrStopped, or nil.
func (f *failure) err() error {
	if first := f.first.Load(); first != nil {
		return *first
	}
	return nil
}

// backgroundError stops the store after a failed flush or compaction. Pebble retries, and the store
// continues, if a table file is damaged, or if the disk is full or no file descriptor is free. The
// last two stop the store all the same in four cases: while it opens, since nothing makes room
// then; if there is no reserve; if writers have waited for ten failures; and if a writer still
// waits at Close. None of these concerns a compaction that found no room.
func (db *DB) backgroundError(err error) {
	switch {
	case db.closed.Load():
		if db.stall.on.Load() {
			db.failure.set(fmt.Errorf("flush or compact, with a writer waiting for it: %w", err))
		}
	case pebble.IsCorruptionError(err):
		db.backgroundDamage(err)
	case errors.Is(err, errNoRoom): // the scheduler pauses it
		db.sayAgain(err)
	case !passes(err) || !db.opened.Load() || isDiskFull(err) && db.opts.ReserveBytes == 0:
		db.failure.set(fmt.Errorf("flush or compact: %w", err))
	case db.stall.failed():
		db.failure.set(fmt.Errorf("flush or compact, with writers waiting for it: %w", err))
	default:
		db.guard.again.Store(true)
		db.sayAgain(err)
	}
}

// sayAgain logs that background work failed and is retried, once a minute at the most.
func (db *DB) sayAgain(err error) {
	if since := db.warned.Load(); since == nil || (*since)() >= stillFullEvery {
		db.warned.Store(new(clock.Stopwatch()))
		db.log.Warn("a flush or compaction failed; trying again", "error", err)
	}
}

// maxStallFailures limits the flushes and compactions that may fail for a temporary reason, one a
// second, while writers wait for one to succeed.
const maxStallFailures = 10

// stall counts failures while Pebble holds writers up because flushes or compactions do not keep
// pace.
type stall struct {
	on       atomic.Bool
	failures atomic.Int64 // since on was set
}

func (s *stall) begin(pebble.WriteStallBeginInfo) {
	s.failures.Store(0)
	s.on.Store(true)
}

func (s *stall) end() { s.on.Store(false) }

// failed counts a failure, and reports whether writers have waited for more than maxStallFailures.
func (s *stall) failed() bool { return s.on.Load() && s.failures.Add(1) > maxStallFailures }

// pebbleLogger passes Pebble's messages to slog, and turns a fatal message into a failure instead
// of ending the process.
type pebbleLogger struct{ db *DB }

func (l pebbleLogger) Infof(format string, args ...any) { l.debug(format, args) }

func (l pebbleLogger) Errorf(format string, args ...any) { l.debug(format, args) }

func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.db.failure.set(fmt.Errorf(format, args...))
}

// debug formats a message only if the logger is enabled for it.
func (l pebbleLogger) debug(format string, args []any) {
	ctx := context.Background()
	if l.db.log.Enabled(ctx, slog.LevelDebug) {
		l.db.log.DebugContext(ctx, fmt.Sprintf(format, args...))
	}
}
