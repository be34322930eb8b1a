package skew

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

// bounds hold how far an endpoint's clock is ahead of the monotonic one, at least and at most, as its
// answers show. All instants are in ms.
type bounds struct {
	known bool
	// in ns, so that rounding does not add up over many answers; valid at the local instant at
	low, high int64
	at        int64
	// the known difference between clocks behind the endpoint's address; the lower bound is for the
	// slowest of them
	slack   int64
	clashed int64 // local instant of the last contradiction
	claim   claim // an answer that no other has confirmed yet
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

// take narrows the interval by the Date of an answer. It returns by how much the endpoint's clock must have stepped, if that
// is the only explanation, and whether the lower bound rose notably.
func (c *bounds) take(date, sent, received int64) (stepped int64, rose bool) {
	if c.slack > 0 && received-c.clashed > forgiven {
		c.slack, c.clashed = c.slack/2, received
	}
	// The local clock's fraction of a ms counts against us: the answer may have arrived up to a ms
	// after received. The clocks may have drifted since the request was sent.
	since := max(received-sent, 0) * Drift
	low, high := (date-received-1-c.slack)*nanos-since, (date+1000-sent)*nanos+since
	if !c.known {
		c.known, c.low, c.high, c.at = true, low, high, received
		return 0, true
	}
	oldLow, oldHigh := c.boundsAt(received)
	newLow, newHigh := max(oldLow, low), min(oldHigh, high)
	claimed := c.claim
	c.claim = claim{}
	switch gap := newLow - newHigh; {
	case gap < 0:
	case low > oldHigh && !claimed.agrees(low, high, sent): // rather late than early
		c.claim = claim{true, low, high, received}
		newLow, newHigh = oldLow, oldHigh
	case gap <= disputed*nanos: // likewise
		c.slack, c.clashed = min(c.slack+gap/nanos+1, disputed), received
		newLow, newHigh = newLow-gap-nanos, max(oldHigh, high)
	default:
		stepped = (low - oldLow) / nanos
		c.slack = 0
		newLow, newHigh = low, high
		if low > oldHigh {
			newLow = min(low, claimed.low)
		}
	}
	rose = newLow >= oldLow+notable*nanos
	c.low, c.high, c.at = newLow, newHigh, received
	return stepped, rose
}

// boundsAt returns the interval at a local instant.
func (c *bounds) boundsAt(now int64) (low, high int64) {
	if now <= c.at {
		return c.low, c.high
	}
	drift := (now - c.at) * Drift
	return c.low - drift, c.high + drift
}

// millisAt returns the interval at a local instant, in ms, rounded outwards.
func (c *bounds) millisAt(now int64) (low, high int64) {
	low, high = c.boundsAt(now)
	return floorDiv(low, nanos), -floorDiv(-high, nanos)
}

// floorDiv returns a/b, rounded down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
