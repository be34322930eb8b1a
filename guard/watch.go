package guard

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
)

// While it runs, guard describes the table periodically. The response shows whether the table is
// still the same, and the endpoint's time.

const (
	checkEach = time.Minute // between checks of the table, in real time
	// time before a deadline from which guard probes the endpoint's clock, if its bounds are wide
	soon = 10 * time.Second
	// successive useless probes that are allowed while the bounds are rough
	barrenRough = 12
	barrenSome  = 3 // and otherwise, before the pauses grow
	barrenMost  = 6 // the maximum pause is 2 to the power of it, in seconds
)

// watcher checks the table and the endpoint's clock.
type watcher struct {
	g       *Guard
	checked time.Duration // when the table was described last, by elapsed
	barren  int           // successive probes that did not narrow the bounds
	failed  int           // successive failed checks
	// ms: the width when probes for removals at the instant began; 0: they have not, or are through
	widest int64
	clock.Elapsed
}

// watchTable checks until ctx is done, or guarding is no longer possible.
func (g *Guard) watchTable(ctx context.Context) {
	w := &watcher{g: g, Elapsed: clock.Stopwatch()}
	for ctx.Err() == nil {
		if !w.pause(ctx) {
			continue
		}
		before := w.width()
		w.check(ctx)
		if w.width() > before-before/20 {
			w.barren++
		} else {
			w.barren = 0
		}
	}
}

// width returns the distance between the bounds of the endpoint's clock, in ms.
func (w *watcher) width() int64 {
	low, high, _ := w.g.endpoint.At(w.g.local.Millis())
	return high - low
}

// pause waits, and reports whether it is time for a check. It returns false if the next pause has
// changed.
func (w *watcher) pause(ctx context.Context) bool {
	check := w.checked + w.g.checkEach - w.Elapsed()
	if check <= 0 {
		return true
	}
	probe, asked := w.untilProbe()
	w.reportWidth(asked && probe < soon)
	if !asked || probe >= check {
		w.rest(ctx, check)
		return false
	}
	return w.rest(ctx, probe) && (w.width() > narrow || w.g.trusted() != nil)
}

// reportWidth reports the progress of narrowing the clock's bounds, while removals wait for it.
func (w *watcher) reportWidth(wanted bool) {
	width := w.width()
	// an endpoint that is far away cannot be known better
	tired := w.barren > barrenSome && width <= rough || w.barren >= barrenRough
	if w.widest == 0 {
		if wanted && !tired && width > rough {
			w.widest = width
		}
		return
	}
	p := Progress{
		Doing: BoundingTime, Done: max(w.widest-width, 0), Total: w.widest - narrow, Unit: "ms", Within: time.Duration(width) * time.Millisecond,
		Ended: width <= narrow,
	}
	if p.Left = !p.Ended && (tired || !wanted); p.Ended || p.Left {
		w.widest = 0
	}
	w.g.report(p)
}

// untilProbe returns how long to wait for the next useful probe; asked is false if there is none.
func (w *watcher) untilProbe() (wait time.Duration, asked bool) {
	g := w.g
	if g.trusted() != nil {
		return doubtEach, true
	}
	if g.o.LocalClock {
		return 0, false
	}
	next := g.armed.Next()
	if next == clock.Never {
		return 0, false
	}
	local := g.local.Millis()
	low, high, _ := g.endpoint.At(local)
	width := high - low
	if wait = time.Duration(min(next-(local+low), int64(time.Hour/time.Millisecond)))*time.Millisecond - soon; wait > 0 {
		return wait, true
	}
	switch {
	case width <= narrow: // until it will be wider: it grows on both sides
		return time.Duration((narrow-width+1)*nanos/(2*drift)) * time.Millisecond, true
	case width > rough && w.barren < barrenRough:
		return probeEach, true
	case w.barren > barrenSome:
		wait = time.Second << min(w.barren-barrenSome, barrenMost)
	default:
		wait = 0
	}
	// A probe is most useful when the endpoint's second turns, if its clock is in the middle of the
	// bounds: it halves them.
	middle := local + wait.Milliseconds() + (low+high)/2
	return wait + time.Duration(1000-middle%1000)*time.Millisecond, true
}

// rest waits in real time, and reports whether it waited to the end. It ends early if the next
// deadline has changed and needs probes before that end.
func (w *watcher) rest(ctx context.Context, wait time.Duration) bool {
	struck := make(chan struct{})
	timer := clock.AfterFunc(max(wait, 0), func() { close(struck) })
	defer timer.Stop()
	for {
		select {
		case <-struck:
			return true
		case <-ctx.Done():
			return false
		case <-w.g.armed.Nearer:
			if at := w.g.armed.Next(); at-w.g.now() < (soon+wait).Milliseconds() || w.g.trusted() != nil && wait > doubtEach {
				return false
			}
		}
	}
}

// check describes the table and checks the response.
func (w *watcher) check(ctx context.Context) {
	g := w.g
	now, err := g.describe(ctx)
	w.checked = w.Elapsed()
	switch {
	case ctx.Err() != nil:
	case err == nil && !g.table.Same(now):
		g.fail(&Problem{Code: NewTable, Message: fmt.Sprintf("table %s was deleted and created again while it was guarded", g.o.Table),
			Next: "start guard again to guard the new table"})
	case err == nil:
		w.failed = 0
		if p := g.attributeGone(ctx); p != nil {
			g.fail(p)
		}
	default:
		if p := g.problem("DescribeTable", err); p != nil {
			g.fail(g.gone(p))
			return
		}
		w.failed++
		g.log.Warn("DescribeTable fails for now", "table", g.o.Table, "error", err)
		clock.Pause(min(time.Second<<min(w.failed, 6), time.Minute), ctx.Done())
	}
}

// attributeGone returns the problem if the TTL attribute came from the table's native TTL, and that
// has changed. An operator who switches TTL off wants nothing to expire.
func (g *Guard) attributeGone(ctx context.Context) *Problem {
	if !g.attributeFound {
		return nil
	}
	now, err := table.TTLAttribute(ctx, g.db, g.o.Table)
	if err != nil {
		return g.problem("DescribeTimeToLive", err)
	}
	if now == g.o.Attribute {
		return nil
	}
	state := "it is off"
	if now != "" {
		state = "it is " + now
	}
	return &Problem{Code: NoAttribute, Message: fmt.Sprintf("the TTL attribute of table %s was %s when guard started; now %s", g.o.Table, g.o.Attribute, state),
		Next: "name the attribute with the deadlines (--attribute), or start guard again to use the table's own TTL attribute"}
}
