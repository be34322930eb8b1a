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

// The endpoint's clock is the one that counts: nothing is removed before its deadline by that. What is known of it is skew's to find out.

const (
	drift     = skew.Drift
	narrow    = 50                     // ms: the width at which an interval is good
	rough     = 200                    // ms: the width above which answers at any instants narrow it well
	probeEach = 100 * time.Millisecond // while it is rough
	nanos     = 1_000_000              // in a ms
)

// endpointClock bounds how far the endpoint's clock is from the local one. All instants are in ms.
type endpointClock struct {
	skew.Bounds
	trust    bool   // the local clock is the endpoint's
	narrower func() // called when the lower bound has risen, so that what waits by it can look again
	stepped  func(by int64)
	mu       struct {
		sync.Mutex
		turned chan struct{} // closed and replaced when the lower bound has risen; nil: nobody waits for that
	}
}

// saw takes in the Date header of an answer, and when, by the local clock, its request was sent and it was there.
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

// turns gives what is closed when the lower bound has risen.
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

// bounds gives the least and the most by which the endpoint's clock is ahead of the local one, which shows now.
func (c *endpointClock) bounds(now int64) (low, high int64, known bool) {
	if c.trust {
		return 0, 0, true
	}
	return c.At(now)
}

// now is the endpoint's clock in ms since the epoch: a lower bound, so that what is due by it is due. It is 0 as long as nothing is known.
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

// low is the least by which the endpoint's clock is ahead of the local one, which shows now, as far as guard goes by it: never further ahead of the machine's clock than MaxSkew. That the
// two are further apart is found when the table is looked at next; until then one answer with a wrong Date must not remove what there is.
func (g *Guard) low(now int64) (low int64, known bool) {
	low, _, known = g.endpoint.bounds(now)
	if g.o.trust {
		return low, known
	}
	return min(low, g.wall.Millis()+g.o.MaxSkew.Milliseconds()-now), known
}

// latest is an upper bound of the same.
func (g *Guard) latest() int64 {
	now := g.local.Millis()
	_, high, known := g.endpoint.bounds(now)
	if !known {
		return 0
	}
	return now + high
}

// sleep returns nil once now is at least until, or something is received from wake, or a clock was moved, or more is known of the endpoint's, whichever is first, so the caller looks at the
// clock again; and ctx's error once ctx is done.
func (g *Guard) sleep(ctx context.Context, until int64, wake <-chan struct{}) error {
	turned := g.endpoint.turns() // before the bound is read
	low, _ := g.low(g.local.Millis())
	if until != clock.Never {
		until -= low
	}
	if wake == nil {
		return g.local.Sleep(ctx, until, turned)
	}
	if wake == (<-chan struct{})(g.armed.wake) { // to which that is told anyway
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

// pass waits until so many ms have gone by since an instant, by the endpoint's clock. Where that was set back meanwhile it does not wait until the clock shows again what it showed before.
func (g *Guard) pass(ctx context.Context, since, span int64) error {
	for now := g.now(); now < since+span && now > since-span; now = g.now() {
		if err := g.sleep(ctx, since+span, nil); err != nil {
			return err
		}
	}
	return nil
}

// skewed gives a problem where the machine's clock is too far from the endpoint's: one of them is wrong, and by a wrong one all could be removed that there is.
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
