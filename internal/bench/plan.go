package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// plan has the deadlines of a table's items.
type plan struct {
	first  time.Time     // deadline, a multiple of unit
	spread time.Duration // from the first deadline on; 0: all are equal
	items  int
	whole  bool // deadlines are whole seconds, so all items of a second are due at once
}

// unit returns the unit of the deadlines.
func (p *plan) unit() time.Duration {
	if p.whole {
		return time.Second
	}
	return time.Millisecond
}

func (p *plan) deadline(item int) time.Time {
	return p.first.Add(time.Duration(float64(p.spread) * float64(item) / float64(p.items))).Truncate(p.unit())
}

// text returns the value of an item's TTL attribute.
func (p *plan) text(item int) string {
	ms := p.deadline(item).UnixMilli()
	if p.whole {
		return fmt.Sprint(ms / 1000)
	}
	return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
}

func (p *plan) last() time.Time { return p.deadline(p.items - 1) }

// watch records the arrival of the records of a plan's items. It is safe for concurrent use.
type watch struct {
	plan     *plan
	complete chan struct{} // closed when every record has arrived

	mu    sync.Mutex // guards the following
	late  []time.Duration
	left  int // items without a record
	early int
	twice int
}

// notArrived is the value in watch.late of a missing record.
const notArrived = time.Duration(math.MinInt64)

func newWatch(p *plan) *watch {
	return &watch{plan: p, complete: make(chan struct{}), late: slices.Repeat([]time.Duration{notArrived}, p.items), left: p.items}
}

// removed records the arrival of an item's REMOVE record. It ignores items outside of the plan.
func (w *watch) removed(item int, at time.Time) {
	if item < 0 || item >= w.plan.items {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.late[item] != notArrived {
		w.twice++
		return
	}
	w.late[item] = at.Sub(w.plan.deadline(item))
	if w.late[item] < 0 {
		w.early++
	}
	if w.left--; w.left == 0 {
		close(w.complete)
	}
}

// summary returns the lateness of records with deadlines up to an instant; nil if none has arrived.
func (w *watch) summary(until time.Time) *Lateness {
	w.mu.Lock()
	defer w.mu.Unlock()
	var h histogram
	for item, late := range w.late {
		if late != notArrived && !w.plan.deadline(item).After(until) {
			h.add(late)
		}
	}
	if h.n == 0 {
		return nil
	}
	return &Lateness{P50: round(millis(h.quantile(0.5))), P99: round(millis(h.quantile(0.99))), Max: round(millis(h.max))}
}

// faults returns the number of early records, repeated records, and items without a record.
func (w *watch) faults() (early, twice, missing int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.early, w.twice, w.left
}

// await waits until every record has arrived, or for a grace period after the last deadline.
// It returns an error only if ctx ends.
func (w *watch) await(ctx context.Context, grace time.Duration) error {
	limit, cancel := context.WithDeadline(ctx, w.plan.last().Add(grace))
	defer cancel()
	select {
	case <-w.complete:
	case <-limit.Done():
	}
	return ctx.Err()
}

// perS returns the rate from the first deadline to the last arrival, for items that are due at
// once; zero unless every record has arrived.
func (w *watch) perS() float64 {
	late := w.summary(w.plan.last())
	if _, _, missing := w.faults(); w.plan.spread > 0 || missing > 0 || late == nil {
		return 0
	}
	return round(float64(w.plan.items) / (late.Max / 1000))
}

var errPreparing = errors.New("preparing took too long: is the machine busy?")

// whenPrepared calls f with an estimate of how fast preparations are. While f returns errPreparing,
// since a deadline came before all was ready, it calls f again with half of the estimate, up to
// five times in all.
func whenPrepared(perS float64, f func(perS float64) error) error {
	for least := perS / 8; ; perS /= 2 {
		if err := f(perS); !errors.Is(err, errPreparing) || perS < least {
			return err
		}
	}
}

// start sets the first deadline after preparations for n items at a rate.
func (p *plan) start(n int, perS float64) {
	needed := time.Duration(float64(n) / perS * float64(time.Second))
	p.first = time.Now().Add(needed + settleTime).Truncate(p.unit()).Add(p.unit())
}

// begin waits for the first deadline. It fails if that is nearer than spare.
func (p *plan) begin(ctx context.Context, spare time.Duration) error {
	if time.Now().After(p.first.Add(-spare)) {
		return errPreparing
	}
	return Pause(ctx, time.Until(p.first))
}

// Pause waits, or returns ctx's error.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Poll calls done until it reports true. After the limit it returns an error with the text of late.
func Poll(ctx context.Context, every, limit time.Duration, late string, done func() (bool, error)) error {
	for end := time.Now().Add(limit); ; {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s after %s", late, limit)
		}
		if err := Pause(ctx, every); err != nil {
			return err
		}
	}
}

// inOrder runs the parts of an experiment, up to the first failure.
func inOrder(ctx context.Context, parts ...func(context.Context) error) error {
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}
