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
		room    chan struct{} // closed when there is room; nil: no task waits for it
		freed   int           // tasks taken since room was made
		flow    flow
		slot    time.Duration // time until which parked parcels fill the lane
		// in the order of arrival: tasks that may have to be secured; some are over
		pending  []*task
		securing clock.Timer // nil: not set
		closed   bool
	}
}

const (
	// group of a lane's workers at the gate, beside the groups of the callers of Call and Invoke
	groupOfQueue = ""

	roomEvery = 64                    // taken tasks per signal on room
	roomLook  = 50 * time.Millisecond // interval at which waiting callers check by themselves
)

// push queues a task and ensures that a worker runs. If the queue is full, it waits while the lane
// flows, and otherwise reports that the parcel must be parked. It drops the task once ctx is done or
// the lane closed.
func (l *lane) push(ctx context.Context, t *task) (full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.mu.queue.hasRoom(t.parcel.Group) {
		if t.impatient || !l.mu.flow.lasts(l.elapsed()) {
			return true
		}
		if l.awaitRoomLocked(ctx); ctx.Err() != nil {
			return false
		}
	}
	if l.mu.closed {
		return false
	}
	t.began = l.elapsed()
	if l.mu.queue.size == 0 && l.mu.workers < l.limits.Concurrency && l.calls.Load() < int64(l.limits.Concurrency) {
		l.mu.flow.count(t.began, t.began, 0) // a worker is free: the task counts as begun
	}
	l.mu.queue.push(t)
	l.watchLocked(t)
	l.hireLocked()
	return false
}

// awaitRoomLocked waits until there may be room, and releases the lock meanwhile.
func (l *lane) awaitRoomLocked(ctx context.Context) {
	if l.mu.room == nil {
		l.mu.room, l.mu.freed = make(chan struct{}), 0
	}
	room := l.mu.room
	l.mu.Unlock()
	defer l.mu.Lock()
	look, cancel := context.WithTimeout(ctx, roomLook)
	defer cancel()
	select {
	case <-room:
	case <-look.Done():
	}
}

// tellRoomLocked wakes the callers that wait for room.
func (l *lane) tellRoomLocked() {
	if l.mu.room != nil {
		close(l.mu.room)
		l.mu.room = nil
	}
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
	over := l.attempts.open.Err() != nil // perhaps before the rate admitted the batch
	for !over && len(tasks) < l.limits.Batch && l.mu.queue.size > 0 {
		tasks = append(tasks, l.mu.queue.pop())
	}
	if len(tasks) == 0 {
		l.mu.workers--
		return nil
	}
	l.mu.flow.count(l.elapsed(), tasks[len(tasks)-1].began, len(tasks))
	if l.mu.freed += len(tasks); l.mu.room != nil && (l.mu.freed >= roomEvery || l.mu.queue.size == 0) {
		l.tellRoomLocked()
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
