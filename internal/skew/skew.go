// Package skew bounds the offset between the clock of an endpoint and the local clock, from the
// Date headers of its answers.
//
// A Date header is the endpoint's clock in whole seconds. The endpoint wrote it at some instant
// between sending the request and receiving the answer. So each answer bounds the offset, endpoint
// minus local, to an interval of about a second. The intersection of several is narrower, and an
// answer near the turn of a second is very narrow.
//
//	date − received ≤ offset < date + 1 s − sent
//
// The local clock is monotonic, so steps of the wall clock do not affect it. It may run faster or
// slower than the endpoint's by at most Drift, so an interval widens as it ages.
package skew

import (
	"net/http"
	"sync"
)

const (
	// Drift is the most ns that a clock gains or loses in a ms: 200 ppm.
	Drift = 200

	nanos   = 1_000_000 // in a ms
	century = 100 * 365 * 24 * 60 * 60 * 1000
	// ms: contradictions up to this size mean several clocks behind one address, larger ones a step
	// of the clock
	disputed = 1000
	forgiven = 10 * 60 * 1000 // ms without contradictions that halve the slack
)

// Bounds hold how far an endpoint's clock is ahead of the local one, at least and at most, as its
// answers show. All instants are in ms. A Bounds is safe for concurrent use.
type Bounds struct {
	mu struct {
		sync.Mutex
		known bool
		// in ns, so that rounding does not add up over many answers; valid at the local instant at
		low, high int64
		at        int64
		// the known difference between clocks behind the endpoint's address; the lower bound is for
		// the slowest of them
		slack   int64
		clashed int64 // local instant of the last contradiction
		claim   claim // an answer that no other has confirmed yet
	}
}

// claim is an interval further ahead than the bounds allow. One answer, from a machine or proxy
// with a wrong clock, must not make anything due: a claim counts once a later answer confirms it.
type claim struct {
	made             bool
	low, high, since int64 // the offset's interval in ns, and the local instant of the answer
}

// agrees reports whether the answer to a request sent at an instant confirms the claim.
func (c claim) agrees(low, high, sent int64) bool {
	drift := max(sent-c.since, 0) * Drift
	return c.made && sent >= c.since && low <= c.high+drift && high >= c.low-drift
}

// Saw adds the Date header of an answer, with the local instants at which the request was sent and
// the answer received. It returns by how many ms the endpoint's clock must have stepped, if that is
// the only explanation, and whether the lower bound rose notably. It ignores a header that is no
// date.
func (c *Bounds) Saw(date string, sent, received int64) (stepped int64, rose bool) {
	if date == "" {
		return 0, false
	}
	t, err := http.ParseTime(date)
	if err != nil {
		return 0, false
	}
	// as far off as possible without an overflow
	at := min(max(t.UnixMilli(), sent-century), sent+century)
	return c.take(at, sent, received)
}

// take narrows the interval. It returns by how much the endpoint's clock must have stepped, if that
// is the only explanation, and whether the lower bound rose notably.
func (c *Bounds) take(date, sent, received int64) (stepped int64, rose bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.slack > 0 && received-c.mu.clashed > forgiven {
		c.mu.slack, c.mu.clashed = c.mu.slack/2, received
	}
	// The local clock's fraction of a ms counts against us: the answer may have arrived up to a ms
	// after received. The clocks may have drifted since the request was sent.
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
	case gap <= disputed*nanos: // likewise
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

// atLocked returns the interval at a local instant.
func (c *Bounds) atLocked(now int64) (low, high int64) {
	if now <= c.mu.at {
		return c.mu.low, c.mu.high
	}
	drift := (now - c.mu.at) * Drift
	return c.mu.low - drift, c.mu.high + drift
}

// At returns how far the endpoint's clock is ahead, at least and at most, while the local one shows
// now.
func (c *Bounds) At(now int64) (low, high int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high = c.atLocked(now)
	return floorDiv(low, nanos), -floorDiv(-high, nanos), c.mu.known
}

// floorDiv returns a/b, rounded down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
