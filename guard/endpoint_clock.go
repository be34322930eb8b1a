package guard

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/skew"
)

// Only the endpoint's clock counts: guard removes nothing before its deadline by that clock.
// Package skew computes its bounds.

const (
	drift  = skew.Drift
	narrow = 50 // ms: closer bounds of the clock need no probes
	// ms: wider bounds are narrowed by a probe at any instant, closer ones only by one near the turn
	// of the endpoint's second
	rough     = 200
	probeEach = 100 * time.Millisecond // while it is rough
	nanos     = 1_000_000              // in a ms
)

// endpointClock bounds how far the endpoint's clock is from the local one. All instants are in ms.
type endpointClock struct {
	skew.Bounds
	trust    bool   // the local clock is the endpoint's
	narrower func() // called when the lower bound has risen, to wake the pump
	stepped  func(by int64)
	mu       struct {
		sync.Mutex
		// closed and replaced when the lower bound has risen; nil while no sleeper needs it
		turned chan struct{}
	}
}

// saw records the Date header of a response, with the local times of the request and the response.
func (c *endpointClock) saw(date string, sent, received int64) {
	if c.trust {
		return
	}
	by, rose := c.Saw(date, sent, received)
	if by != 0 {
		c.stepped(by)
	}
	if rose {
		c.narrower()
		c.turn()
	}
}

// turns returns a channel that is closed when the lower bound has risen.
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

// bounds returns the least and the greatest lead of the endpoint's clock over the local one at now.
func (c *endpointClock) bounds(now int64) (low, high int64, known bool) {
	if c.trust {
		return 0, 0, true
	}
	return c.At(now)
}

// now returns a lower bound of the endpoint's clock in ms since the epoch: a deadline that is due
// by it is due. It returns 0 while the clock is unknown.
func (g *Guard) now() int64 {
	now := g.local.Millis()
	low, known := g.low(now)
	if !known {
		return 0
	}
	if invariant.Injected(invariant.UpperBound) {
		return g.latest()
	}
	return now + low
}

// low returns the least lead of the endpoint's clock over the local one, but never a lead over the
// machine's clock of more than MaxSkew. The next look at the table detects a larger difference;
// until then one response with a wrong Date must not remove everything.
func (g *Guard) low(now int64) (low int64, known bool) {
	low, _, known = g.endpoint.bounds(now)
	if g.o.trust {
		return low, known
	}
	return min(low, g.wall.Millis()+g.o.MaxSkew.Milliseconds()-now), known
}

// latest returns an upper bound of the endpoint's clock in ms since the epoch; 0 while it is
// unknown.
func (g *Guard) latest() int64 {
	now := g.local.Millis()
	_, high, known := g.endpoint.bounds(now)
	if !known {
		return 0
	}
	return now + high
}

// sleep returns nil as soon as now is at least until, wake receives, a clock has moved, or the
// endpoint's bounds have narrowed, so that the caller looks at the clock again. It returns ctx's
// error once ctx is done.
func (g *Guard) sleep(ctx context.Context, until int64, wake <-chan struct{}) error {
	turned := g.endpoint.turns() // before the bound is read
	low, _ := g.low(g.local.Millis())
	if until != clock.Never {
		until -= low
	}
	if wake == nil {
		return g.local.Sleep(ctx, until, turned)
	}
	if wake == (<-chan struct{})(g.armed.Wake) { // narrower wakes it anyway
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

// skewed returns a problem if the machine's clock is too far from the endpoint's. One of them is
// wrong, and a wrong clock could remove every item.
func (g *Guard) skewed() *Problem {
	now := g.local.Millis()
	low, high, known := g.endpoint.bounds(now)
	if !known || g.o.trust {
		return nil
	}
	ahead := now - g.wall.Millis()
	low, high = low+ahead, high+ahead // the endpoint's minus the wall clock
	most := g.o.MaxSkew.Milliseconds()
	if low <= most && high >= -most {
		return nil
	}
	by, side := low, "ahead of"
	if high < -most {
		by, side = -high, "behind"
	}
	return &Problem{Code: Skew,
		Message: fmt.Sprintf("the endpoint's clock is at least %v %s this machine's; the limit is %v", time.Duration(by)*time.Millisecond, side, g.o.MaxSkew),
		Next:    "correct the wrong clock, or raise the limit (--max-skew)"}
}
