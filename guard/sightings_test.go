package guard

import (
	"fmt"
	"testing"
)

// A page may be read while a removal ends. The entry is always either armed or in over, or it would
// be removed a second time.
func TestSightingsForgetNothingInBetween(t *testing.T) {
	w := newWorld(t)
	g, err := New(w.options(Auto))
	must(t, err)
	s := newSightings(g)
	e := entry{key: "k", at: 1000}
	s.see(e)
	for _, how := range []outcome{removed, refused, failed, spared} {
		flights, _ := g.armed.take(e.at, 1)
		if len(flights) != 1 {
			t.Fatalf("%d entries are due", len(flights))
		}
		g.armed.end(flights[0], how)
		s.see(e)
		if _, next := g.armed.take(e.at, 0); next <= e.at {
			t.Errorf("armed again after it was %d", how)
		}
		e.at += 1000 // another deadline is news
		s.see(e)
	}
}

// The memory for finished deadlines is bounded, and a forgotten deadline is not lost: it is armed
// again.
func TestSightingsAreBounded(t *testing.T) {
	w := newWorld(t)
	g, err := New(w.options(Auto))
	must(t, err)
	s := newSightings(g)
	s.most = 10
	for i := range 100 {
		s.remember(entry{key: key(fmt.Sprint(i)), at: 1000, armer: s}, spared)
		if n := len(s.mu.over); n > s.most {
			t.Fatalf("%d are remembered", n)
		}
	}
	for i := range 100 {
		s.see(entry{key: key(fmt.Sprint(i)), at: 1000})
	}
	if n := g.armed.len(); n != 90 {
		t.Errorf("%d of 100 are armed again, and 10 are remembered", n)
	}
}
