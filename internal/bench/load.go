package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// callsMax limits the calls of one connection in a measurement.
const callsMax = 10_000_000

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
	if t.problem == "" {
		t.problem = err.Error()
	}
}

func (t *tally) merge(other *tally) {
	t.calls += other.calls
	t.items += other.items
	t.errors += other.errors
	if t.problem == "" {
		t.problem = other.problem
	}
	t.latency.merge(&other.latency)
}

// load sends requests until d is over or the callers have no more, each caller over a connection of
// its own, and waits for pending answers. It returns the time from the first request to the last
// answer as took.
func load(ctx context.Context, address string, callers []caller, d time.Duration) (total *tally, took time.Duration, err error) {
	workers := make([]*worker, len(callers))
	for i, c := range callers {
		workers[i] = &worker{address: address, caller: c}
		if workers[i].conn, err = dial(ctx, address); err != nil {
			break
		}
	}
	start := time.Now()
	if err == nil {
		err = drive(ctx, workers, start.Add(d))
	}
	took = time.Since(start)
	total = new(tally)
	for _, w := range workers {
		if w != nil {
			w.conn.close()
			total.merge(&w.tally)
		}
	}
	return total, took, errors.Join(err, ctx.Err())
}

// worker is a connection under load.
type worker struct {
	tally
	address string
	caller  caller
	conn    *conn
	broken  int // consecutive lost connections
}

const (
	brokenMax  = 3                // consecutive lost connections after which a worker ends
	answerTime = 30 * time.Second // limit for pending answers after the time is over
)

// judge counts an answer.
func (w *worker) judge(a answer, took time.Duration) {
	w.broken = 0
	if a.status != 200 {
		w.fail(fmt.Errorf("status %d: %.300s", a.status, a.body))
		return
	}
	items, err := w.caller.done(a.body)
	if err != nil {
		w.fail(err)
		return
	}
	w.calls++
	w.items += items
	w.latency.add(took)
}

// lost counts a broken connection.
func (w *worker) lost(err error) {
	w.fail(err)
	w.broken++
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
