package trigger

import (
	"context"
	"sync"
	"time"
)

// lane has the records of some keys of a shard, and hands them over in their order, one batch at a time. A goroutine works for it as long as it has records.
type lane struct {
	*shard
	full chan struct{} // has an element when a batch that gathers has become full
	mu   struct {
		sync.Mutex
		queue   []entry
		bytes   int
		since   time.Time // when the first of the queue came
		working bool
		gathers bool // the worker waits for a batch to become full, or for its window to end
	}
	failures int // in a row, whatever they were about; only the worker's
}

// add queues records and sees to it that somebody works.
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
	if l.mu.gathers && l.fullLocked() { // it works from here on, and not only when it has noticed: these records are no reason to rest
		l.mu.gathers = false
		l.rests.wake(l)
		tell(l.full)
	}
	if !l.mu.working {
		l.mu.working = true
		l.rests.work(1)
		l.shard.ends.Add(1)
		l.run.ends.Add(1)
		go l.work()
	}
}

// fullLocked tells whether a batch can be made that will not become larger.
func (l *lane) fullLocked() bool { return len(l.mu.queue) >= l.batch || l.mu.bytes >= payloadMax }

// work hands over batches until the queue is empty or the shard is read no longer.
func (l *lane) work() {
	defer l.run.ends.Done()
	defer l.shard.ends.Done()
	defer l.rests.work(-1)
	for {
		batch := l.next(l.ctx)
		if batch == nil {
			return
		}
		l.hand(l.ctx, batch)
	}
}

// next waits until a batch is full, or the window is over, and takes it out of the queue. It is nil when there is nothing to do any more.
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

// cutLocked takes the first records of the queue, as many as a batch may have.
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
	l.mu.since = l.o.Clock.Now() // the window of what is left begins now: Lambda gathers one batch at a time
	return batch
}

// sleep waits for an instant of the database's clock. It returns early when something is received from wake, and when ctx is done.
func (l *lane) sleep(ctx context.Context, until time.Time, wake <-chan struct{}) {
	ms := until.Add(time.Millisecond - time.Nanosecond).UnixMilli()
	_ = l.o.Clock.Sleep(ctx, ms, wake)
}

// pause waits after a failure, the longer the more there were.
func (l *lane) pause(ctx context.Context, atLeast time.Duration) {
	l.failures++
	until := l.o.Clock.Now().Add(max(l.o.Backoff.After(l.failures, l.o.Jitter()), atLeast))
	for ctx.Err() == nil && l.o.Clock.Now().Before(until) {
		l.rests.wait(l, until)
		l.sleep(ctx, until, nil)
		l.rests.wake(l)
	}
}
