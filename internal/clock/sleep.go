package clock

import (
	"context"
	"math"
	"time"
)

// Never is later than every instant of a clock.
const Never int64 = math.MaxInt64

// maxTimer is the longest duration of one timer: a century, after which Sleep sets another.
const maxTimer = 100 * 365 * 24 * time.Hour

// Sleep returns nil once the clock shows until, in ms, or wake delivers, or the clock was moved, so
// the caller reads the clock again. It returns ctx's error once ctx is done. It never returns early
// because of until.
//
// It waits with a single timer for the whole remaining real time, or without one if until is Never
// or the clock is frozen. After a jump of the wall clock, the next call of Millis makes sleepers
// set a new timer; until then the old timer runs.
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

// await returns when wait is over, or wake or moved delivers, or with ctx's error when ctx is done.
// again means that wait is over: timers round, so the caller looks at the clock again.
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

// remaining returns the real time until the clock shows until: zero if it does already,
// math.MaxInt64 if it never will by itself. moved is closed when the result no longer holds.
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
	if c.shown.Load()&1 == 1 {
		c.skew.Store(c.skewAt(t))
		// Round strips the monotonic reading
		return min(time.UnixMilli(until).Sub(t.Round(0)), maxTimer), c.mu.moved
	}
	micros := math.Ceil(float64(until*1000-c.courseLocked(t)) / c.mu.run.rate)
	return time.Duration(min(max(micros, 1)*1000, float64(maxTimer))), c.mu.moved
}
