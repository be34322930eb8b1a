package guard

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// progresses collects the calls of Options.Progress.
type progresses struct {
	mu  sync.Mutex
	all []Progress // guarded by mu
}

func (p *progresses) add(one Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, one)
}

// take returns the progress of one kind of work so far, and forgets it.
func (p *progresses) take(doing Doing) (some []Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		if one.Doing == doing {
			some = append(some, one)
		}
	}
	p.all = nil
	return some
}

// last waits for the end of some work, and returns its last progress. Done never decreases before.
func (p *progresses) last(r *guarding, doing Doing) (last Progress) {
	r.t.Helper()
	r.await(string(doing)+" has ended", func() bool {
		for _, one := range p.take(doing) {
			if one.Done < last.Done {
				r.t.Errorf("%+v after %+v", one, last)
			}
			if last = one; last.Ended {
				return true
			}
		}
		return false
	})
	return last
}

// Each strategy reports the progress of its long work, and an estimate of the total.
func TestProgress(t *testing.T) {
	t.Parallel()
	const items = 60
	firstScan := Progress{Doing: FirstScan, Done: items, Total: items, Unit: "items", Ended: true}
	for _, c := range []struct {
		name    string
		table   func(*world)
		options func(*world) Options
		want    Progress
	}{
		{"stream", nil, func(w *world) Options { return w.options(Stream) }, firstScan},
		{"schedule", nil, (*world).scheduling, firstScan},
		{"scan", nil, (*world).scanOptions, Progress{Doing: WholeScan, Done: items, Total: items, Unit: "items", Ended: true}},
		{"index of windows", withWindows, func(w *world) Options { return w.options(Index) }, Progress{Doing: CatchUp, Done: 66, Total: 66, Unit: "windows", Ended: true}},
		{"index of shards", withShards, func(w *world) Options {
			o := w.options(Index)
			o.Shards = 1
			return o
		}, Progress{Doing: CatchUp, Done: items / 3, Unit: "items", Ended: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var with []func(*world)
			if c.table != nil {
				with = append(with, c.table)
			}
			w := newWorld(t, with...)
			for i := range items {
				// a third each: without, so long expired that only catching up finds it, and
				// distant
				ttl := [...]string{"", w.in(-4000), w.in(1e6)}[i%3]
				switch {
				case ttl == "":
					w.put(fmt.Sprint(i), ttl)
				case c.name == "index of shards":
					w.putShard(fmt.Sprint(i), ttl, "0")
				default:
					w.putWindowed(fmt.Sprint(i), ttl)
				}
			}
			var reported progresses
			o := c.options(w)
			o.Segments, o.Progress = 1, reported.add
			start := w.start
			if o.Strategy == Index { // the patrol may be there first
				start = w.startSweeps
			}
			r := start(o)
			if got := reported.last(r, c.want.Doing); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// The accuracy of the endpoint's clock is reported while removals wait for it, and not afterwards. In
// virtual time the first answers come at one instant, so that their Dates say no more than the second.
func TestProgressOfTheClock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(w *world) {
		w.dated(1)
		w.put("a", w.in(3))
		var reported progresses
		o := w.scanOptions()
		o.Progress = reported.add
		r := w.start(o)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		all := reported.take(BoundingTime)
		if len(all) == 0 || !all[len(all)-1].Ended {
			t.Errorf("2 seconds after the start it has reported %+v", all)
		}
		for _, p := range all {
			if p.Unit != "ms" || p.Total < rough-narrow || p.Within <= 0 || p.Done < 0 || p.Ended != (p.Within <= narrow*time.Millisecond) {
				t.Errorf("it reports %+v", p)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if late := reported.take(BoundingTime); len(late) > 0 || w.count() > 0 {
			t.Errorf("once the clock is known it reports %+v, and %d items are left", late, w.count())
		}
		must(t, r.stop())
	})
}
