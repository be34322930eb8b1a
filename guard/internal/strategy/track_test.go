package strategy

import (
	"fmt"
	"slices"
	"testing"
)

// take returns what was reported since it was called last.
func take(e *Env) (all []Progress) {
	g := e.Guard.(*stub)
	all, g.reported = g.reported, nil
	return all
}

// A pass of several segments ends when each has been read; items read ahead belong to the next
// pass. Segments of other workers do not count.
func TestProgressByRounds(t *testing.T) {
	e := newEnv()
	passes := &Track{Env: e, Doing: WholeScan, Until: RoundByRound}
	want := func(all ...Progress) {
		t.Helper()
		for i := range all {
			all[i].Doing, all[i].Unit = WholeScan, "items"
		}
		if got := take(e); !slices.Equal(got, all) {
			t.Errorf("got  %+v\nwant %+v", got, all)
		}
	}
	a, b := passes.Part(0, 4), passes.Part(0, 4)
	a.Add(100)
	b.Add(10)
	want(Progress{Done: 100, Total: 500}, Progress{Done: 110, Total: 500})
	a.End()
	want()
	a.Add(40)
	want(Progress{Done: 110, Total: 500})
	b.End()
	want(Progress{Done: 110, Total: 500, Ended: true})
	b.Add(1)
	want(Progress{Done: 41, Total: 500})
	b.Leave()
	want()
	a.Add(1)
	want(Progress{Done: 42, Total: 250})
	a.Leave()
	want(Progress{Done: 42, Total: 250, Left: true})
	passes.Part(0, 4).Leave()
	want()
}

// A worker that takes over a segment, and loses it again, reports that it has stopped before the
// end; one that had none reports nothing.
func TestProgressOfOneScan(t *testing.T) {
	e := newEnv()
	(&Track{Env: e, Doing: FirstScan, Until: OverIsCalled}).Over()
	if got := take(e); len(got) > 0 {
		t.Errorf("nothing was done, and it reports %+v", got)
	}
	scan := &Track{Env: e, Doing: FirstScan, Until: OverIsCalled}
	a, b := scan.Part(0, 2), scan.Part(0, 2)
	a.Add(5)
	a.End()
	a.Leave()
	b.Add(3)
	b.Leave()
	c := scan.Part(0, 2)
	c.Add(2)
	c.End()
	c.Leave()
	scan.Over()
	var got []string
	for _, p := range take(e) {
		got = append(got, fmt.Sprint(p.Done, p.Ended, p.Left))
	}
	if want := []string{"5 false false", "8 false false", "8 false true", "10 false false", "10 true false"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
