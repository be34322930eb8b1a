package deliver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// lane delivers the parcels of one target, through its gate. It has a queue, and workers that exist
// only while there is work.
type lane struct {
	*gate
	// callers that have found the lane and still use it; increased under the courier's lock of
	// lanes
	users atomic.Int64
	mu    struct {
		sync.Mutex
		queue   queue
		workers int
		freed   int           // tasks taken since the last signal on room
		room    chan struct{} // closed when there is room; nil: no task waits for it
		// time at which a task was last taken, or arrived while a worker was free
		started time.Duration
		waited  time.Duration // how long that task had waited
		pace    pace
		slot    time.Duration // time until which parked parcels fill the lane
		// in the order of arrival: tasks that may have to be secured; some are over
		pending  []*task
		securing clock.Timer // nil: not set
		closed   bool
	}
}

const (
	// A lane flows if it has recently begun a task that had not waited for long. Deliver waits for
	// a full lane only while it flows; a slow or dead target has its excess parked.
	flowLatest = 500 * time.Millisecond
	flowWait   = 2 * time.Second

	// group of a lane's workers at the gate, beside the groups of the callers of Call and Invoke
	groupOfQueue = ""

	roomEvery = 64                    // taken tasks per signal on room
	roomLook  = 50 * time.Millisecond // interval at which waiting callers check by themselves
)

// push queues a task and ensures that a worker runs. If the queue is full, it waits while the lane
// flows, and parks the parcel otherwise. It drops the task once ctx is done or the lane closed.
func (l *lane) push(ctx context.Context, t *task) {
	for {
		l.mu.Lock()
		closed, room, patient := l.mu.closed, l.mu.queue.hasRoom(t.parcel.Group), !t.impatient && l.flowsLocked()
		if room && !closed {
			l.queueLocked(t)
		}
		freed := l.roomLocked()
		l.mu.Unlock()
		switch {
		case closed, room:
			return
		case !patient:
			l.overflow(t)
			return
		}
		look, cancel := context.WithTimeout(ctx, roomLook)
		select {
		case <-freed:
		case <-look.Done():
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
	}
}

// flowsLocked reports whether the lane takes tasks about as fast as they arrive.
func (l *lane) flowsLocked() bool {
	return l.elapsed()-l.mu.started < flowLatest && l.mu.waited < flowWait
}

// roomLocked returns a channel that is closed when there may be room.
func (l *lane) roomLocked() chan struct{} {
	if l.mu.room == nil {
		l.mu.room = make(chan struct{})
	}
	return l.mu.room
}

func (l *lane) tellRoomLocked() {
	l.mu.freed = 0
	if l.mu.room != nil {
		close(l.mu.room)
		l.mu.room = nil
	}
}

func (l *lane) queueLocked(t *task) {
	t.began = l.elapsed()
	if l.mu.queue.size == 0 && l.mu.workers < l.limits.Concurrency && l.calls.Load() < int64(l.limits.Concurrency) {
		l.mu.started, l.mu.waited = t.began, 0 // a worker is free: the task counts as begun
	}
	l.mu.queue.push(t)
	l.watchLocked(t)
	l.hireLocked()
}

// hireLocked starts a worker if there is work for one more.
func (l *lane) hireLocked() {
	if l.mu.queue.size > 0 && l.mu.workers < l.limits.Concurrency && !l.mu.closed {
		l.mu.workers++
		l.attempts.running.Go(l.work)
	}
}

// work makes attempts until there is no more work, or the courier ends. Between
// attempts other calls of the target get their turn.
func (l *lane) work() {
	var tasks []*task
	take := func() int { tasks = l.take(); return len(tasks) }
	next := turn{group: groupOfQueue, weight: l.groups()}
	for l.admit(l.attempts.open, next, take) { // once it is not admitted, the lane is over
		if len(tasks) == 0 {
			l.places.free()
			return
		}
		l.attempt(tasks)
		next.placed, next.weight = true, l.groups()
	}
}

// groups returns the number of groups in the queue, at least 1. It is the weight of the queue at the
// gate, where each group of callers has 1.
func (l *lane) groups() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(len(l.mu.queue.turns), 1)
}

// take takes the next batch, when the rate admits it. It returns an empty batch if the worker is to
// end. A batch may grow while it waits for the rate; then the next wait is longer.
func (l *lane) take() (tasks []*task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := min(l.mu.queue.size, l.limits.Batch); l.limiter != nil && n > 0 {
		l.mu.Unlock()
		l.pace(n, l.attempts.open.Done())
		l.mu.Lock()
	}
	now := l.elapsed()
	for len(tasks) < l.limits.Batch && l.mu.queue.size > 0 {
		t := l.mu.queue.pop()
		tasks = append(tasks, t)
		l.mu.started, l.mu.waited = now, now-t.began
	}
	l.mu.pace.count(now, len(tasks))
	if l.mu.freed += len(tasks); l.mu.freed >= roomEvery || l.mu.queue.size == 0 {
		l.tellRoomLocked()
	}
	if len(tasks) == 0 {
		l.mu.workers--
	}
	l.hireLocked()
	return tasks
}

// close drops the waiting tasks: their sources still have them. Attempts under way continue.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.closed = true
	l.mu.queue = queue{}
	if l.mu.securing != nil {
		l.mu.securing.Stop()
	}
	l.tellRoomLocked()
}

// pace measures the tasks that a lane takes each second.
type pace struct {
	since     time.Duration
	n         int
	perSecond float64
}

// count adds n taken tasks.
func (p *pace) count(now time.Duration, n int) {
	p.n += n
	if passed := now - p.since; passed >= time.Second {
		*p = pace{since: now, perSecond: float64(p.n) / passed.Seconds()}
	}
}
