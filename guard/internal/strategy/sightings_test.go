package strategy

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// stub is guard without an endpoint, whose clock stands still.
type stub struct {
	Guard
	set      *armed.Set
	arms     atomic.Int64
	reported []Progress
}

func newEnv() *Env {
	set := armed.New()
	return &Env{Guard: &stub{set: set}, Armed: set}
}

func (g *stub) Arm(e armed.Entry) {
	g.arms.Add(1)
	g.set.Arm(e)
}

func (g *stub) Now() int64          { return 500 }
func (g *stub) Items() int64        { return 1000 }
func (g *stub) Progress(p Progress) { g.reported = append(g.reported, p) }

// A page may be read while a removal ends. The entry is always either armed or in over, or it would
// be removed a second time.
func TestSightingsForgetNothingInBetween(t *testing.T) {
	env := newEnv()
	s := env.NewSightings()
	e := armed.Entry{Key: "k", At: 1000}
	s.See(e)
	for _, how := range []armed.Outcome{armed.Removed, armed.Refused, armed.Failed, armed.Spared} {
		flights, _ := env.Armed.Take(e.At, 1)
		if len(flights) != 1 {
			t.Fatalf("%d entries are due", len(flights))
		}
		env.Armed.End(flights[0], how)
		s.See(e)
		if _, next := env.Armed.Take(e.At, 0); next <= e.At {
			t.Errorf("armed again after it was %d", how)
		}
		e.At += 1000 // another deadline is news
		s.See(e)
	}
}

// A worker that catches up reads the same pages as its present sweep, at the same time. Each
// deadline must be armed once, or the item is removed twice.
func TestSightingsArmOnceForReadersAtTheSameTime(t *testing.T) {
	const entries = 20_000
	env := newEnv()
	s := env.NewSightings()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for i := range entries {
				s.See(armed.Entry{Key: armed.Key(fmt.Sprint(i)), At: 1000})
			}
		})
	}
	readers.Wait()
	if n := env.Guard.(*stub).arms.Load(); n != entries {
		t.Errorf("%d deadlines were armed %d times", entries, n)
	}
}

// The memory for finished deadlines is bounded, and a forgotten deadline is not lost: it is armed
// again.
func TestSightingsAreBounded(t *testing.T) {
	e := newEnv()
	s := e.NewSightings()
	s.most = 10
	for i := range 100 {
		s.Remember(armed.Entry{Key: armed.Key(fmt.Sprint(i)), At: 1000, Armer: s}, armed.Spared)
		if n := len(s.mu.over); n > s.most {
			t.Fatalf("%d are remembered", n)
		}
	}
	for i := range 100 {
		s.See(armed.Entry{Key: armed.Key(fmt.Sprint(i)), At: 1000})
	}
	if n := e.Armed.Len(); n != 90 {
		t.Errorf("%d of 100 are armed again, and 10 are remembered", n)
	}
}
