package guard

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
)

// Removals by schedules are counted like guard's own, with their lateness, from the stream's
// records. A user's deletion before the deadline is not counted, and no removal is counted twice.
func TestScheduleCountsRemovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o, events := w.scheduling(), &recorder{}
	o.Observe = events.observe
	g := w.start(o)
	w.put("fired", w.in(3600))
	w.put("deleted", w.in(3600))
	w.put("renewed", w.in(3600))
	w.put("past", w.in(-7)) // guard removes it itself
	g.awaitCount(Removed, 1)
	g.awaitSchedules(w, w.at(3600), w.at(3600), w.at(3600))
	w.remove("deleted")
	w.renew("renewed", w.in(7200)+".25") // its schedule fires at the next whole second
	g.awaitSchedules(w, w.at(3600), w.at(7201))
	w.advance(time.Hour)
	g.awaitCount(Removed, 2)
	w.advance(time.Hour + 30*time.Second)
	g.awaitCount(Removed, 3)
	w.put("another", w.in(-2)) // so that all earlier records have been read
	g.awaitCount(Removed, 4)
	got := ""
	for _, e := range events.of(Removed) {
		name := ""
		for _, n := range []string{"fired", "deleted", "renewed", "past", "another"} {
			if strings.Contains(e.Key, n) {
				name = n
			}
		}
		got += fmt.Sprintf("%s %v; ", name, e.Late)
	}
	if got != "past 7s; fired 0s; renewed 750ms; another 2s; " {
		t.Errorf("removals: %s", got)
	}
	s := g.Stats()
	if s.Counts[Removed] != 4 || s.Lateness.Count != 4 || s.Lateness.Max != 7*time.Second {
		t.Errorf("the statistics are %+v", s)
	}
	if cost := s.CostPerMillion(); !math.IsNaN(cost) {
		t.Errorf("a million removals cost %v, although the Scheduler deletes", cost)
	}
}

// A removal by the endpoint's own TTL is not one by a schedule.
func TestScheduleDoesNotCountNativeTTL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withOptions(func(o *mayfly.Options) { o.Expiry, o.ExpiryDelay = mayfly.ExpiryStrict, "" }))
	g := w.start(w.scheduling())
	w.put("a", w.in(3600))
	g.awaitSchedules(w, w.at(3600))
	w.advance(time.Hour)
	g.await("the item is gone", func() bool { return len(w.records()) == 2 })
	w.put("b", w.in(3600)) // so that the record of the removal has been read
	g.awaitSchedules(w, w.at(3600))
	if n := g.Stats().Counts[Removed]; n != 0 {
		t.Errorf("%d removals are counted", n)
	}
}

// A guard that was away counts the removals in the records that it has missed.
func TestScheduleCountsRemovalsLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", w.in(3600))
	g.awaitSchedules(w, w.at(3600))
	must(t, g.stop())
	w.advance(time.Hour)
	await(t, "the item is gone", func() bool { return !w.has("a") })
	g = w.start(w.scheduling())
	g.awaitCount(Removed, 1)
}
