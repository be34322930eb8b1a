package deliver

import (
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// A source's checkpoint cannot pass a record whose parcel is not done, and reads only so far ahead. So no parcel is left undone for long: what has waited in a lane
// for securePatience is parked, and an attempt that has taken as long is secured. That is, the parcel is parked for an instant at which the attempt will have
// been given up, and then its source can pass it. An attempt that ends after all deletes that item or writes the next attempt over it.
const (
	securePatience = 4 * time.Second
	secureMargin   = 10 * time.Second // behind the timeout of an attempt
)

// watchLocked sees to it that a task is secured should it take too long.
func (l *lane) watchLocked(t *task) {
	for len(l.mu.pending) > 0 && l.mu.pending[0].state == over {
		l.mu.pending[0] = nil
		l.mu.pending = l.mu.pending[1:]
	}
	l.mu.pending = append(l.mu.pending, t)
	l.armLocked()
}

// armLocked sets the timer for the oldest task, unless it is set: then that is soon enough.
func (l *lane) armLocked() {
	if l.mu.securing == nil && len(l.mu.pending) > 0 && !l.mu.closed {
		l.mu.securing = clock.AfterFunc(l.mu.pending[0].began+securePatience-l.elapsed(), l.secure)
	}
}

// secure parks what has waited for too long, and secures the attempts that take so long.
func (l *lane) secure() {
	var waited, attempted []*task
	l.mu.Lock()
	l.mu.securing = nil
	now := l.elapsed()
	for len(l.mu.pending) > 0 && !l.mu.closed {
		t := l.mu.pending[0]
		if t.state != over && now-t.began < securePatience {
			break
		}
		l.mu.pending[0] = nil
		l.mu.pending = l.mu.pending[1:]
		switch t.state {
		case waiting:
			l.mu.queue.remove(t)
			t.state = over
			waited = append(waited, t)
		case taken:
			t.secured = make(chan struct{})
			l.slow.add(t)
			attempted = append(attempted, t)
		}
	}
	if len(waited) > 0 {
		l.tellRoomLocked()
	}
	l.armLocked()
	l.mu.Unlock()
	for _, t := range attempted {
		l.park(t, t.parcel, l.o.Now().Add(l.limits.Timeout+secureMargin), t.done)
		close(t.secured)
	}
	for _, t := range waited {
		l.overflow(t)
	}
}

// overflow parks a parcel for which its lane has no room. No attempt is counted.
func (l *lane) overflow(t *task) {
	l.observe(t, LaneFull, "")
	next := t.parcel
	next.Waits++
	l.park(t, next, l.o.Now().Add(l.respite(next.Waits)), t.done)
}

// respite is for how long a parcel is parked that has found its lane full so many times in a row: the longer the more often, so that a dead target costs little, and
// for those of a slow target until the lane will have had time for them.
func (l *lane) respite(waits int) time.Duration {
	b := l.o.Backoff
	wait := b.Most
	if waits < 30 {
		wait = min(b.First<<(waits-1), b.Most)
	}
	return max(wait/2+time.Duration(float64(wait/2)*l.o.Jitter()), l.slot(b.Most))
}

// slot is when a lane will have had time for one more parcel than are parked for it already, if it goes on at its pace.
func (l *lane) slot(most time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	perSecond := l.mu.pace.perSecond
	if perSecond < 1 {
		return 0
	}
	now := l.elapsed()
	l.mu.slot = min(max(l.mu.slot, now)+time.Duration(float64(time.Second)/perSecond), now+most)
	return l.mu.slot - now
}

// slowTasks are those that are secured and whose attempts have not ended.
type slowTasks struct {
	sync.Mutex
	byID map[string]*slowTask
}

type slowTask struct {
	*task
	later []func() // called when it has ended
}

func (s *slowTasks) add(t *task) {
	s.Lock()
	defer s.Unlock()
	if s.byID == nil {
		s.byID = map[string]*slowTask{}
	}
	made := &slowTask{task: t}
	if before := s.byID[t.parcel.Delivery.ID]; before != nil { // of the same parcel, which was handed over again: what waits for one waits for both
		made.later = before.later
	}
	s.byID[t.parcel.Delivery.ID] = made
}

// join has something called when the slow task with an id has ended. It is false where there is none.
func (s *slowTasks) join(id string, ended func()) bool {
	s.Lock()
	defer s.Unlock()
	t := s.byID[id]
	if t == nil {
		return false
	}
	t.later = append(t.later, ended)
	return true
}

// end is called when what follows from a slow task's attempt is durable.
func (s *slowTasks) end(t *task) {
	s.Lock()
	known := s.byID[t.parcel.Delivery.ID]
	if known == nil || known.task != t {
		s.Unlock()
		return
	}
	delete(s.byID, t.parcel.Delivery.ID)
	s.Unlock()
	for _, ended := range known.later {
		ended()
	}
}
