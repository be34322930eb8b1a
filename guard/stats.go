package guard

import (
	"math"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/clock"
)

// Stats is the work of a guard since New, and its present state.
type Stats struct {
	Strategy Strategy           // the running one; Auto before Ready
	Reason   string             // why Auto has chosen Scan; else "", and before Ready
	Counts   [whatCount]int64   // events by What; Consumed counts responses, not units
	Lateness Lateness           // of removals
	Read     float64            // units consumed by reads, as far as responses contain them
	Write    float64            // and by writes
	Armed    int                // deadlines that are waited for in memory
	Due      int                // armed deadlines that have passed
	Overdue  time.Duration      // age of the oldest of those
	Next     time.Time          // the earliest deadline that is not past; zero: none
	Upcoming [LookMinutes]int64 // armed deadlines per minute from now on
	// items whose last removal the endpoint or the archive rejected; guard retries with growing
	// pauses
	GivenUp int
	// outcomes of removals that Options.Undo will lack, because it was not written for too long
	OutcomesDropped int64

	Rate float64 // removals a second that the endpoint is asked for at most; +Inf: no bound

	// Ahead has the bounds of the endpoint's clock minus this machine's; both 0 before it is known.
	Ahead [2]time.Duration
}

// LookMinutes is the number of minutes in Stats.Upcoming, and the maximum that Look counts.
const LookMinutes = 60

// Prices of us-east-1 on demand, standard table class, since November 2024: dollars per million
// units. Other regions and provisioned capacity differ.
const (
	PriceRead  = 0.125
	PriceWrite = 0.625
)

// CostPerMillion returns an estimate of the price of a million removals, in dollars, from the units
// consumed; NaN before the first removal, and with Schedule, since the Scheduler's deletions consume
// units that guard does not see.
func (s Stats) CostPerMillion() float64 {
	if s.Counts[Removed] == 0 || s.Strategy == Schedule {
		return math.NaN()
	}
	return (s.Read*PriceRead + s.Write*PriceWrite) / float64(s.Counts[Removed])
}

// LatenessBounds are the upper bounds of the histogram's buckets. One more bucket holds the later
// removals.
var LatenessBounds = [...]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond, 100 * time.Millisecond,
	150 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
	10 * time.Minute, time.Hour, 24 * time.Hour,
}

// Lateness is a histogram of the time from deadline to removal, by the upper bound of the
// endpoint's clock.
type Lateness struct {
	Buckets [len(LatenessBounds) + 1]int64 // numbers of removals, each in one bucket
	Count   int64
	Sum     time.Duration
	Max     time.Duration
}

// Quantile returns an upper bound of the lateness of a part q of the removals: the bound of a
// bucket, or the maximum.
func (l Lateness) Quantile(q float64) time.Duration {
	rank, sum := int64(math.Ceil(q*float64(l.Count))), int64(0)
	for i, n := range l.Buckets {
		if sum += n; sum >= rank && i < len(LatenessBounds) {
			return min(LatenessBounds[i], l.Max)
		}
	}
	return l.Max
}

// Stats returns the present statistics. It visits all armed deadlines: a few ms for a million.
func (g *Guard) Stats() Stats {
	s := Stats{Rate: g.pace.Limit()}
	if _, s.Strategy = g.Guarded(); s.Strategy != Auto {
		s.Reason = g.readiness.reason
	}
	for i := range s.Counts {
		s.Counts[i] = g.counts[i].Load()
	}
	g.totals.mu.Lock()
	s.Lateness, s.Read, s.Write = g.totals.mu.lateness, g.totals.mu.read, g.totals.mu.write
	g.totals.mu.Unlock()
	s.GivenUp = g.given.count(g.local.Millis())
	if g.undo != nil {
		s.OutcomesDropped = g.undo.Dropped()
	}
	now := g.now()
	due, oldest, next := g.armed.Tally(now, s.Upcoming[:])
	s.Armed, s.Due = g.armed.Len(), due
	if due > 0 {
		s.Overdue = time.Duration(now-oldest) * time.Millisecond
	}
	if next != clock.Never {
		s.Next = time.UnixMilli(next).UTC()
	}
	local := g.local.Millis()
	if low, high, known := g.endpoint.At(local); known {
		ahead := local - g.wall.Millis()
		s.Ahead = [2]time.Duration{time.Duration(low+ahead) * time.Millisecond, time.Duration(high+ahead) * time.Millisecond}
	}
	return s
}

// observe counts an event and calls Options.Observe, if set.
func (g *Guard) observe(e Event) {
	g.counts[e.What].Add(1)
	if e.What == Consumed {
		g.totals.addUnits(e.Read, e.Write)
	}
	if g.o.Observe != nil {
		g.o.Observe(e)
	}
}

// about returns an event about a key. It renders the key only for Options.Observe.
func (g *Guard) about(what What, k armed.Key) Event {
	if g.o.Observe == nil {
		return Event{What: what}
	}
	return Event{What: what, Key: g.table.KeyJSON(k)}
}
