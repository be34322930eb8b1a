package due

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
)

// Never is the head of an empty source.
const Never = clock.Never

// Source holds entries ordered by the instant at which they are due.
type Source interface {
	// Drain removes one bounded slice of the entries due at now. It returns the instant of the next
	// entry: at or before now if more are due already, Never if there is none. The result may omit
	// an entry that arrives during Drain if Wake is called for it.
	Drain(ctx context.Context, now int64) (next int64, err error)
}

// Queue drains its sources as their entries fall due. Its methods are safe for concurrent use.
type Queue struct {
	clock   *clock.Clock
	onError func(Source, error) error
	// holds a token when a head has been lowered since Run last read the heads
	wake    chan struct{}
	passes  atomic.Int64 // passes of Run over the heads, for tests of IdleIsFree
	round   int64        // the number of calls of pass; touched by Run only
	handles atomic.Pointer[[]*Handle]
	adding  sync.Mutex   // serializes changes of handles
	drained Announcement // a Drain has ended, or a source was removed
}

// New returns a queue without sources. It calls onError with every error of a Drain. An error from
// onError ends Run; after nil the queue retries that source later, while the others continue.
func New(c *clock.Clock, onError func(Source, error) error) *Queue {
	q := &Queue{clock: c, onError: onError, wake: make(chan struct{}, 1)}
	q.handles.Store(&[]*Handle{})
	return q
}

// Add adds a source. Its head is Never until its first Wake.
func (q *Queue) Add(s Source) *Handle {
	h := &Handle{queue: q, source: s}
	h.head.Store(Never)
	h.mu.began = Never
	q.adding.Lock()
	defer q.adding.Unlock()
	handles := append(slices.Clone(*q.handles.Load()), h)
	q.handles.Store(&handles)
	return h
}

// remove removes a source.
func (q *Queue) remove(h *Handle) {
	q.adding.Lock()
	defer q.adding.Unlock()
	handles := slices.DeleteFunc(slices.Clone(*q.handles.Load()), func(other *Handle) bool { return other == h })
	q.handles.Store(&handles)
	q.drained.Announce()
}

// Run drains due entries until ctx is done or onError returns an error, and returns that error.
// Only one call may run at a time.
func (q *Queue) Run(ctx context.Context) error {
	defer q.stopRetries()
	for {
		if err := q.drainDue(ctx); err != nil {
			return err
		}
		if err := q.clock.Sleep(ctx, q.sleepUntil(), q.wake); err != nil {
			return err
		}
	}
}

// sleepUntil returns the least head of the sources that are not paused, and counts the pass over
// them.
func (q *Queue) sleepUntil() int64 {
	q.passes.Add(1)
	until, handles := Never, *q.handles.Load()
	for _, h := range handles {
		if !h.paused.Load() {
			until = min(until, h.head.Load())
		}
	}
	if invariant.Injected(invariant.BusyLoop) {
		until = min(until, q.clock.Millis()+1000)
	}
	checkSleep(until, handles)
	return until
}

// checkSleep checks that the queue does not wake before the head of any source. The heads may be
// lower by now, but not higher: only Run raises them.
func checkSleep(until int64, handles []*Handle) {
	reached := func(h *Handle) bool { return h.head.Load() <= until }
	if invariant.Enabled {
		invariant.CheckUnless(until == Never || slices.ContainsFunc(handles, reached), []invariant.Fault{invariant.BusyLoop},
			"the queue sleeps until %d, before every head", until)
	}
}

// drainDue drains until nothing is due, as Run does between two sleeps. It must not run beside Run.
func (q *Queue) drainDue(ctx context.Context) error {
	for {
		drained, err := q.pass(ctx)
		if err != nil || !drained {
			return err
		}
	}
}

// pass drains one slice of every source that is due, and reports whether there was one.
func (q *Queue) pass(ctx context.Context) (drained bool, err error) {
	q.round++
	for _, h := range *q.handles.Load() {
		for h.due(q.now()) {
			if err := ctx.Err(); err != nil {
				return drained, err
			}
			drained = true
			if err := q.drain(ctx, h); err != nil {
				return drained, err
			}
			if !invariant.Injected(invariant.HogQueue) {
				break
			}
		}
	}
	return drained, nil
}

// now returns the instant up to which entries are due.
func (q *Queue) now() int64 {
	now := q.clock.Millis()
	if invariant.Injected(invariant.FireEarly) {
		now += 1000
	}
	return now
}

// drain drains one slice of one source. A failed Drain pauses its source; drain returns an error
// only if the queue must end.
func (q *Queue) drain(ctx context.Context, h *Handle) error {
	head, now := h.begin(), q.now()
	invariant.CheckUnless(max(head, now) <= q.clock.Millis(), []invariant.Fault{invariant.FireEarly},
		"a drain up to %d with its head at %d, too early", now, head)
	invariant.CheckUnless(h.round != q.round, []invariant.Fault{invariant.HogQueue}, "two slices of one source in round %d", q.round)
	h.round = q.round
	next, err := h.source.Drain(ctx, now)
	if err != nil {
		next = head
	}
	h.end(next)
	q.drained.Announce()
	switch {
	case err == nil:
		h.failures = 0
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if fatal := q.onError(h.source, err); fatal != nil {
		return fatal
	}
	h.retryLater()
	return nil
}

// Passes returns the number of passes of Run over the heads: the measure of IdleIsFree.
func (q *Queue) Passes() int64 { return q.passes.Load() }

// signal ends Run's sleep, so that it reads the heads again.
func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default: // a token is there already
	}
}

// stopRetries ends the pauses of sources that failed, so that the next Run tries them at once.
func (q *Queue) stopRetries() {
	for _, h := range *q.handles.Load() {
		h.stopRetry()
	}
}

// Head returns the earliest instant at which an entry may be due, including entries of running
// Drains; Never: none.
func (q *Queue) Head() int64 {
	head := Never
	for _, h := range *q.handles.Load() {
		head = min(head, h.Head())
	}
	return head
}

// Lateness returns the time since the earliest undrained entry was due; zero when nothing is due.
func (q *Queue) Lateness() time.Duration {
	head, now := max(q.Head(), 0), q.clock.Millis() // a head before 1970 means unknown
	if head >= now {
		return 0
	}
	return time.Duration(now-head) * time.Millisecond
}

// Settled waits until every entry due at or before t has been drained and no Drain is running, or
// ctx is done. The clock must have reached t, and Run must be running.
func (q *Queue) Settled(ctx context.Context, t int64) error {
	for {
		drained := q.drained.Next()
		if q.IsSettled(t) {
			return ctx.Err()
		}
		select {
		case <-drained:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// IsSettled reports whether every entry due at or before t has been drained and no Drain is
// running.
func (q *Queue) IsSettled(t int64) bool {
	for _, h := range *q.handles.Load() {
		if head, draining := h.undone(); draining || head <= t {
			return false
		}
	}
	return true
}
