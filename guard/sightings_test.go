package guard

import (
	"fmt"
	"testing"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// A page may be read while a removal ends. The entry is always either armed or in over, or it would
// be removed a second time.
func TestSightingsForgetNothingInBetween(t *testing.T) {
	w := newWorld(t)
	g, err := New(w.options(Auto))
	must(t, err)
	s := newSightings(g)
	e := armed.Entry{Key: "k", At: 1000}
	s.see(e)
	for _, how := range []armed.Outcome{armed.Removed, armed.Refused, armed.Failed, armed.Spared} {
		flights, _ := g.armed.Take(e.At, 1)
		if len(flights) != 1 {
			t.Fatalf("%d entries are due", len(flights))
		}
		g.armed.End(flights[0], how)
		s.see(e)
		if _, next := g.armed.Take(e.At, 0); next <= e.At {
			t.Errorf("armed again after it was %d", how)
		}
		e.At += 1000 // another deadline is news
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
		s.Remember(armed.Entry{Key: key(fmt.Sprint(i)), At: 1000, Armer: s}, armed.Spared)
		if n := len(s.mu.over); n > s.most {
			t.Fatalf("%d are remembered", n)
		}
	}
	for i := range 100 {
		s.see(armed.Entry{Key: key(fmt.Sprint(i)), At: 1000})
	}
	if n := g.armed.Len(); n != 90 {
		t.Errorf("%d of 100 are armed again, and 10 are remembered", n)
	}
}
