package guard

import (
	"fmt"
	"slices"
	"sync"
	"testing"
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

// A pass of several segments ends when each has been read; items read ahead belong to the next
// pass. Segments of other workers do not count.
func TestProgressByRounds(t *testing.T) {
	g, err := New(newWorld(t).options(Scan))
	must(t, err)
	g.items.Store(1000)
	var reported progresses
	g.o.Progress = reported.add
	passes := &track{g: g, doing: WholeScan, until: roundByRound}
	want := func(all ...Progress) {
		t.Helper()
		for i := range all {
			all[i].Doing, all[i].Unit = WholeScan, "items"
		}
		if got := reported.take(WholeScan); !slices.Equal(got, all) {
			t.Errorf("got  %+v\nwant %+v", got, all)
		}
	}
	a, b := passes.part(0, 4), passes.part(0, 4)
	a.add(100)
	b.add(10)
	want(Progress{Done: 100, Total: 500}, Progress{Done: 110, Total: 500})
	a.end()
	want()
	a.add(40)
	want(Progress{Done: 110, Total: 500})
	b.end()
	want(Progress{Done: 110, Total: 500, Ended: true})
	b.add(1)
	want(Progress{Done: 41, Total: 500})
	b.leave()
	want()
	a.add(1)
	want(Progress{Done: 42, Total: 250})
	a.leave()
	want(Progress{Done: 42, Total: 250, Left: true})
	passes.part(0, 4).leave()
	want()
}

// A worker that takes over a segment, and loses it again, reports that it has stopped before the
// end; one that had none reports nothing.
func TestProgressOfOneScan(t *testing.T) {
	g, err := New(newWorld(t).options(Stream))
	must(t, err)
	var reported progresses
	g.o.Progress = reported.add
	(&track{g: g, doing: FirstScan, until: overIsCalled}).over()
	if got := reported.take(FirstScan); len(got) > 0 {
		t.Errorf("nothing was done, and it reports %+v", got)
	}
	scan := &track{g: g, doing: FirstScan, until: overIsCalled}
	a, b := scan.part(0, 2), scan.part(0, 2)
	a.add(5)
	a.end()
	a.leave()
	b.add(3)
	b.leave()
	c := scan.part(0, 2)
	c.add(2)
	c.end()
	c.leave()
	scan.over()
	var got []string
	for _, p := range reported.take(FirstScan) {
		got = append(got, fmt.Sprint(p.Done, p.Ended, p.Left))
	}
	if want := []string{"5 false false", "8 false false", "8 false true", "10 false false", "10 true false"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The accuracy of the endpoint's clock is reported while removals wait for it, and not afterwards.
func TestProgressOfTheClock(t *testing.T) {
	w := newWorld(t, overHTTP, inRealTime)
	w.put("a", w.in(3))
	var reported progresses
	o := w.scanOptions()
	o.Progress = reported.add
	r := w.start(o)
	var all []Progress
	r.await("the clock is known", func() bool {
		all = append(all, reported.take(BoundingTime)...)
		return len(all) > 0 && (all[len(all)-1].Ended || all[len(all)-1].Left)
	})
	for _, p := range all {
		if p.Unit != "ms" || p.Total < rough-narrow || p.Within <= 0 || p.Done < 0 || p.Ended != (p.Within <= narrow*time.Millisecond) {
			t.Errorf("it reports %+v", p)
		}
	}
}
