package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	callsMax   = 10_000_000       // calls of one connection in a measurement
	brokenMax  = 3                // consecutive lost connections after which a worker ends
	answerTime = 30 * time.Second // limit for pending answers after the time is over
)

// tally has the counts of a measurement.
type tally struct {
	calls   int // correct answers
	items   int // items in them
	errors  int
	problem string    // the first error
	latency histogram // of the correct answers
}

// fail counts an error.
func (t *tally) fail(err error) {
	t.errors++
	t.problem = cmp.Or(t.problem, err.Error())
}

// success counts a correct answer.
func (t *tally) success(items int, took time.Duration) {
	t.calls++
	t.items += items
	t.latency.add(took)
}

func (t *tally) merge(other *tally) {
	t.calls += other.calls
	t.items += other.items
	t.errors += other.errors
	t.problem = cmp.Or(t.problem, other.problem)
	t.latency.merge(&other.latency)
}

// inParallel runs n workers until all have returned. It returns the sum of their counts, and the
// time from the start to the end of the last one.
func inParallel(n int, work func(i int, t *tally)) (total *tally, took time.Duration) {
	tallies := make([]tally, n)
	var running sync.WaitGroup
	start := time.Now()
	for i := range tallies {
		running.Go(func() { work(i, &tallies[i]) })
	}
	running.Wait()
	took = time.Since(start)
	total = new(tally)
	for i := range tallies {
		total.merge(&tallies[i])
	}
	return total, took
}

// load sends requests until d is over or the callers have no more, each caller over a connection of
// its own, and waits for pending answers. It returns the time from the first request to the last
// answer as took.
func load(ctx context.Context, address string, callers []caller, d time.Duration) (total *tally, took time.Duration, err error) {
	workers := make([]worker, len(callers))
	defer func() {
		for i := range workers {
			workers[i].conn.close()
		}
	}()
	for i, c := range callers {
		workers[i] = worker{address: address, caller: c}
		if workers[i].conn, err = dial(ctx, address); err != nil {
			return new(tally), 0, errors.Join(err, ctx.Err())
		}
	}
	end := time.Now().Add(d)
	total, took = inParallel(len(workers), func(i int, t *tally) {
		workers[i].tally = t
		workers[i].run(ctx, end)
	})
	return total, took, ctx.Err()
}

// worker is a connection under load.
type worker struct {
	*tally
	address string
	caller  caller
	conn    *conn
	broken  int // consecutive lost connections
}

// run makes calls until end, or until the caller has no more or the connection is beyond repair. One
// goroutine that waits for all sockets with epoll would save 1 to 4 us
// of CPU per call, at the price of a second, asynchronous client on Linux.
func (w *worker) run(ctx context.Context, end time.Time) {
	w.conn.net.SetDeadline(end.Add(answerTime))
	for now := time.Now(); now.Before(end) && w.calls+w.errors < callsMax; {
		request := w.caller.next()
		if request == nil {
			return
		}
		a, err := w.conn.call(request)
		then := time.Now()
		if err == nil {
			w.judge(a, then.Sub(now))
		} else {
			w.fail(err)
			w.broken++
		}
		if err != nil || a.closes {
			if w.redial(ctx); w.conn == nil {
				return
			}
			w.conn.net.SetDeadline(end.Add(answerTime))
			then = time.Now()
		}
		now = then
	}
}

// judge counts an answer.
func (w *worker) judge(a answer, took time.Duration) {
	w.broken = 0
	items, err := judge(w.caller, a)
	if err != nil {
		w.fail(err)
		return
	}
	w.success(items, took)
}

// judge returns the number of items in a correct answer.
func judge(c caller, a answer) (items int, err error) {
	if a.status != 200 {
		return 0, fmt.Errorf("status %d: %.300s", a.status, a.body)
	}
	return c.done(a.body)
}

// redial replaces the connection. It is nil if that fails, or after too many losses.
func (w *worker) redial(ctx context.Context) {
	w.conn.close()
	w.conn = nil
	if w.broken == brokenMax {
		return
	}
	c, err := dial(ctx, w.address)
	if err != nil {
		w.fail(err)
		return
	}
	w.conn = c
}
