package guard

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// With a store of its own, guard makes one write at the endpoint for each expired item, and no
// other: none for renewed items, leases or checkpoints.
func TestStreamWritesOncePerExpiredItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var p cable
		w.db, w.streams = p.db(w.db), p.streams(w.streams)
		store := localStore(t)
		o := w.localOptions(store)
		w.fill("old", 100, w.in(50))
		w.start(o)
		awaitScanned(t, o.Deadlines)
		w.fill("gone", 200, w.in(70))
		w.fill("renewed", 200, w.in(70))
		w.fill("late", 10, w.in(0))
		for i := range int64(5) {
			w.fill("renewed", 200, w.in(80+i))
		}
		await(t, "all is known", func() bool { return len(notedIn(t, o.Deadlines)) == 500 })
		for range 84 {
			w.advance(time.Second)
			w.settle()
		}
		await(t, "all is gone", func() bool { return w.count() == 0 })
		if got, want := p.writes(), fmt.Sprint(100+200+200+10+84*12, " DeleteItem items"); got != want {
			t.Errorf("the writes at the endpoint: %s; want %s", got, want)
		}
		awaitNothingNoted(t, o.Deadlines)
	})
}

// A known deadline is never lost: a worker is killed before or after any of its calls, and the next
// worker removes all due items, and nothing else.
func TestStreamSurvivesCrashes(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, w *world, o Options) {
		crashed := true
		calls := 0
		for round := 0; crashed && round < 100; round++ {
			crashed = w.crash(o, round, calls)
			calls += 1 + calls/6
			if testing.Short() {
				calls += calls / 2
			}
		}
		if crashed {
			t.Errorf("a worker that is killed after %d calls has not removed all: the test is too small", calls)
		}
		w.start(o)
		w.advance(10 * time.Second)
		await(t, "all is gone that is due", func() bool { return len(w.others("changed")) == 0 })
		w.settle()
		if got := strings.Count(w.names(), "changed"); got < 10 {
			t.Errorf("%d of the items are there that were renewed", got)
		}
		w.advance(28 * time.Hour)
		w.awaitNames("")
	})
}

// crash lets a worker make so many calls while items come, are renewed and come due; in odd rounds
// the last call still reaches the endpoint. It reports whether the worker died before all items
// were removed.
func (w *world) crash(o Options, round, calls int) bool {
	w.t.Helper()
	var p cable
	die := func(string, string) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if calls--; calls >= 0 {
			return nil
		}
		p.cut = true
		return errCut
	}
	p.before = die
	if round%2 == 1 {
		p.before, p.after = nil, die
	}
	o.DB, o.Streams = p.db(w.db), p.streams(w.streams)
	if o.Deadlines != nil {
		o.Deadlines = p.db(o.Deadlines)
	}
	name := func(what string) string { return fmt.Sprint(what, round) }
	w.put(name("before"), w.in(2))
	w.put(name("changed"), w.in(2))
	r := w.start(o)
	w.put(name("after"), w.in(3))
	w.renew(name("changed"), w.in(100_000))
	w.advance(time.Second)
	w.put(name("due"), w.in(0))
	w.advance(2 * time.Second)
	await(w.t, "the worker dies, or all is removed", func() bool { return p.isCut() || len(w.others("changed")) == 0 })
	died := p.isCut()
	p.setCut(true)
	_ = r.stop()
	if !w.has(name("changed")) {
		w.t.Fatalf("in round %d, a renewed item is gone", round)
	}
	return died
}

// others are the names of the items that do not begin like this.
func (w *world) others(prefix string) (names []string) {
	for name := range strings.FieldsSeq(w.names()) {
		if !strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// Items that came due while no worker ran go when one runs again, although their records were done
// long ago.
func TestStreamRestart(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, w *world, o Options) {
		r := w.start(o)
		awaitScanned(t, o.withDefaults().Deadlines)
		w.fill("first", 100, w.in(100)) // so that there are watermarks
		w.settle()
		for range 20 {
			w.advance(10 * time.Second)
			w.settle()
		}
		w.put("soon", w.in(100))
		w.put("later", w.in(5000))
		w.put("last", w.in(20_000))
		w.settle()
		must(t, r.stop())
		w.advance(3 * time.Hour)
		w.awaitNames("last later soon")
		w.start(o)
		w.awaitNames("last")
	})
}
