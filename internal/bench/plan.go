package bench

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// plan has the deadlines of a table's items.
type plan struct {
	first  time.Time     // deadline, a whole millisecond
	spread time.Duration // from the first deadline to the last; 0: all are equal
	items  int
	// the endpoint accepts fractions of a second; otherwise deadlines are rounded up to whole
	// seconds
	millis bool
}

func (p *plan) deadline(item int) time.Time {
	t := p.first.Add(time.Duration(float64(p.spread) * float64(item) / float64(p.items)))
	if p.millis {
		return t.Truncate(time.Millisecond)
	}
	return t.Add(time.Second - 1).Truncate(time.Second)
}

// text returns the value of an item's TTL attribute.
func (p *plan) text(item int) string {
	ms := p.deadline(item).UnixMilli()
	if p.millis {
		return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
	}
	return fmt.Sprint(ms / 1000)
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
