package deliver

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/target"
)

// lane controls the calls to one target. It has a queue, and workers that exist only while there is
// work.
type lane struct {
	*Courier
	name    string
	target  target.Target
	limits  target.Limits
	limiter *rate.Limiter // nil: no limit
	calls   atomic.Int64  // calls of the target that have not returned
	// callers that have found the lane and still use it; increased under the courier's lock of
	// lanes
	users atomic.Int64
	mu    struct {
		sync.Mutex
		queue   queue
		workers int
		pacing  bool          // a worker waits for the rate; only one does
		paid    int           // deliveries that the rate has admitted and that have not begun
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
	concurrencyDefault, concurrencyMax = 16, 1000
	batchMax                           = 1000
	timeoutDefault                     = 30 * time.Second
	timeoutMin, timeoutMax             = 10 * time.Millisecond, 15 * time.Minute

	// A lane flows if it has recently begun a task that had not waited for long. Deliver waits for
	// a full lane only while it flows; a slow or dead target has its excess parked.
	flowLatest = 500 * time.Millisecond
	flowWait   = 2 * time.Second

	roomEvery = 64                    // taken tasks per signal on room
	roomLook  = 50 * time.Millisecond // interval at which waiting callers check by themselves
)

func newLane(d *Courier, l Lane) *lane {
	if l.Limits.Concurrency <= 0 {
		l.Limits.Concurrency = concurrencyDefault
	}
	if l.Limits.Timeout <= 0 {
		l.Limits.Timeout = timeoutDefault
	}
	l.Limits.Concurrency = min(l.Limits.Concurrency, concurrencyMax)
	l.Limits.Batch = min(max(l.Limits.Batch, 1), batchMax)
	l.Limits.Timeout = min(max(l.Limits.Timeout, timeoutMin), timeoutMax)
	made := &lane{Courier: d, name: l.Name, target: l.Target, limits: l.Limits}
	if perSecond := l.Limits.PerSecond; perSecond > 0 && !math.IsInf(perSecond, 0) {
		const burst = 0.05 // in seconds: shorter waits are below the resolution of timers
		made.limiter = rate.NewLimiter(rate.Limit(perSecond), max(l.Limits.Batch, int(perSecond*burst)))
	}
	return made
}

// unresolved returns a substitute for the lane of a parcel whose ARN has none.
func unresolved(d *Courier, parcel Parcel) *lane {
	return &lane{Courier: d, name: parcel.Delivery.TargetARN}
}

// push queues a task and ensures that a worker runs. If the queue is full, it waits while the lane
// flows, and parks the parcel otherwise. It drops the task once ctx is done or the lane closed.
func (l *lane) push(ctx context.Context, t *task) {
	for {
		l.mu.Lock()
		closed, room, patient := l.mu.closed, l.mu.queue.hasRoom(t.parcel.Group), t.turn != nil || !t.hasty && l.flowsLocked()
		if room && !closed {
			l.queueLocked(t)
		}
		tells := l.roomLocked()
		l.mu.Unlock()
		switch {
		case closed, room:
			return
		case !patient:
			l.overflow(t)
			return
		}
		timer := clock.AfterFunc(roomLook, func() { l.tellRoom(tells) })
		select {
		case <-tells:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
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

// tellRoom closes the channel, unless it is closed already.
func (l *lane) tellRoom(room chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.room == room {
		l.tellRoomLocked()
	}
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
	if l.mu.queue.size == 0 && l.mu.workers < l.limits.Concurrency {
		l.mu.started, l.mu.waited = t.began, 0 // a worker is free: the task counts as begun
	}
	l.mu.queue.push(t)
	if t.turn == nil {
		l.watchLocked(t)
	}
	l.hireLocked()
}

// hireLocked starts a worker if there is work for one more.
func (l *lane) hireLocked() {
	if l.mu.queue.size > 0 && l.mu.workers < l.limits.Concurrency && !l.mu.pacing && !l.mu.closed {
		l.mu.workers++
		l.attempts.running.Go(l.work)
	}
}

// work makes attempts until there is no more work.
func (l *lane) work() {
	for {
		tasks := l.take()
		if len(tasks) == 0 {
			return
		}
		l.attempt(tasks)
	}
}

// take takes the next batch, when the rate admits it. It returns an empty batch if the worker is to
// end.
func (l *lane) take() (tasks []*task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.paceLocked() {
		l.mu.workers--
		return nil
	}
	now := l.elapsed()
	for len(tasks) < l.limits.Batch {
		t := l.mu.queue.pop(len(tasks) > 0)
		if t == nil {
			break
		}
		tasks = append(tasks, t)
		l.mu.started, l.mu.waited = now, now-t.began
		if t.turn != nil {
			break
		}
	}
	l.mu.pace.count(now, len(tasks))
	l.payLocked(tasks)
	if l.mu.freed += len(tasks); l.mu.freed >= roomEvery || l.mu.queue.size == 0 {
		l.tellRoomLocked()
	}
	if len(tasks) == 0 {
		l.mu.workers--
	}
	l.hireLocked()
	return tasks
}

// paceLocked waits until the rate admits the next batch, and releases the lock meanwhile. It
// returns false if there is no work for this worker.
func (l *lane) paceLocked() bool {
	if l.mu.closed || l.mu.queue.size == 0 {
		return false
	}
	if l.limiter == nil {
		return true
	}
	if l.mu.pacing {
		return false // the worker that waits for the rate starts others
	}
	n := min(l.mu.queue.size, l.limits.Batch) - l.mu.paid
	if n <= 0 {
		return true
	}
	l.mu.paid += n
	now := time.Time{}.Add(l.elapsed())
	if delay := l.limiter.ReserveN(now, n).DelayFrom(now); delay > 0 {
		l.mu.pacing = true
		l.mu.Unlock()
		clock.Pause(delay, l.attempts.stopped)
		l.mu.Lock()
		l.mu.pacing = false
	}
	return !l.mu.closed
}

// payLocked charges the rate for a taken batch. The batch may have grown while it waited; then the
// next wait is longer.
func (l *lane) payLocked(tasks []*task) {
	if l.limiter == nil {
		return
	}
	for _, t := range tasks {
		l.mu.paid -= max(t.size, 1)
	}
	if l.mu.paid < 0 {
		l.limiter.ReserveN(time.Time{}.Add(l.elapsed()), -l.mu.paid)
		l.mu.paid = 0
	}
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
