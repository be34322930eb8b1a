package kv

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mayflydb/mayfly/internal/clock"
)

// The pause after failed compactions doubles from holdFirst to holdMost.
const (
	holdFirst = time.Second
	holdMost  = time.Minute
)

// scheduler lets a fixed number of compactions run at once, and none for a while after one failed over damage or for want of room.
// Unlike Pebble's default it does not wake ten times a second: it grants when a compaction ends or is asked for, so an idle store does
// nothing.
type scheduler struct {
	*pebble.ConcurrencyLimitScheduler
	background *background
	failed     atomic.Int64 // compactions, of all causes
	damaged    hold         // after damage in level 0
	short      hold         // after a lack of room
}

// hold keeps compactions from beginning after one failed.
type hold struct {
	failures atomic.Int32 // in a row
	mu       sync.Mutex
	on       context.Context // done when the hold is to end early; nil while there is none
	end      context.CancelFunc
}

// held reports whether no compaction may begin.
func (h *hold) held() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on != nil
}

// compactionsAtOnce limits compactions to half of the processors, so that they do not delay calls. On a full disk one at a time gets all
// the room.
func (db *DB) compactionsAtOnce() (least, most int) {
	if db.Full() {
		return 1, 1
	}
	return 1, max(1, runtime.NumCPU()/2)
}

// flushEnded lets the compactions begin again that found no room: with the deletes that were flushed they may need less.
func (db *DB) flushEnded(info pebble.FlushInfo) {
	if info.Err == nil {
		db.compactions.roomier()
	}
}

func newScheduler(b *background) *scheduler {
	return &scheduler{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest(), background: b}
}

// Register implements pebble.CompactionScheduler.
func (s *scheduler) Register(goroutines int, db pebble.DBForCompaction) {
	s.ConcurrencyLimitScheduler.Register(goroutines, heldCompactions{db, s})
}

// TrySchedule implements pebble.CompactionScheduler.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if s.held() {
		return false, nil
	}
	return s.ConcurrencyLimitScheduler.TrySchedule()
}

func (s *scheduler) held() bool { return s.damaged.held() || s.short.held() }

// hold lets no compaction begin for a while, which is longer after each failure of the same cause in a row. Pebble calls it with its
// locks held, so what ends the hold runs by itself. It does not end after the store was closed, since Pebble must not begin a
// compaction then.
func (s *scheduler) hold(h *hold) {
	wait := min(holdFirst<<min(h.failures.Add(1)-1, 30), holdMost)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.on != nil {
		h.end()
	}
	on, end := context.WithCancel(s.background.ctx)
	h.on, h.end = on, end
	s.background.start(func(ctx context.Context) {
		clock.Pause(wait, on.Done())
		if ctx.Err() == nil && h.ended(on) && !s.held() {
			s.release()
		}
	})
}

// ended ends a hold, and reports whether it was the latest one.
func (h *hold) ended(on context.Context) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.on != on {
		return false
	}
	h.end()
	h.on = nil
	return true
}

// release has the scheduler look for a compaction that waits: it does so when a grant is returned.
func (s *scheduler) release() {
	if granted, handle := s.ConcurrencyLimitScheduler.TrySchedule(); granted {
		handle.Done()
	}
}

// roomier ends the hold after a lack of room.
func (s *scheduler) roomier() {
	h := &s.short
	h.failures.Store(0)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.on != nil {
		h.end()
	}
}

// heldCompactions is a store without waiting compactions while they are held.
type heldCompactions struct {
	pebble.DBForCompaction
	scheduler *scheduler
}

// GetWaitingCompaction implements pebble.DBForCompaction.
func (h heldCompactions) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	if h.scheduler.held() {
		return false, pebble.WaitingCompaction{}
	}
	return h.DBForCompaction.GetWaitingCompaction()
}
