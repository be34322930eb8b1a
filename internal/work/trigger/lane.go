package trigger

import (
	"context"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/work/timer"
)

// lane delivers the records of some keys of a shard in their order, one batch at a time. It has a
// goroutine while it has records.
type lane struct {
	*shard
	bell timer.Bell // rings when the records that the worker waits for have arrived
	mu   struct {
		sync.Mutex
		queue   []entry
		bytes   int
		since   time.Time // arrival of the first record in the queue
		working bool
		// reports whether the records that the worker waits for are in the queue; nil: it waits for
		// none
		arrived func() bool
	}
	// only the worker uses these
	failures int       // consecutive failures
	again    time.Time // of records by themselves: those with an attempt pause until then
}

// add queues records, and starts a worker if there is none.
func (l *lane) add(entries []entry) {
	size := 0
	for i := range entries {
		size += len(entries[i].json)
	}
	l.count(size)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.queue) == 0 {
		l.mu.since = l.o.Clock.Now()
	}
	l.mu.queue = append(l.mu.queue, entries...)
	l.mu.bytes += size
	// the worker counts as busy from here on, not only when it notices, so that the clock does not
	// advance
	if l.mu.arrived != nil && l.mu.arrived() {
		l.mu.arrived = nil
		l.rests.wake(l)
		l.bell.Ring()
	}
	if !l.mu.working {
		l.mu.working = true
		l.rests.work(1)
		l.shard.ends.Add(1)
		l.run.ends.Add(1)
		go l.work()
	}
}

// fullLocked reports whether the next batch cannot become larger.
func (l *lane) fullLocked() bool { return len(l.mu.queue) >= l.batch || l.mu.bytes >= payloadMax }

// work delivers batches until the queue is empty, or the shard is no longer read.
func (l *lane) work() {
	defer l.run.ends.Done()
	defer l.shard.ends.Done()
	defer l.rests.work(-1)
	l.awaitTurn(l.ctx)
	for {
		batch := l.next(l.ctx)
		if batch == nil {
			return
		}
		l.hand(l.ctx, batch)
	}
}

// next waits for a full batch, or the end of the window, and takes the batch out of the queue. It
// returns nil if there is none, and the worker must end.
func (l *lane) next(ctx context.Context) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if len(l.mu.queue) == 0 || ctx.Err() != nil {
			l.mu.working = false
			return nil
		}
		until := l.mu.since.Add(l.window)
		if l.window == 0 || l.fullLocked() || !l.o.Clock.Now().Before(until) {
			return l.cutLocked()
		}
		l.waitLocked(ctx, until, l.fullLocked)
	}
}

// more takes a further batch out of the queue, if no window has to pass first.
func (l *lane) more() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hasMoreLocked() {
		return nil
	}
	return l.cutLocked()
}

// hasMoreLocked reports whether more would return records.
func (l *lane) hasMoreLocked() bool { return l.window == 0 && len(l.mu.queue) > 0 }

// cutLocked takes a batch out of the queue.
func (l *lane) cutLocked() []entry {
	size := len(eventOpen) + len(eventClose)
	n := 0
	for n < len(l.mu.queue) && n < l.batch {
		more := len(l.mu.queue[n].json) + len(",")
		if n > 0 && size+more > payloadMax {
			break
		}
		size += more
		l.mu.bytes -= len(l.mu.queue[n].json)
		n++
	}
	batch := l.mu.queue[:n:n]
	if l.mu.queue = l.mu.queue[n:]; len(l.mu.queue) == 0 {
		l.mu.queue = nil
	}
	l.mu.since = l.o.Clock.Now() // the next window begins now: Lambda gathers one batch at a time
	return batch
}

// waitLocked waits for an instant of the database's clock, or until arrived holds after an addition
// to the queue; nil: it never does. It may return early, and returns when ctx is done. It releases
// the lock while it waits.
func (l *lane) waitLocked(ctx context.Context, until time.Time, arrived func() bool) {
	l.mu.arrived = arrived
	l.rests.wait(l, until)
	l.mu.Unlock()
	ms := until.Add(time.Millisecond - time.Nanosecond).UnixMilli()
	_ = l.o.Clock.Sleep(ctx, ms, l.bell)
	l.mu.Lock()
	l.mu.arrived = nil
	l.rests.wake(l)
}

// pause waits after a failure, longer after each further one.
func (l *lane) pause(ctx context.Context, atLeast time.Duration) {
	l.failures++
	l.pauseUntil(ctx, l.o.Clock.Now().Add(max(l.o.Backoff.After(l.failures, l.o.Jitter()), atLeast)))
}

// pauseUntil waits until an instant of the database's clock.
func (l *lane) pauseUntil(ctx context.Context, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ctx.Err() == nil && l.o.Clock.Now().Before(until) {
		l.waitLocked(ctx, until, nil)
	}
}

// awaitMore waits until an instant of the database's clock, or until more has records. It may
// return early.
func (l *lane) awaitMore(ctx context.Context, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hasMoreLocked() {
		l.waitLocked(ctx, until, l.hasMoreLocked)
	}
}
