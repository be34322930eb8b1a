package guard

import (
	"context"
	"sync"
	"time"
)

// SweepReport is what one sweep has done.
type SweepReport struct {
	Through  time.Time `json:"through"`  // the instant up to which was swept
	Complete bool      `json:"complete"` // everything due up to there has ended, but for what the patrol has yet to find. Else the next sweep goes on where this one has stopped
	Removed  int64     `json:"removed"`
	Refused  int64     `json:"refused"` // renewed or gone meanwhile
	Spared   int64     `json:"spared"`  // of a dry run
	Failed   int64     `json:"failed"`
	BadTTLs  int64     `json:"badTTLs"` // items whose TTL is no number of epoch seconds, and which stay
	MaxLate  float64   `json:"maxLate"` // seconds from the deadline to the removal, at most
	Read     float64   `json:"read"`    // units consumed
	Write    float64   `json:"write"`
}

// Sweep is the index strategy as a function that a schedule calls: it removes everything that is due at an instant, from where the last sweep has come to, and
// ends. What lies further back than 10,000 windows, or on the first call than a day, or where no sweep looks, is found by a patrol of the index, of which each call makes a few pages. The zero time is the present; a later instant than the present is waited for, so items go at their deadlines and not at the next sweep's. Sweep ends a little before ctx does,
// and saves how far it has come.
func Sweep(ctx context.Context, o Options, at time.Time) (SweepReport, error) {
	return NewFunctions(o).Sweep(ctx, at)
}

// Sweep is the function of that name.
func (f *Functions) Sweep(ctx context.Context, at time.Time) (SweepReport, error) {
	var t tally
	err := f.call(ctx, t.watch, func(ctx context.Context, g *Guard) error {
		s := &oneSweep{indexing: newIndexing(g), at: g.now()}
		if !at.IsZero() {
			s.at = at.UnixMilli()
		}
		err := s.run(ctx)
		t.end(time.UnixMilli(s.at).UTC(), err == nil && s.complete)
		return err
	})
	return t.report(), err
}

// tally counts what a sweep does.
type tally struct {
	mu sync.Mutex
	r  SweepReport // guarded by mu
}

// watch counts events before they are passed on.
func (t *tally) watch(next func(Event)) func(Event) {
	return func(e Event) {
		t.count(e)
		if next != nil {
			next(e)
		}
	}
}

func (t *tally) count(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.What {
	case Removed:
		t.r.Removed++
		t.r.MaxLate = max(t.r.MaxLate, e.Late.Seconds())
	case Refused:
		t.r.Refused++
	case Spared:
		t.r.Spared++
	case Failed:
		t.r.Failed++
	case BadValue:
		t.r.BadTTLs++
	case Consumed:
		t.r.Read += e.Read
		t.r.Write += e.Write
	}
}

func (t *tally) end(through time.Time, complete bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.r.Through, t.r.Complete = through, complete
}

func (t *tally) report() SweepReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.r
}
