package clock

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrBackward refuses to move a clock back.
	ErrBackward = errors.New("the clock only goes forward")
	// ErrRange refuses an instant or a rate beyond the range of clocks.
	ErrRange = errors.New("out of the clock's range")
)

const (
	// maxMillis is the last instant of a clock, at the end of the year 9999. The clock stops there.
	maxMillis = 253402300799999
	// maxRate is the greatest rate of a clock: a year in 32 ms.
	maxRate = 1e9
	// maxSkew is the drift between the wall clock and the monotonic one from which sleepers set new
	// timers.
	maxSkew = 250 * time.Millisecond
)

// Clock is the engine's time. Its methods are safe for concurrent use.
type Clock struct {
	// shown is the greatest instant returned or raised to, in ms, shifted left by one. Its lowest
	// bit is set while the clock is the wall clock itself. Then Millis moves shown by
	// compare-and-swap alone. Freezing or moving the clock clears the bit, so that no earlier swap
	// can succeed afterwards; from then on shown changes under mu only.
	shown atomic.Int64
	skew  atomic.Int64 // wall clock minus monotonic clock, ns, at the last check of the sleepers
	start time.Time    // the origin of the monotonic clock
	// onStep is called with steps of the wall clock; nil: not called. Set before the clock is
	// shared.
	onStep func(by time.Duration)
	mu     struct {
		sync.Mutex
		run   run
		moved chan struct{} // closed and replaced whenever sleepers must set new timers
	}
}

// run is the course of a clock that is not the wall clock: it showed at when the monotonic clock
// showed since, and continues at rate.
type run struct {
	at     int64     // µs since the epoch: fine enough that a hundred freezes lose no millisecond
	since  time.Time // with its monotonic reading
	rate   float64   // clock seconds per real second; not cleared while frozen
	frozen bool
}

// now returns the clock's time at the real instant t, in µs.
func (r run) now(t time.Time) int64 {
	if r.frozen {
		return r.at
	}
	passed := float64(t.Sub(r.since).Microseconds()) * r.rate // exact at rate 1 for 285 years
	return min(r.at+int64(min(passed, maxMillis*1000)), maxMillis*1000)
}

// New returns a clock that is the wall clock.
func New() *Clock {
	now := time.Now()
	c := &Clock{start: now}
	c.mu.moved = make(chan struct{})
	c.mu.run = run{rate: 1}
	c.shown.Store(now.UnixMilli()<<1 | 1)
	c.skew.Store(c.skewAt(now))
	return c
}

// NewAt returns a clock that shows start now, independent of the wall clock, and continues with
// real time. A start more than maxMillis before or after 1970 is moved to that distance from it.
func NewAt(start time.Time) *Clock {
	c := New()
	switch seconds := start.Unix(); {
	case seconds > maxMillis/1000:
		start = time.UnixMilli(maxMillis)
	case seconds < -maxMillis/1000:
		start = time.UnixMilli(-maxMillis)
	}
	c.mu.run = run{at: start.UnixMicro(), since: c.start, rate: 1}
	c.shown.Store(start.UnixMilli() << 1)
	return c
}

// NewFrozenAt returns a clock that is frozen at exactly start.
func NewFrozenAt(start time.Time) *Clock {
	c := NewAt(start)
	c.mu.run.frozen = true
	return c
}

// Millis returns the instant in ms since the epoch, rounded down. It never returns less than any
// earlier call.
func (c *Clock) Millis() int64 {
	for {
		shown := c.shown.Load()
		if shown&1 == 0 {
			return c.millisSlow()
		}
		now := time.Now()
		if skew := c.skewAt(now); abs(skew-c.skew.Load()) > int64(maxSkew) {
			c.wallJumped(skew)
		}
		wall := min(now.UnixMilli(), maxMillis)
		if wall <= shown>>1 {
			return shown >> 1
		}
		if c.shown.CompareAndSwap(shown, wall<<1|1) {
			return wall
		}
	}
}

// Shown returns the greatest result of Millis so far, at the cost of a load. It is the present
// instant for a caller that has just read the clock.
func (c *Clock) Shown() int64 { return c.shown.Load() >> 1 }

// Now returns Millis as a time in UTC.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.Millis()).UTC() }

func (c *Clock) millisSlow() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.millisLocked(time.Now())
}

// millisLocked returns the instant at the real instant t.
func (c *Clock) millisLocked(t time.Time) int64 {
	return c.raiseLocked(floorMillis(c.courseLocked(t)))
}

// courseLocked returns the time at the real instant t without regard to earlier results, in µs.
func (c *Clock) courseLocked(t time.Time) int64 {
	if c.shown.Load()&1 == 1 {
		return min(t.UnixMicro(), maxMillis*1000)
	}
	return c.mu.run.now(t)
}

// raiseLocked raises shown to at least millis and returns it.
func (c *Clock) raiseLocked(millis int64) int64 {
	for {
		shown := c.shown.Load()
		if millis <= shown>>1 {
			return shown >> 1
		}
		if c.shown.CompareAndSwap(shown, millis<<1|shown&1) {
			return millis
		}
	}
}

// Raise makes floor, in ms, the least result of Millis from now on. A clock that shows less stands
// still until it reaches the floor. The engine raises its clock to the last instant on disk.
func (c *Clock) Raise(floor int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if floor = min(floor, maxMillis); floor > c.millisLocked(time.Now()) {
		c.raiseLocked(floor)
		c.wakeLocked()
	}
}

// wakeLocked makes every sleeper set a new timer.
func (c *Clock) wakeLocked() {
	close(c.mu.moved)
	c.mu.moved = make(chan struct{})
}

// skewAt returns the difference between the wall clock and the monotonic one. Only its changes have
// a meaning: the wall clock has stepped, or the machine was suspended, and then timers are no
// longer right.
func (c *Clock) skewAt(t time.Time) int64 { return t.UnixNano() - int64(t.Sub(c.start)) }

// OnStep sets a function that is called with each step of the wall clock. A negative step went
// back, and then a clock that follows the wall clock stands still for as long. The next caller of
// Millis runs the function, which must not block or read the clock. Call OnStep before the clock is
// shared.
func (c *Clock) OnStep(tell func(by time.Duration)) { c.onStep = tell }

// wallJumped makes sleepers set new timers after a step of the wall clock.
func (c *Clock) wallJumped(skew int64) {
	c.mu.Lock()
	before := c.skew.Swap(skew)
	c.wakeLocked()
	c.mu.Unlock()
	// otherwise another caller has seen the same step
	if by := skew - before; c.onStep != nil && abs(by) > int64(maxSkew) {
		c.onStep(time.Duration(by))
	}
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// floorMillis rounds µs down, also before the epoch.
func floorMillis(micros int64) int64 {
	millis := micros / 1000
	if micros%1000 < 0 {
		millis--
	}
	return millis
}
