package clock

import (
	"fmt"
	"math"
	"time"
)

// State is the reading of a clock and its course.
type State struct {
	Now    time.Time     // the clock's time
	Frozen bool          // stopped until it is set, advanced or run
	Rate   float64       // clock seconds per real second while not frozen
	Offset time.Duration // the clock's time minus the wall clock
	// stopped until its course reaches an instant it has shown: the wall clock has gone back, or
	// the disk is ahead
	Standing bool
	Moved    bool // frozen, set, advanced or rated once, so no longer the wall clock
}

// State returns the clock's present state.
func (c *Clock) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now()
	course := floorMillis(c.courseLocked(t))
	shown := c.raiseLocked(course)
	return State{
		Now:      time.UnixMilli(shown).UTC(),
		Frozen:   c.mu.run.frozen,
		Rate:     c.mu.run.rate,
		Offset:   time.UnixMilli(shown).Sub(t).Round(time.Millisecond),
		Standing: course < shown && !c.mu.run.frozen,
		Moved:    c.shown.Load()&1 == 0,
	}
}

// Freeze stops the clock where it is.
func (c *Clock) Freeze() {
	c.change(func(r run) run {
		r.frozen = true
		return r
	})
}

// Run resumes a frozen clock at its previous rate.
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

// Set moves the clock forward to t, rounded up to the millisecond. Unless it is frozen it continues
// from there.
func (c *Clock) Set(t time.Time) error {
	if t.Unix() > maxMillis/1000 {
		return fmt.Errorf("set to %v: %w", t, ErrRange)
	}
	if t.Unix() < -maxMillis/1000 {
		t = time.UnixMilli(-maxMillis) // before every clock: its milliseconds might overflow
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

// change replaces the course of the clock by next's result. next receives the present course as if it
// began now, at an instant that is not before any shown one. If next returns it unchanged, nothing
// happens: the wall clock stays the wall clock.
func (c *Clock) change(next func(run) run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now()
	shown := c.millisLocked(t)
	before := c.mu.run
	before.at, before.since = max(c.courseLocked(t), shown*1000), t
	after := next(before)
	if after == before {
		return
	}
	c.mu.run = after
	c.shown.And(^1) // no swap of Millis succeeds from here on
	c.raiseLocked(floorMillis(after.at))
	c.wakeLocked()
}
