package kv

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mayflydb/mayfly/internal/clock"
)

// syncer bounds the time until a write of Async mode is on disk. The first write after a sync
// starts a timer, whose end syncs the log; without writes there is no timer and no goroutine.
type syncer struct {
	db    *DB
	dirty atomic.Bool // a timer is set, or about to be
	mu    struct {
		sync.Mutex
		timer  clock.Timer
		closed bool
	}
}

func (s *syncer) init(db *DB) { s.db = db }

// written starts the timer for an applied write, unless one runs.
func (s *syncer) written() {
	if s.dirty.Load() || !s.dirty.CompareAndSwap(false, true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.closed {
		s.mu.timer = clock.AfterFunc(s.db.opts.AsyncWindow, s.sync)
	}
}

// sync writes everything applied so far to disk. A write that arrives meanwhile starts the next
// timer, so dirty is cleared first.
func (s *syncer) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return
	}
	s.dirty.Store(false)
	s.syncLog()
}

// syncLog writes an empty record to the log and waits for it. The guard records a failure.
func (s *syncer) syncLog() {
	if s.db.failure.err() == nil {
		_ = s.db.pebble.LogData(nil, pebble.Sync)
	}
}

// stop ends the timer, and syncs the writes that it was set for.
func (s *syncer) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	if s.mu.timer != nil {
		s.mu.timer.Stop()
	}
	if s.dirty.Load() {
		s.syncLog()
	}
}
