package guard

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/index"
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
func (f *Functions) Sweep(ctx context.Context, at time.Time) (r SweepReport, err error) {
	err = f.call(ctx, Index, func(g *Guard) {
		s := g.Stats()
		r.Removed, r.Refused, r.Spared, r.Failed, r.BadTTLs = s.Counts[Removed], s.Counts[Refused], s.Counts[Spared], s.Counts[Failed], s.Counts[BadValue]
		r.MaxLate, r.Read, r.Write = s.Lateness.Max.Seconds(), s.Read, s.Write
	}, func(ctx context.Context, g *Guard) (err error) {
		until := g.now()
		if !at.IsZero() {
			until = at.UnixMilli()
		}
		r.Through = time.UnixMilli(until).UTC()
		r.Complete, err = index.Once(ctx, g.env(), g.indexOptions(), until)
		return err
	})
	return r, err
}
