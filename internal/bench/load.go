package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// callsMax bounds what one connection does in a measurement, whatever its duration.
const callsMax = 10_000_000

// tally is what a measurement counts.
type tally struct {
	calls   int // right answers
	items   int // that they stand for
	errors  int
	problem string    // the first error
	latency histogram // of the right answers
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

// load sends requests until d is over or the callers have no more, each caller over a connection of its own, and waits for the
// answers that are under way. The time from the first request to the last answer is took.
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
	broken  int // connections lost in a row
}

const (
	brokenMax  = 3                // connections lost in a row, after which a worker gives up
	answerTime = 30 * time.Second // for the answers that are under way when the time is over
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

// lost counts a connection that broke.
func (w *worker) lost(err error) {
	w.fail(err)
	w.broken++
}

// redial replaces the connection; it is nil when that cannot be, or was in vain too often.
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
