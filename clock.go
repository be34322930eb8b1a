package mayfly

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Clock is a database's time, by which items expire. It runs with the machine's until it is frozen, set, advanced or given another
// rate, and only ever goes forward. Moving the clock of a directory is for good: see Options.ClockControl.
type Clock struct {
	engine  *engine.Engine
	expired *atomic.Int64 // items removed by their deadlines since the database was opened
}

// ClockState is what a clock shows and how it goes.
type ClockState struct {
	Now      time.Time     // in UTC, to the millisecond
	Frozen   bool          // it stands still until it is moved or given a rate
	Rate     float64       // its seconds per second of real time while it is not frozen
	Offset   time.Duration // Now minus the machine's clock
	Standing bool          // it waits for the machine's clock, which lies behind an instant that was already used
}

// Moved is what happened while a clock was moved.
type Moved struct {
	From, To   time.Time // where it was and where it is
	Expired    int64     // items removed by their deadlines meanwhile
	Unfinished bool      // the time limit passed before the clock got there, or before everything due was done
	Busy       []string  // then: the consumers of streams in this process that were not done, in no order
}

// Now is the present instant, in UTC and to the millisecond.
func (c *Clock) Now() time.Time { return c.engine.Now().Time() }

// State describes the clock at this moment.
func (c *Clock) State() ClockState {
	s := c.engine.Clock().State()
	return ClockState{Now: s.Now, Frozen: s.Frozen, Rate: s.Rate, Offset: s.Offset, Standing: s.Standing}
}

// Freeze stops the clock where it is. SetRate lets it run again.
func (c *Clock) Freeze() { c.engine.Clock().Freeze() }

// SetRate lets the clock run from where it is: 1 with real time, 60 an hour a minute. Zero freezes it. Range: 0 to 1e9.
func (c *Clock) SetRate(rate float64) error { return c.engine.Clock().SetRate(rate) }

// advanceLimit bounds the real time that Advance and Set take.
const advanceLimit = time.Minute

// Advance moves the clock forward by a duration, from due instant to due instant: it stops at each deadline on the way until what is
// due there has been removed and its stream record can be read, and until the consumers of streams that run in this process are done with
// it, as if the time had passed. After a minute of real time it returns what has happened, with Unfinished set.
func (c *Clock) Advance(ctx context.Context, by time.Duration) (Moved, error) {
	return c.advance(ctx, by, advanceLimit)
}

// Set moves the clock forward to an instant, rounded up to the millisecond, as Advance does. An instant that lies behind is
// ErrBackward.
func (c *Clock) Set(ctx context.Context, to time.Time) (Moved, error) {
	return c.set(ctx, to, advanceLimit)
}

func (c *Clock) advance(ctx context.Context, by, limit time.Duration) (Moved, error) {
	if by < 0 {
		return Moved{}, fmt.Errorf("advance by %s: %w", by, ErrBackward)
	}
	before := c.expired.Load()
	report, err := c.engine.Advance(ctx, by, limit)
	return Moved{
		From:       report.From.Time(),
		To:         report.To.Time(),
		Expired:    c.expired.Load() - before,
		Unfinished: report.Unfinished,
		Busy:       report.Busy,
	}, err
}

func (c *Clock) set(ctx context.Context, to time.Time, limit time.Duration) (Moved, error) {
	now := c.Now()
	to = to.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond)
	by := to.Sub(now)
	switch {
	case by < 0:
		return Moved{}, fmt.Errorf("set to %s, which is before %s: %w", stamp(to), stamp(now), ErrBackward)
	case !now.Add(by).Equal(to): // a duration holds 292 years
		return Moved{}, fmt.Errorf("set to %s: %w: move it by at most 292 years at a time", stamp(to), clock.ErrRange)
	}
	return c.advance(ctx, by, limit)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// functions is the clock as the clock endpoints move it.
func (c *Clock) functions() admin.Clock {
	here := func(err error) (admin.Moved, error) {
		now := c.Now()
		return admin.Moved{From: now, To: now}, refused(err)
	}
	return admin.Clock{
		State: func() admin.ClockState { return admin.ClockState(c.State()) },
		Freeze: func(context.Context) (admin.Moved, error) {
			c.Freeze()
			return here(nil)
		},
		Rate: func(_ context.Context, rate float64) (admin.Moved, error) { return here(c.SetRate(rate)) },
		Set: func(ctx context.Context, to time.Time, limit time.Duration) (admin.Moved, error) {
			moved, err := c.set(ctx, to, limit)
			return admin.Moved(moved), refused(err)
		},
		Advance: func(ctx context.Context, by, limit time.Duration) (admin.Moved, error) {
			moved, err := c.advance(ctx, by, limit)
			return admin.Moved(moved), refused(err)
		},
	}
}

// refused marks what the clock does not do, as against what went wrong.
func refused(err error) error {
	if errors.Is(err, clock.ErrBackward) || errors.Is(err, clock.ErrRange) {
		return &admin.MoveError{Reason: err.Error()}
	}
	return err
}
