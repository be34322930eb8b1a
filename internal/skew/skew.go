// Package skew bounds how far the clock of an endpoint is from the local one, by the Date headers of its answers.
//
// Each answer tells the endpoint's clock in whole seconds, by its Date header. The endpoint made the
// header at some instant between those at which the request was sent and the answer was there, and its clock then showed the header's second. So each answer gives an interval in which
// the offset lies, endpoint minus local, about a second wide; what several have in common is narrower, and what an answer around a second's turn says is very narrow.
//
//	date − received ≤ offset < date + 1 s − sent
//
// The local clock is monotonic: steps of the wall clock mean nothing to it. It may run faster or slower than the endpoint's, by at most Drift, so an interval widens as it ages.
package skew

import (
	"net/http"
	"sync"
)

const (
	// Drift is how many ns a clock gains or loses in a ms at most: 200 ppm.
	Drift = 200

	nanos    = 1_000_000 // in a ms
	century  = 100 * 365 * 24 * 60 * 60 * 1000
	disputed = 1000           // ms: contradictions of up to so much are taken for several clocks behind one address, larger ones for a step of the clock
	forgiven = 10 * 60 * 1000 // ms without contradictions after which half of their extent is forgotten
)

// Bounds is what is known of how far an endpoint's clock is ahead of the local one. All instants are in ms. It may be used by many goroutines.
type Bounds struct {
	mu struct {
		sync.Mutex
		known     bool
		low, high int64 // in ns, so that no rounding adds up over many answers; they hold at the local instant at
		at        int64
		slack     int64 // by how much clocks behind the endpoint's address are known to differ; the lower bound is that of the last among them
		clashed   int64 // local instant of the last contradiction
		claim     claim // of an answer that nobody has agreed with yet
	}
}

// claim is an interval further ahead than what was known allows. One answer, of one machine or proxy with a wrong clock, must not make anything due: it counts once a later one agrees.
type claim struct {
	made             bool
	low, high, since int64 // the offset's interval in ns, and the local instant at which the answer was there
}

// agrees reports whether an answer to a request that was sent at an instant says the same.
func (c claim) agrees(low, high, sent int64) bool {
	by := max(sent-c.since, 0) * Drift
	return c.made && sent >= c.since && low <= c.high+by && high >= c.low-by
}

// Saw takes in the Date header of an answer, and when, by the local clock, its request was sent and it was there. It gives by how many ms the endpoint's clock must have been set, where
// that is the only explanation, and whether the lower bound is notably higher than before. A header that is no date says nothing.
func (c *Bounds) Saw(date string, sent, received int64) (stepped int64, rose bool) {
	if date == "" {
		return 0, false
	}
	t, err := http.ParseTime(date)
	if err != nil {
		return 0, false
	}
	at := min(max(t.UnixMilli(), sent-century), sent+century) // as far off as can be, and no more than a number can hold
	return c.take(at, sent, received)
}

// take narrows the interval. It gives by how much the endpoint's clock must have been set, where that is the only explanation, and whether the lower bound is notably
// higher than before.
func (c *Bounds) take(date, sent, received int64) (stepped int64, rose bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.slack > 0 && received-c.mu.clashed > forgiven {
		c.mu.slack, c.mu.clashed = c.mu.slack/2, received
	}
	// The local clock's fraction of a ms counts against us: the answer was there up to a ms after received.
	// The header was made at some instant since the request was sent: so long the clocks may have drifted.
	since := max(received-sent, 0) * Drift
	low, high := (date-received-1-c.mu.slack)*nanos-since, (date+1000-sent)*nanos+since
	if !c.mu.known {
		c.mu.known, c.mu.low, c.mu.high, c.mu.at = true, low, high, received
		return 0, true
	}
	oldLow, oldHigh := c.atLocked(received)
	newLow, newHigh := max(oldLow, low), min(oldHigh, high)
	claimed := c.mu.claim
	c.mu.claim = claim{}
	switch gap := newLow - newHigh; {
	case gap < 0:
	case low > oldHigh && !claimed.agrees(low, high, sent): // rather late than early
		c.mu.claim = claim{true, low, high, received}
		newLow, newHigh = oldLow, oldHigh
	case gap <= disputed*nanos: // the same
		c.mu.slack, c.mu.clashed = min(c.mu.slack+gap/nanos+1, disputed), received
		newLow, newHigh = newLow-gap-nanos, max(oldHigh, high)
	default:
		stepped = (low - oldLow) / nanos
		c.mu.slack = 0
		newLow, newHigh = low, high
		if low > oldHigh {
			newLow = min(low, claimed.low)
		}
	}
	rose = newLow >= oldLow+5*nanos
	c.mu.low, c.mu.high, c.mu.at = newLow, newHigh, received
	return stepped, rose
}

// atLocked is the interval as it is at a local instant.
func (c *Bounds) atLocked(now int64) (low, high int64) {
	if now <= c.mu.at {
		return c.mu.low, c.mu.high
	}
	by := (now - c.mu.at) * Drift
	return c.mu.low - by, c.mu.high + by
}

// At gives the least and the most by which the endpoint's clock is ahead of the local one, which shows now.
func (c *Bounds) At(now int64) (low, high int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high = c.atLocked(now)
	return floorDiv(low, nanos), -floorDiv(-high, nanos), c.mu.known
}

// floorDiv is a/b, rounded down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
