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

// Clock is a database's time, which decides about expiry. It runs with the machine's clock until it
// is frozen, set, advanced or set to another rate, and it never goes back. Moving the clock of a
// directory is permanent; see Options.ClockControl.
type Clock struct {
	engine  *engine.Engine
	expired *atomic.Int64 // items removed by their deadlines since the database was opened
}

// ClockState is the reading and the mode of a clock.
type ClockState struct {
	Now    time.Time     // in UTC, to the millisecond
	Frozen bool          // the clock stands still until it is moved or has a rate
	Rate   float64       // seconds per second of real time, unless frozen
	Offset time.Duration // Now minus the machine's clock
	// the clock waits for the machine's, which is behind an instant that was already used
	Standing bool
}

// Moved is the result of moving a clock.
type Moved struct {
	From, To time.Time // before and after
	Expired  int64     // items removed by their deadlines during the move
	// the time limit passed before the clock arrived, or before all due work was done
	Unfinished bool
	// the consumers of streams in this process that were not done by then, in no order
	Busy []string
}

// Now returns the present instant, in UTC and to the millisecond.
func (c *Clock) Now() time.Time { return c.engine.Now().Time() }

// State returns the clock's present state.
func (c *Clock) State() ClockState {
	s := c.engine.Clock().State()
	return ClockState{Now: s.Now, Frozen: s.Frozen, Rate: s.Rate, Offset: s.Offset, Standing: s.Standing}
}

// Freeze stops the clock. SetRate starts it again.
func (c *Clock) Freeze() { c.engine.Clock().Freeze() }

// SetRate sets the clock's speed: 1 is real time, 60 is an hour a minute, 0 freezes it. Range: 0 to
// 1e9.
func (c *Clock) SetRate(rate float64) error { return c.engine.Clock().SetRate(rate) }

// advanceLimit bounds the real time that Advance and Set take.
const advanceLimit = time.Minute

// Advance moves the clock forward by a duration, as if the time had passed. It stops at each
// deadline on the way until the due items are removed, their stream records can be read, and the
// consumers of streams in this process are done with them. After a minute of real time it returns
// with Unfinished set.
func (c *Clock) Advance(ctx context.Context, by time.Duration) (Moved, error) {
	return c.advance(ctx, by, advanceLimit)
}

// Set moves the clock forward to an instant, rounded up to the millisecond, as Advance does. For an
// instant in the past it returns ErrBackward.
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
	case !now.Add(by).Equal(to): // a duration has at most 292 years
		return Moved{}, fmt.Errorf("set to %s: %w: move it by at most 292 years at a time", stamp(to), clock.ErrRange)
	}
	return c.advance(ctx, by, limit)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// functions returns the clock's operations for the endpoints below /_mayfly/clock. Refused moves
// return an *admin.MoveError.
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

// refused marks a request that the clock refuses, in contrast to a failure.
func refused(err error) error {
	if errors.Is(err, clock.ErrBackward) || errors.Is(err, clock.ErrRange) {
		return &admin.MoveError{Reason: err.Error()}
	}
	return err
}
