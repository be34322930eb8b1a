package deliver

import (
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// A source's checkpoint cannot pass a record whose parcel is not done, and it reads ahead only so
// far. Therefore no parcel remains undone for long. A task that has waited for securePatience is
// parked. An attempt that has run for as long is secured: its parcel is parked until after the
// attempt's timeout, and its source may pass it. When the attempt ends after all, it deletes that
// item or overwrites it with the next attempt.
const (
	securePatience = 4 * time.Second
	secureMargin   = 10 * time.Second // after the timeout of an attempt
)

// watchLocked ensures that a task is secured if it takes too long.
func (l *lane) watchLocked(t *task) {
	for len(l.mu.pending) > 0 && l.mu.pending[0].state == over {
		l.mu.pending[0] = nil
		l.mu.pending = l.mu.pending[1:]
	}
	l.mu.pending = append(l.mu.pending, t)
	l.armLocked()
}

// armLocked sets the timer for the oldest task, unless one is set, which is earlier.
func (l *lane) armLocked() {
	if l.mu.securing == nil && len(l.mu.pending) > 0 && !l.mu.closed {
		l.mu.securing = clock.AfterFunc(l.mu.pending[0].began+securePatience-l.elapsed(), l.secure)
	}
}

// secure parks tasks that have waited too long, and secures attempts that run too long.
func (l *lane) secure() {
	var waited, attempted []*task
	var dones []func() // of the sources of the attempted tasks
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
			dones = append(dones, t.done)
			t.done = func() { l.slow.end(t) }
			l.slow.add(t)
			attempted = append(attempted, t)
		}
	}
	if len(waited) > 0 {
		l.tellRoomLocked()
	}
	l.armLocked()
	l.mu.Unlock()
	for i, t := range attempted {
		l.park(t, t.parcel, l.o.Now().Add(l.limits.Timeout+secureMargin), dones[i])
		close(t.secured)
	}
	for _, t := range waited {
		l.overflow(t)
	}
}

// overflow parks a parcel because its lane is full. It counts no attempt.
func (l *lane) overflow(t *task) {
	l.observe(t, LaneFull, "")
	next := t.parcel
	next.Waits++
	l.park(t, next, l.o.Now().Add(l.parkingTime(next.Waits)), t.done)
}

// parkingTime returns the time for which a parcel is parked after its lane was full several times in a
// row. It grows each time, so that a dead target costs little. For a slow target it extends to the
// parcel's turn at the lane's pace.
func (l *lane) parkingTime(waits int) time.Duration {
	wait := l.o.Backoff.pause(waits)
	return max(wait/2+time.Duration(float64(wait/2)*l.o.Jitter()), l.slot(l.o.Backoff.Most))
}

// slot returns the time until the lane can take one more parcel after those that are parked, at its
// present pace.
func (l *lane) slot(most time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	perSecond := l.mu.flow.perSecond
	if perSecond < 1 {
		return 0
	}
	now := l.elapsed()
	l.mu.slot = min(max(l.mu.slot, now)+time.Duration(float64(time.Second)/perSecond), now+most)
	return l.mu.slot - now
}

// slowTasks are the secured tasks whose attempts have not ended.
type slowTasks struct {
	sync.Mutex
	byID map[string]*slowTask
}

type slowTask struct {
	*task
	later []func() // calls to make at the end
}

func (s *slowTasks) add(t *task) {
	s.Lock()
	defer s.Unlock()
	if s.byID == nil {
		s.byID = map[string]*slowTask{}
	}
	made := &slowTask{task: t}
	// the same parcel was handed over again: both tasks share the calls
	if before := s.byID[t.parcel.Delivery.ID]; before != nil {
		made.later = before.later
	}
	s.byID[t.parcel.Delivery.ID] = made
}

// join registers a call for the end of the slow task with an ID. It returns false if there is none.
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

// end ends a slow task whose consequence is durable: delivered, parked again, or a dead letter. The
// sources that handed the same delivery over meanwhile learn that it is done.
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
