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
	// ms: how long answers must be plausible before a doubt ends
	calm = 1000
	// answers that must be plausible in that time
	calmAnswers = 2
	// ms: how long the machine's clock must agree with answers that the monotonic clock contradicts
	agreement = 2000
	notable   = 5 // ms: rises of the lower bound that are worth waking sleepers
)

// Clock is an endpoint's clock as far as this machine vouches for it. An answer whose Date differs
// from the machine's time by more than Most is not plausible, and never moves the bounds. While the
// endpoint is in doubt, its time must decide nothing.
//
// The machine has two clocks: a monotonic one, which never jumps but stands still while a virtual
// machine is suspended, and the wall clock, which is correct but can be set. Two of the three decide:
//
//	the monotonic clock and the endpoint agree   the endpoint is plausible
//	only the wall clock and the endpoint agree   doubt for 2 s, then the machine's time has moved
//	neither agrees with the endpoint             doubt until one does
//
// One answer ahead of the machine may come from another server behind the same address, and is
// ignored: the doubt begins with the second in a row. An answer behind the machine begins it at once,
// since a removal by the machine's clock might be early by that server's. All instants are in ms. A
// Clock is safe for concurrent use.
type Clock struct {
	most  int64
	local bool
	mu    sync.Mutex
	seen  bool   // there was an answer with a Date
	lead  int64  // the machine's time minus the monotonic clock
	open  bool   // the endpoint is in doubt
	doubt Doubt  // the latest, while open is true
	ahead bool   // the last answer was ahead of the machine and ignored
	good  streak // of plausible answers during a doubt
	moved streak // of answers that agree with the wall clock only
	bounds
}

// streak is a sequence of similar answers.
type streak struct {
	answers int
	since   int64 // monotonic instant of the first
}

// grow adds an answer, and reports whether the streak is long enough.
func (s *streak) grow(now int64, span int64) bool {
	if s.answers == 0 {
		s.since = now
	}
	s.answers++
	return s.answers >= calmAnswers && now-s.since >= span
}

// Doubt is why the endpoint's time must decide nothing.
type Doubt struct {
	// By is how far the endpoint's clock is ahead of the machine's time, at least, in ms; negative:
	// behind.
	By int64
	// Set means that the machine's clock has jumped as far.
	Set bool
}

// Seen is what an answer has changed.
type Seen struct {
	Ignored int64 // how far ahead an ignored answer was, in ms; 0: it was not ignored
	Stepped int64 // how far the endpoint's clock was set, in ms; 0: it was not
	Rose    bool  // the lower bound has risen notably
	Began   bool  // a doubt has begun
	Ended   bool  // a doubt has ended
}

// NewClock returns a clock that accepts a difference of most. local and wall are the machine's
// clocks at present.
func NewClock(most, local, wall int64) *Clock { return &Clock{most: most, lead: wall - local} }

// NewLocal returns a clock that takes the machine's time for the endpoint's, and ignores Dates.
// Otherwise it is like NewClock.
func NewLocal(most, local, wall int64) *Clock {
	return &Clock{most: most, lead: wall - local, local: true}
}

// Saw adds the Date header of an answer, with the monotonic instants at which the request was sent
// and the answer received, and the wall clock then. It ignores a header that is no date.
func (c *Clock) Saw(date string, sent, received, wall int64) Seen {
	t, err := http.ParseTime(date)
	if err != nil || c.local {
		return Seen{}
	}
	at := min(max(t.UnixMilli(), sent-century), sent+century)
	low, high := at-received-1, at+1000-sent
	c.mu.Lock()
	defer c.mu.Unlock()
	lead := wall - received
	first := !c.seen
	c.seen = true
	switch {
	case within(low, high, c.lead, c.most):
		// follow small corrections of the wall clock
		if within(low, high, lead, c.most/2) && max(lead-c.lead, c.lead-lead) <= c.most {
			c.lead = lead
		}
		return c.plausibleLocked(at, sent, received)
	case within(low, high, lead, c.most):
		return c.movedLocked(at, sent, received, lead)
	}
	c.good, c.moved = streak{}, streak{}
	isAhead := low > c.lead+c.most
	ignored := isAhead && !c.ahead && !first && !c.open
	c.ahead = isAhead
	if ignored {
		return Seen{Ignored: low - c.lead}
	}
	by := low - c.lead
	if !isAhead {
		by = high - c.lead
	}
	return c.doubtLocked(Doubt{By: by})
}

// within reports whether an offset between low and high may differ from lead by at most most.
func within(low, high, lead, most int64) bool { return low <= lead+most && high >= lead-most }

func (c *Clock) plausibleLocked(date, sent, received int64) (s Seen) {
	c.ahead, c.moved = false, streak{}
	s.Stepped, s.Rose = c.take(date, sent, received)
	if c.open && c.good.grow(received, calm) {
		c.open, s.Ended = false, true
	}
	return s
}

// movedLocked takes an answer that agrees with the wall clock only.
func (c *Clock) movedLocked(date, sent, received, lead int64) Seen {
	c.ahead, c.good = false, streak{}
	if !c.moved.grow(received, agreement) {
		return c.doubtLocked(Doubt{By: lead - c.lead, Set: true})
	}
	s := Seen{Stepped: lead - c.lead, Rose: true, Ended: c.open}
	c.lead, c.open, c.moved = lead, false, streak{}
	c.bounds = bounds{}
	c.take(date, sent, received)
	return s
}

func (c *Clock) doubtLocked(d Doubt) Seen {
	s := Seen{Began: !c.open}
	c.open, c.doubt = true, d
	return s
}

// Look follows the wall clock where no answers do: with NewLocal, a jump of it is a doubt for 2 s.
func (c *Clock) Look(local, wall int64) (s Seen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.local {
		return Seen{}
	}
	lead := wall - local
	if max(lead-c.lead, c.lead-lead) <= c.most {
		s.Rose = lead >= c.lead+notable
		c.lead, c.moved, s.Ended = lead, streak{}, c.open
		c.open = false
		return s
	}
	if !c.moved.grow(local, agreement) {
		return c.doubtLocked(Doubt{By: lead - c.lead, Set: true})
	}
	c.lead, c.moved, c.open = lead, streak{}, false
	return Seen{Rose: true, Ended: true}
}

// Doubt returns the doubt that is open.
func (c *Clock) Doubt() (d Doubt, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doubt, c.open
}

// At returns how far the endpoint's clock is ahead of the monotonic one, at least and at most, while
// that shows local. The lower bound is at most the machine's lead plus the limit. Without a plausible
// answer yet, known is false.
func (c *Clock) At(local int64) (low, high int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.local {
		return c.lead, c.lead, true
	}
	low, high = c.millisAt(local)
	return min(low, c.lead+c.most), high, c.known
}

// Machine returns the machine's time: the monotonic clock plus a lead that follows the wall clock.
func (c *Clock) Machine(local int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return local + c.lead
}
