package guard

import (
	"math"
	"time"
)

// Stats is what guard has done since it was made, and what it waits for.
type Stats struct {
	Strategy Strategy            // the one that runs; Auto before
	Counts   [whatCount]int64    // events by What; units are not counted here
	Lateness Lateness            // of removals
	Read     float64             // units consumed by reads whose answers have told of it
	Write    float64             // and by writes
	Armed    int                 // deadlines that are waited for in memory
	Due      int                 // of these, those that are past
	Overdue  time.Duration       // how long the oldest of those is past
	Next     time.Time           // the earliest deadline that is not past; zero: none
	Upcoming [UpcomingSpan]int64 // deadlines per minute, from now on, of what is armed
	GivenUp  int                 // items whose removal the endpoint or the archive did not take when it was last tried, and that are tried again ever more seldom
	Rate     float64             // removals a second that the endpoint is asked for at most; +Inf: no bound

	// Ahead are the bounds of the endpoint's clock minus this machine's, at the most MaxSkew; both 0 before it is known.
	Ahead [2]time.Duration
}

// UpcomingSpan is how many minutes Stats looks ahead.
const UpcomingSpan = 60

// Prices of us-east-1 on demand, standard table class, since November 2024: dollars per million units. They are for a rough idea; other regions and provisioned capacity differ.
const (
	PriceRead  = 0.125
	PriceWrite = 0.625
)

// CostPerMillion estimates what a million removals cost, in dollars, from the units that have been consumed; NaN before the first.
func (s Stats) CostPerMillion() float64 {
	if s.Counts[Removed] == 0 {
		return math.NaN()
	}
	return (s.Read*PriceRead + s.Write*PriceWrite) / float64(s.Counts[Removed])
}

// LatenessBounds are the upper bounds of the histogram's buckets. One more bucket has what is above them all.
var LatenessBounds = [...]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond, 100 * time.Millisecond,
	150 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
	10 * time.Minute, time.Hour, 24 * time.Hour,
}

// Lateness is a histogram of how long after their deadlines items were gone, by the upper bound of the endpoint's clock.
type Lateness struct {
	Buckets [len(LatenessBounds) + 1]int64 // numbers of removals, each in one bucket
	Count   int64
	Sum     time.Duration
	Max     time.Duration
}

// Quantile gives the bound below which a part q of removals was: the upper bound of a bucket, or the maximum.
func (l Lateness) Quantile(q float64) time.Duration {
	rank, sum := int64(math.Ceil(q*float64(l.Count))), int64(0)
	for i, n := range l.Buckets {
		if sum += n; sum >= rank && i < len(LatenessBounds) {
			return min(LatenessBounds[i], l.Max)
		}
	}
	return l.Max
}

// Stats tells how things stand. It walks over all that is armed: a few ms for a million.
func (g *Guard) Stats() Stats {
	s := Stats{Rate: g.pace.limit()}
	_, s.Strategy = g.Guarded()
	for i := range s.Counts {
		s.Counts[i] = g.counts[i].Load()
	}
	g.late.mu.Lock()
	s.Lateness = g.late.mu.Lateness
	g.late.mu.Unlock()
	g.units.mu.Lock()
	s.Read, s.Write = g.units.mu.read, g.units.mu.write
	g.units.mu.Unlock()
	s.GivenUp = g.given.count(g.local.Millis())
	now := g.now()
	g.armed.tally(now, &s)
	local := g.local.Millis()
	if low, high, known := g.endpoint.bounds(local); known {
		ahead := local - g.wall.Millis()
		s.Ahead = [2]time.Duration{time.Duration(low+ahead) * time.Millisecond, time.Duration(high+ahead) * time.Millisecond}
	}
	return s
}

// tally counts what is armed, page by page, so that nobody is kept waiting.
func (a *armed) tally(now int64, s *Stats) {
	oldest, next := now, int64(math.MaxInt64)
	for page := 0; ; page++ {
		a.mu.Lock()
		if page >= len(a.mu.slots) {
			s.Armed = a.mu.byKey.n
			a.mu.Unlock()
			break
		}
		for i := range a.mu.slots[page] {
			slot := &a.mu.slots[page][i]
			switch {
			case slot.key == "":
			case slot.at <= now:
				s.Due++
				oldest = min(oldest, slot.at)
			default:
				next = min(next, slot.at)
				if minute := (slot.at - now) / 60_000; minute < UpcomingSpan {
					s.Upcoming[minute]++
				}
			}
		}
		a.mu.Unlock()
	}
	s.Overdue = time.Duration(now-oldest) * time.Millisecond
	if next != math.MaxInt64 {
		s.Next = time.UnixMilli(next).UTC()
	}
}

// observe counts an event, and tells whoever wants to know.
func (g *Guard) observe(e Event) {
	g.counts[e.What].Add(1)
	if e.What == Consumed {
		g.units.mu.Lock()
		g.units.mu.read += e.Read
		g.units.mu.write += e.Write
		g.units.mu.Unlock()
	}
	if g.o.Observe != nil {
		g.o.Observe(e)
	}
}

// about is an event about a key, which is spelled out only where somebody wants to know.
func (g *Guard) about(what What, k key) Event {
	if g.o.Observe == nil {
		return Event{What: what}
	}
	return Event{What: what, Key: g.keyJSON(k)}
}
