package clock

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrBackward says that a clock was asked to go back.
	ErrBackward = errors.New("the clock only goes forward")
	// ErrRange says that an instant or a rate is beyond what a clock can show.
	ErrRange = errors.New("out of the clock's range")
)

const (
	// maxMillis is the last instant that a clock shows, at the end of the year 9999. It stands still there.
	maxMillis = 253402300799999
	// maxRate is the fastest that a clock can be made to run: a year in 32 ms.
	maxRate = 1e9
	// maxSkew is how far the wall clock may drift from the monotonic one before sleepers are told to look again.
	maxSkew = 250 * time.Millisecond
)

// Clock tells the engine's time. All methods may be called at once from many goroutines.
type Clock struct {
	// told is the greatest instant told or raised to, in ms, shifted left by one; its lowest bit says that the clock is the wall clock
	// itself. While it is, Millis moves told by compare-and-swap alone. Freezing or moving the clock clears the bit, so that
	// no swap which began before can succeed after; from then on told changes under mu only.
	told  atomic.Int64
	skew  atomic.Int64 // wall clock minus monotonic clock, ns, when sleepers last looked
	start time.Time    // where the monotonic clock is measured from
	// onStep is told of steps of the wall clock; nil: nobody is. Set before the clock is shared.
	onStep func(by time.Duration)
	mu     struct {
		sync.Mutex
		run   run
		moved chan struct{} // closed and replaced whenever a sleeper must look again
	}
}

// run says how a clock that is not the wall clock goes: it showed at when the monotonic clock showed since, and goes on at rate.
type run struct {
	at     int64     // µs since the epoch: fine enough that freezing a hundred times loses nothing that shows
	since  time.Time // with its monotonic reading
	rate   float64   // clock seconds per real second; kept while frozen
	frozen bool
}

// now is what the clock shows at the real instant t, in µs.
func (r run) now(t time.Time) int64 {
	if r.frozen {
		return r.at
	}
	passed := float64(t.Sub(r.since).Microseconds()) * r.rate // exact at rate 1 for 285 years
	return min(r.at+int64(min(passed, maxMillis*1000)), maxMillis*1000)
}

// New gives a clock that is the wall clock.
func New() *Clock {
	now := time.Now()
	c := &Clock{start: now}
	c.mu.moved = make(chan struct{})
	c.mu.run = run{rate: 1}
	c.told.Store(now.UnixMilli()<<1 | 1)
	c.skew.Store(c.skewAt(now))
	return c
}

// NewAt gives a clock that shows start now, whatever the wall clock says, and goes on with real time. A start beyond the clock's range is its end,
// and one as far on the other side of the epoch its beginning.
func NewAt(start time.Time) *Clock {
	c := New()
	switch seconds := start.Unix(); {
	case seconds > maxMillis/1000:
		start = time.UnixMilli(maxMillis)
	case seconds < -maxMillis/1000:
		start = time.UnixMilli(-maxMillis)
	}
	c.mu.run = run{at: start.UnixMicro(), since: c.start, rate: 1}
	c.told.Store(start.UnixMilli() << 1)
	return c
}

// NewFrozenAt gives a clock that stands still at start, which is never a millisecond later, however long the machine takes.
func NewFrozenAt(start time.Time) *Clock {
	c := NewAt(start)
	c.mu.run.frozen = true
	return c
}

// Millis gives the instant in ms since the epoch, rounded down; never less than any call before it gave.
func (c *Clock) Millis() int64 {
	for {
		told := c.told.Load()
		if told&1 == 0 {
			return c.millisSlow()
		}
		now := time.Now()
		if skew := c.skewAt(now); abs(skew-c.skew.Load()) > int64(maxSkew) {
			c.wallJumped(skew)
		}
		wall := min(now.UnixMilli(), maxMillis)
		if wall <= told>>1 {
			return told >> 1
		}
		if c.told.CompareAndSwap(told, wall<<1|1) {
			return wall
		}
	}
}

// Now is Millis as a time in UTC.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.Millis()).UTC() }

func (c *Clock) millisSlow() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.millisLocked(time.Now())
}

// millisLocked tells the instant at the real instant t.
func (c *Clock) millisLocked(t time.Time) int64 {
	return c.raiseLocked(floorMillis(c.shownLocked(t)))
}

// shownLocked is what the clock would tell at the real instant t if it had told nothing before, in µs.
func (c *Clock) shownLocked(t time.Time) int64 {
	if c.told.Load()&1 == 1 {
		return min(t.UnixMicro(), maxMillis*1000)
	}
	return c.mu.run.now(t)
}

// raiseLocked moves told to at least millis and gives where it then is.
func (c *Clock) raiseLocked(millis int64) int64 {
	for {
		told := c.told.Load()
		if millis <= told>>1 {
			return told >> 1
		}
		if c.told.CompareAndSwap(told, millis<<1|told&1) {
			return millis
		}
	}
}

// Raise makes floor, in ms, the least that Millis tells from now on. A clock that shows less stands still until it gets there.
// It is called with the last instant on disk.
func (c *Clock) Raise(floor int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if floor = min(floor, maxMillis); floor > c.millisLocked(time.Now()) {
		c.raiseLocked(floor)
		c.wakeLocked()
	}
}

// wakeLocked makes every sleeper look again.
func (c *Clock) wakeLocked() {
	close(c.mu.moved)
	c.mu.moved = make(chan struct{})
}

// skewAt is how far the wall clock is from the monotonic one. Only changes of it mean anything: a change is a step of the wall clock, or
// a machine that was suspended, and then timers are no longer right.
func (c *Clock) skewAt(t time.Time) int64 { return t.UnixNano() - int64(t.Sub(c.start)) }

// OnStep sets who is told of a step of the wall clock, by how much it went: negative when it went back, and then a clock that follows it
// stands still for as long. It is told by whoever asks the time next, and must not block or ask the clock. It is called before the
// clock is shared.
func (c *Clock) OnStep(tell func(by time.Duration)) { c.onStep = tell }

// wallJumped makes sleepers set their timers anew after a step of the wall clock.
func (c *Clock) wallJumped(skew int64) {
	c.mu.Lock()
	before := c.skew.Swap(skew)
	c.wakeLocked()
	c.mu.Unlock()
	if by := skew - before; c.onStep != nil && abs(by) > int64(maxSkew) { // else another caller has seen the same step
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
