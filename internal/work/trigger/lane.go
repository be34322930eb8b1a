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
	full timer.Bell // rings when a gathering batch has become full
	mu   struct {
		sync.Mutex
		queue   []entry
		bytes   int
		since   time.Time // arrival of the first record in the queue
		working bool
		gathers bool // the worker waits for a full batch, or for the end of its window
	}
	failures int // consecutive failures; only the worker uses it
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
	if l.mu.gathers && l.fullLocked() {
		l.mu.gathers = false
		l.rests.wake(l)
		l.full.Ring()
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
	for {
		l.mu.Lock()
		if len(l.mu.queue) == 0 || ctx.Err() != nil {
			l.mu.working = false
			l.mu.Unlock()
			return nil
		}
		until := l.mu.since.Add(l.window)
		if l.window == 0 || l.fullLocked() || !l.o.Clock.Now().Before(until) {
			batch := l.cutLocked()
			l.mu.Unlock()
			return batch
		}
		l.mu.gathers = true
		l.rests.wait(l, until)
		l.mu.Unlock()
		l.sleep(ctx, until, l.full)
		l.mu.Lock()
		l.mu.gathers = false
		l.rests.wake(l)
		l.mu.Unlock()
	}
}

// more takes a further batch out of the queue, if no window has to pass first.
func (l *lane) more() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.window > 0 {
		return nil
	}
	return l.cutLocked()
}

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

// sleep waits for an instant of the database's clock. It returns early for an element of wake, and
// when ctx is done.
func (l *lane) sleep(ctx context.Context, until time.Time, wake <-chan struct{}) {
	ms := until.Add(time.Millisecond - time.Nanosecond).UnixMilli()
	_ = l.o.Clock.Sleep(ctx, ms, wake)
}

// pause waits after a failure, longer after each further one.
func (l *lane) pause(ctx context.Context, atLeast time.Duration) {
	l.failures++
	l.rest(ctx, l.o.Clock.Now().Add(max(l.o.Backoff.After(l.failures, l.o.Jitter()), atLeast)))
}

// rest waits until an instant of the database's clock.
func (l *lane) rest(ctx context.Context, until time.Time) {
	for ctx.Err() == nil && l.o.Clock.Now().Before(until) {
		l.rests.wait(l, until)
		l.sleep(ctx, until, nil)
		l.rests.wake(l)
	}
}
