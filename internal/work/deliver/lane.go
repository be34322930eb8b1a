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

// lane is what stands before one target: a queue, and workers that are there only while there is work.
type lane struct {
	*Courier
	name    string
	target  target.Target
	limits  target.Limits
	limiter *rate.Limiter // nil: without limit
	calls   atomic.Int64  // of the target, that have not returned
	users   atomic.Int64  // those who have found the lane and not let go of it; counted up under the courier's lock of lanes
	mu      struct {
		sync.Mutex
		queue    queue
		workers  int
		pacing   bool          // a worker waits for its turn by the rate; there is only one
		paid     int           // deliveries that the rate has let begin, and that have not begun
		freed    int           // tasks taken since it was last told that there is room
		room     chan struct{} // closed when there is room; nil: nobody waits for it
		started  time.Duration // when a task was last taken, or came while there was a worker for it
		waited   time.Duration // for how long that task had waited
		pace     pace
		slot     time.Duration // until when the lane is busy with what is parked for it
		pending  []*task       // in the order of arrival, those that may have to be secured; some are over
		securing clock.Timer   // nil: not armed
		closed   bool
	}
}

// task is a parcel in a lane.
type task struct {
	parcel Parcel
	lane   *lane
	done   func() // of its source
	turn   func() // of Call and Invoke: makes the call itself, as the only one of its batch, and the parcel is no further business of the lane
	size   int    // deliveries of that call; 0: one
	hasty  bool   // does not wait for room in the queue
	kept   kept   // its body, in the table of parked parcels

	// Guarded by lane.mu.
	state   state
	began   time.Duration // when it was queued
	secured chan struct{} // not nil: it is parked for the case that the attempt does not end, and its source is told; closed when that is on its way
}

// state is where a task is.
type state int

const (
	taken   state = iota // an attempt is under way, or about to be
	waiting              // in the queue
	over                 // the attempt has ended, or there will be none
)

const (
	concurrencyDefault, concurrencyMax = 16, 1000
	batchMax                           = 1000
	timeoutDefault                     = 30 * time.Second
	timeoutMin, timeoutMax             = 10 * time.Millisecond, 15 * time.Minute

	// A lane flows when it has begun something just now that had not waited for long. Only for a full lane that flows does Deliver wait: a target that is slow, or
	// dead, has what it cannot take parked.
	flowLatest = 500 * time.Millisecond
	flowWait   = 2 * time.Second

	roomEvery = 64                    // tasks taken before those who wait for room are told
	roomLook  = 50 * time.Millisecond // after which they look for themselves
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
		const burst = 0.05 // s: what timers cannot tell apart
		made.limiter = rate.NewLimiter(rate.Limit(perSecond), max(l.Limits.Batch, int(perSecond*burst)))
	}
	return made
}

// unresolved stands for the lane of a parcel whose ARN has none.
func unresolved(d *Courier, parcel Parcel) *lane {
	return &lane{Courier: d, name: parcel.Delivery.TargetARN}
}

// push queues a task and sees to it that somebody works on it. When the queue is full it waits where that helps, and parks the parcel where not. Once ctx is done, or
// the lane closed, it lets go of the task.
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

// flowsLocked reports whether the lane takes tasks about as fast as they come.
func (l *lane) flowsLocked() bool {
	return l.elapsed()-l.mu.started < flowLatest && l.mu.waited < flowWait
}

// roomLocked gives what is closed when there may be room.
func (l *lane) roomLocked() chan struct{} {
	if l.mu.room == nil {
		l.mu.room = make(chan struct{})
	}
	return l.mu.room
}

// tellRoom closes the channel, unless that has been done.
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
		l.mu.started, l.mu.waited = t.began, 0 // as good as begun: somebody is free for it
	}
	l.mu.queue.push(t)
	if t.turn == nil {
		l.watchLocked(t)
	}
	l.hireLocked()
}

// hireLocked starts a worker where one more would find something to do.
func (l *lane) hireLocked() {
	if l.mu.queue.size > 0 && l.mu.workers < l.limits.Concurrency && !l.mu.pacing && !l.mu.closed {
		l.mu.workers++
		l.attempts.running.Go(l.work)
	}
}

// work makes attempts until there is nothing to do.
func (l *lane) work() {
	for {
		tasks := l.take()
		if len(tasks) == 0 {
			return
		}
		l.attempt(tasks)
	}
}

// take takes the next batch, in time by the rate. The worker ends where it is empty.
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

// paceLocked waits until the rate lets the next batch begin; the lock is released meanwhile. It is false where there is nothing to do for this worker.
func (l *lane) paceLocked() bool {
	if l.mu.closed || l.mu.queue.size == 0 {
		return false
	}
	if l.limiter == nil {
		return true
	}
	if l.mu.pacing {
		return false // the one who paces hires others
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

// payLocked settles with the rate what has been taken. That can be more than it was asked for, since more may come while a batch waits for its turn: then what follows waits
// for longer.
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

// close lets go of all that waits: its sources have it still. What is under way goes on.
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

// pace is how many tasks a lane takes a second.
type pace struct {
	since     time.Duration
	n         int
	perSecond float64
}

// count notes that n more were taken.
func (p *pace) count(now time.Duration, n int) {
	p.n += n
	if passed := now - p.since; passed >= time.Second {
		*p = pace{since: now, perSecond: float64(p.n) / passed.Seconds()}
	}
}
