package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/skew"
)

// Only the endpoint's clock counts: guard removes nothing before its deadline by that clock. Package
// skew computes its bounds, and judges whether it is plausible.

const (
	drift  = skew.Drift
	narrow = 50 // ms: closer bounds of the clock need no probes
	// ms: wider bounds are narrowed by a probe at any instant, closer ones only by one near the turn
	// of the endpoint's second
	rough     = 200
	probeEach = 100 * time.Millisecond // while it is rough
	doubtEach = 500 * time.Millisecond // between probes while the endpoint's clock is in doubt
	nanos     = 1_000_000              // in a ms
)

// endpointClock is the endpoint's clock, with a channel for sleepers.
type endpointClock struct {
	*skew.Clock
	mu struct {
		sync.Mutex
		// closed and replaced when the lower bound has risen; nil while no sleeper needs it
		turned chan struct{}
	}
}

func (g *Guard) newEndpointClock() *endpointClock {
	c, most := skew.NewClock, g.o.MaxSkew.Milliseconds()
	if g.o.LocalClock {
		c = skew.NewLocal
	}
	return &endpointClock{Clock: c(most, g.local.Millis(), g.wall.Millis())}
}

// saw records the Date header of a response, with the local times of the request and the response.
func (g *Guard) saw(date string, sent, received int64) {
	g.learned(g.endpoint.Saw(date, sent, received, g.wall.Millis()))
}

// learned reports what guard has learned about the endpoint's clock, and wakes sleepers.
func (g *Guard) learned(s skew.Seen) {
	if s.Ignored != 0 && g.passing.now("the endpoint's clock", g.local.Millis()) {
		g.log.Warn("an answer's Date is not plausible and is ignored", "table", g.o.Table, "ahead", millis(s.Ignored))
	}
	if s.Stepped != 0 {
		g.log.Warn("the endpoint's clock was set", "table", g.o.Table, "by", millis(s.Stepped))
	}
	if s.Ended {
		g.settle(Skew)
	}
	if s.Began {
		p := g.doubt()
		p.Next = "removals wait until the clocks agree again: correct the wrong one, or raise the limit (--max-skew)"
		g.raise(p)
	}
	if s.Rose || s.Ended || s.Began {
		g.armed.Nudge()
		g.endpoint.turn()
	}
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// turns returns a channel that is closed when the lower bound has risen, or a doubt begins or ends.
func (c *endpointClock) turns() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.turned == nil {
		c.mu.turned = make(chan struct{})
	}
	return c.mu.turned
}

func (c *endpointClock) turn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.turned != nil {
		close(c.mu.turned)
		c.mu.turned = nil
	}
}

// now returns a lower bound of the endpoint's clock in ms since the epoch: a deadline that is due
// by it is due, unless the clock is in doubt. The bound is never ahead of the machine's time by more
// than MaxSkew. It returns 0 while the clock is unknown.
func (g *Guard) now() int64 {
	now := g.local.Millis()
	if g.o.LocalClock {
		g.learned(g.endpoint.Look(now, g.wall.Millis()))
	}
	low, _, known := g.endpoint.At(now)
	if !known {
		return 0
	}
	if invariant.Injected(invariant.UpperBound) {
		return g.latest()
	}
	return now + low
}

// latest returns an upper bound of the endpoint's clock in ms since the epoch; 0 while it is
// unknown.
func (g *Guard) latest() int64 {
	now := g.local.Millis()
	_, high, known := g.endpoint.At(now)
	if !known {
		return 0
	}
	return now + high
}

// sleep returns nil as soon as now is at least until, wake receives, a clock has moved, or guard has
// learned something about the endpoint's clock, so that the caller looks at the clock again. It
// returns ctx's error once ctx is done.
func (g *Guard) sleep(ctx context.Context, until int64, wake <-chan struct{}) error {
	turned := g.endpoint.turns() // before the bound is read
	low, _, _ := g.endpoint.At(g.local.Millis())
	if until != clock.Never {
		until -= low
	}
	if wake == nil {
		return g.local.Sleep(ctx, until, turned)
	}
	if wake == (<-chan struct{})(g.armed.Wake) { // learned wakes it anyway
		return g.local.Sleep(ctx, until, wake)
	}
	sleeping, rouse := context.WithCancel(ctx)
	defer rouse()
	go func() {
		select {
		case <-turned:
			rouse()
		case <-sleeping.Done():
		}
	}()
	if err := g.local.Sleep(sleeping, until, wake); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// errDoubt refuses a removal while the endpoint's clock is in doubt.
var errDoubt = errors.New("the endpoint's clock is in doubt")

// trusted returns nil if removals may go on, and errDoubt while the endpoint's clock is in doubt.
func (g *Guard) trusted() error {
	if _, open := g.endpoint.Doubt(); open {
		return errDoubt
	}
	return nil
}

// doubt returns the problem with the endpoint's clock; nil without one. One of the clocks is wrong,
// and a wrong clock could remove every item.
func (g *Guard) doubt() *Problem {
	d, open := g.endpoint.Doubt()
	if !open {
		return nil
	}
	by, side := d.By, "ahead of"
	if by < 0 {
		by, side = -by, "behind"
	}
	p := &Problem{Code: Skew, Message: fmt.Sprintf("the endpoint's clock is at least %v %s this machine's; the limit is %v", millis(by), side, g.o.MaxSkew),
		Next: "correct the wrong clock, or raise the limit (--max-skew)"}
	if d.Set {
		p.Message = fmt.Sprintf("this machine's clock was set by %v; the limit is %v", millis(d.By), g.o.MaxSkew)
	}
	return p
}
