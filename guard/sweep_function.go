package guard

import (
	"context"
	"sync"
	"time"
)

// SweepReport is the result of one sweep.
type SweepReport struct {
	Through time.Time `json:"through"` // the instant up to which was swept
	// all removals due by then have ended, except for items that only the patrol finds; else the
	// next sweep continues
	Complete bool    `json:"complete"`
	Removed  int64   `json:"removed"`
	Refused  int64   `json:"refused"` // renewed or gone meanwhile
	Spared   int64   `json:"spared"`  // of a dry run
	Failed   int64   `json:"failed"`
	BadTTLs  int64   `json:"badTTLs"` // items whose TTL is not epoch seconds; they stay
	MaxLate  float64 `json:"maxLate"` // seconds from the deadline to the removal, at most
	Read     float64 `json:"read"`    // units consumed
	Write    float64 `json:"write"`
}

// Sweep is the index strategy as a function for a schedule: it removes the items due at an instant,
// from the last sweep's end on, and returns. Each call also reads a few pages of a patrol of the
// index. The patrol finds items that no sweep queries, or that expired more than 10,000 windows
// ago, or more than a day before the first call. A zero time is the present. Sweep waits for a
// later instant, so items go at their deadlines instead of at the next sweep. It saves its progress
// and ends a little before ctx does.
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

// tally counts the events of a sweep.
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
