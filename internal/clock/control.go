package clock

import (
	"fmt"
	"math"
	"time"
)

// State is what a clock shows and how it goes.
type State struct {
	Now      time.Time     // what it tells
	Frozen   bool          // it stands still until it is set, advanced or run
	Rate     float64       // clock seconds per real second when it is not frozen
	Offset   time.Duration // what it tells minus the wall clock
	Standing bool          // it stands still because it shows less than it has told: the wall clock has gone back, or the disk is ahead of it
	Moved    bool          // it has been frozen, set, advanced or rated, and no longer is the wall clock
}

// State describes the clock at this moment.
func (c *Clock) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now()
	shown := floorMillis(c.shownLocked(t))
	told := c.raiseLocked(shown)
	return State{
		Now:      time.UnixMilli(told).UTC(),
		Frozen:   c.mu.run.frozen,
		Rate:     c.mu.run.rate,
		Offset:   time.UnixMilli(told).Sub(t).Round(time.Millisecond),
		Standing: shown < told && !c.mu.run.frozen,
		Moved:    c.told.Load()&1 == 0,
	}
}

// Freeze stops the clock where it is.
func (c *Clock) Freeze() {
	c.change(func(r run) run {
		r.frozen = true
		return r
	})
}

// Run lets a frozen clock go on from where it is, at the rate it had.
func (c *Clock) Run() {
	c.change(func(r run) run {
		r.frozen = false
		return r
	})
}

// SetRate makes the clock run at r clock seconds per real second, 0 < r ≤ 1e9; 0 freezes it.
func (c *Clock) SetRate(r float64) error {
	if math.IsNaN(r) || r < 0 || r > maxRate {
		return fmt.Errorf("rate %v: %w; use a rate between 0 and %g", r, ErrRange, float64(maxRate))
	}
	c.change(func(to run) run {
		to.frozen = r == 0
		if r > 0 {
			to.rate = r
		}
		return to
	})
	return nil
}

// Set moves the clock forward to t, rounded up to the millisecond. It goes on from there unless it is frozen.
func (c *Clock) Set(t time.Time) error {
	if t.Unix() > maxMillis/1000 {
		return fmt.Errorf("set to %v: %w", t, ErrRange)
	}
	if t.Unix() < -maxMillis/1000 {
		t = time.UnixMilli(-maxMillis) // behind every clock: its milliseconds might not fit
	}
	millis := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		millis++
	}
	return c.moveTo(func(int64) int64 { return millis * 1000 })
}

// Advance moves the clock forward by d.
func (c *Clock) Advance(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("advance by %v: %w", d, ErrBackward)
	}
	return c.moveTo(func(now int64) int64 { return now + d.Microseconds() })
}

// moveTo moves the clock to target(now), both in µs.
func (c *Clock) moveTo(target func(now int64) int64) (err error) {
	c.change(func(r run) run {
		to := target(r.at)
		switch {
		case floorMillis(to) < floorMillis(r.at):
			err = fmt.Errorf("set to %v, which is before %v: %w", time.UnixMicro(to).UTC(), time.UnixMicro(r.at).UTC(), ErrBackward)
		case to > maxMillis*1000:
			err = fmt.Errorf("set to %v: %w", time.UnixMicro(to).UTC(), ErrRange)
		default:
			r.at = max(to, r.at)
		}
		return r
	})
	return err
}

// change replaces how the clock goes. next is given the present way, based on this moment and on no less than what was told. A clock
// that is left as it was stays the wall clock, if it is that.
func (c *Clock) change(next func(run) run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now()
	told := c.millisLocked(t)
	before := c.mu.run
	before.at, before.since = max(c.shownLocked(t), told*1000), t
	after := next(before)
	if after == before {
		return
	}
	c.mu.run = after
	c.told.And(^1) // no swap of Millis succeeds from here on
	c.raiseLocked(floorMillis(after.at))
	c.wakeLocked()
}
