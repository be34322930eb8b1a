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

// The pause after failed compactions doubles from pauseFirst to pauseMost.
const (
	pauseFirst = time.Second
	pauseMost  = time.Minute
)

// scheduler limits how many compactions run at once, and pauses them after one failed because of
// damage or a full disk. It implements pebble.CompactionScheduler. Pebble's own scheduler wakes ten
// times a second; this one grants only when a compaction ends or Pebble asks, so an idle store does
// nothing. It grants nothing while Pebble opens: the flush of a log that is read back may want a
// compaction, and Pebble would not be open before that compaction has ended, seconds later.
type scheduler struct {
	background *background
	db         pebble.DBForCompaction   // set by Register, before any other call
	failed     atomic.Int64             // compactions, of all causes
	damaged    pause                    // after damage in level 0
	short      pause                    // after a lack of room
	roomless   atomic.Pointer[keyRange] // the tables of the latest compaction without room

	granting sync.Mutex // one grant at a time; taken before Pebble's locks and mu
	mu       struct {
		sync.Mutex // taken after Pebble's locks
		running    int
		opened     bool
		closed     bool
	}
}

// pause keeps compactions from beginning for a while after one failed. Each cause has its own.
type pause struct {
	failures atomic.Int32 // in a row
	mu       sync.Mutex
	current  context.Context // done when the pause is to end early; nil between pauses
	cancel   context.CancelFunc
}

// active reports whether no compaction may begin.
func (p *pause) active() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current != nil
}

// compactionsAtOnce returns the limits on concurrent compactions: half of the processors, so that
// calls are not delayed, and one on a full disk, so that it gets all the room.
func (db *DB) compactionsAtOnce() (least, most int) {
	if db.Full() {
		return 1, 1
	}
	return 1, max(1, runtime.NumCPU()/2)
}

// flushEnded resumes the compactions that found no room. With the flushed deletes they may need
// less.
func (db *DB) flushEnded(info pebble.FlushInfo) {
	if info.Err == nil {
		db.compactions.resume()
	}
}

func newScheduler(b *background) *scheduler { return &scheduler{background: b} }

func (s *scheduler) Register(_ int, db pebble.DBForCompaction) { s.db = db }

// open lets compactions begin, once Pebble is open. The caller must hold none of Pebble's locks.
func (s *scheduler) open() {
	s.mu.Lock()
	s.mu.opened = true
	s.mu.Unlock()
	s.grantWaiting()
}

// Unregister stops all grants and waits for the one in progress.
func (s *scheduler) Unregister() {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	s.granting.Lock()
	defer s.granting.Unlock()
}

func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.beginOne() {
		return false, nil
	}
	return true, grant{s}
}

// UpdateGetAllowedWithoutPermission does nothing: Pebble calls it with its locks held, and asks
// again at the next flush or compaction.
func (s *scheduler) UpdateGetAllowedWithoutPermission() {}

// hasPlace reports whether a compaction may begin: Pebble is open, fewer run than may, and no pause
// is active.
func (s *scheduler) hasPlace() bool {
	if s.paused() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasPlaceLocked()
}

func (s *scheduler) hasPlaceLocked() bool {
	return s.mu.opened && !s.mu.closed && s.mu.running < s.db.GetAllowedWithoutPermission()
}

// beginOne counts one more running compaction, if there is a place for it.
func (s *scheduler) beginOne() bool {
	if s.paused() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasPlaceLocked() {
		return false
	}
	s.mu.running++
	return true
}

func (s *scheduler) endOne() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.running--
}

// grantWaiting offers the free places to waiting compactions. Pebble asks for a place only once for
// all that wait. If it finds none because grantWaiting has taken one for nothing, grantWaiting must
// look again. The caller must hold none of Pebble's locks.
func (s *scheduler) grantWaiting() {
	s.granting.Lock()
	defer s.granting.Unlock()
	for s.hasPlace() {
		if waiting, _ := s.db.GetWaitingCompaction(); !waiting || !s.beginOne() {
			return
		}
		if !s.db.Schedule(grant{s}) {
			s.endOne()
		}
	}
}

// grant is the permission for one compaction. It implements pebble.CompactionGrantHandle.
type grant struct{ scheduler *scheduler }

func (grant) Started() {}

func (grant) MeasureCPU(pebble.CompactionGoroutineKind) {}

func (grant) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done passes the place on to a compaction that waits.
func (g grant) Done() {
	g.scheduler.endOne()
	g.scheduler.grantWaiting()
}

func (s *scheduler) paused() bool { return s.damaged.active() || s.short.active() }

// pause lets no compaction begin for a while, which doubles with each failure of the same cause in
// a row. Pebble calls it with its locks held, so a goroutine of its own ends the pause. A pause
// does not end once the store is closed, since Pebble must not begin a compaction then.
func (s *scheduler) pause(p *pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := min(pauseFirst<<min(p.failures.Add(1)-1, 30), pauseMost)
	if p.current != nil {
		p.cancel()
	}
	current, cancel := context.WithCancel(s.background.ctx)
	p.current, p.cancel = current, cancel
	s.background.start(func(ctx context.Context) {
		clock.Pause(wait, current.Done())
		if ctx.Err() == nil && p.finish(current) {
			s.grantWaiting()
		}
	})
}

// finish ends a pause, and reports whether it was the latest one. An earlier one has been replaced
// by a longer one, which its own goroutine ends.
func (p *pause) finish(current context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != current {
		return false
	}
	p.cancel()
	p.current = nil
	return true
}

// resume ends the pause after a lack of room.
func (s *scheduler) resume() {
	p := &s.short
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures.Store(0)
	if p.current != nil {
		p.cancel()
	}
}

// forgive takes back one failure for lack of room. It ends the pause unless others remain.
func (p *pause) forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := max(p.failures.Load()-1, 0)
	p.failures.Store(left)
	if left == 0 && p.current != nil {
		p.cancel()
	}
}
