package clock

import (
	"context"
	"math"
	"time"
)

// Never is later than every instant that a clock shows.
const Never int64 = math.MaxInt64

// maxTimer is the longest that one timer is set for: a century, after which Sleep looks again.
const maxTimer = 100 * 365 * 24 * time.Hour

// Sleep returns nil once the clock tells until, in ms, or something is received from wake, or the clock was moved, whichever is first, so
// the caller looks at the clock again; and ctx's error once ctx is done. It does not return for until too early.
//
// It waits with a single timer, set for the whole of the remaining real time, or none when until is Never or the clock is frozen. A wall clock
// that jumps makes a sleeper set its timer anew at the next call of Millis by anyone; until then the timer goes by the old wall clock.
func (c *Clock) Sleep(ctx context.Context, until int64, wake <-chan struct{}) error {
	for {
		wait, moved := c.remaining(until)
		if wait <= 0 {
			return ctx.Err()
		}
		again, err := await(ctx, wait, wake, moved)
		if !again {
			return err
		}
	}
}

// await waits for the first of its arguments. again says that it was the timer, which may have rounded.
func await(ctx context.Context, wait time.Duration, wake, moved <-chan struct{}) (again bool, err error) {
	var due <-chan time.Time
	if wait != math.MaxInt64 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
		return true, nil
	case <-wake:
	case <-moved:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return false, nil
}

// remaining gives the real time until the clock tells until: zero when it does already, math.MaxInt64 when it will not by itself. moved is
// closed when the answer no longer holds.
func (c *Clock) remaining(until int64) (wait time.Duration, moved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now()
	if c.millisLocked(t) >= until {
		return 0, c.mu.moved
	}
	if until > maxMillis || c.mu.run.frozen {
		return math.MaxInt64, c.mu.moved
	}
	if c.told.Load()&1 == 1 {
		c.skew.Store(c.skewAt(t))
		return min(time.UnixMilli(until).Sub(t.Round(0)), maxTimer), c.mu.moved // Round strips the monotonic reading
	}
	micros := math.Ceil(float64(until*1000-c.shownLocked(t)) / c.mu.run.rate)
	return time.Duration(min(max(micros, 1)*1000, float64(maxTimer))), c.mu.moved
}
