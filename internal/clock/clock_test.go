package clock

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// at returns the clock's time, relative to start.
func at(c *Clock, start int64) time.Duration {
	return time.Duration(c.Millis()-start) * time.Millisecond
}

func want(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// A new clock is the wall clock, rounded down to the millisecond.
func TestReal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		start := c.Millis()
		want(t, "at first", time.Duration(start-time.Now().UnixMilli()), 0)
		time.Sleep(1500*time.Millisecond - time.Nanosecond)
		want(t, "just before a millisecond", at(c, start), 1499*time.Millisecond)
		time.Sleep(time.Nanosecond)
		want(t, "at the millisecond", at(c, start), 1500*time.Millisecond)
		if s := c.State(); s != (State{Now: c.Now(), Rate: 1}) {
			t.Errorf("state %+v", s)
		}
	})
}

// A clock with its own start continues from there, independent of the wall clock.
func TestNewAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, start := range []time.Time{time.UnixMilli(5), time.UnixMilli(-1500).Add(-time.Microsecond), time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)} {
			c := NewAt(start)
			if got := c.Millis(); got != start.UnixMilli() {
				t.Errorf("%v: shows %d", start, got)
			}
			time.Sleep(time.Hour)
			want(t, start.String(), at(c, start.UnixMilli()), time.Hour)
			if s := c.State(); !s.Moved || s.Frozen || s.Standing || s.Offset != start.Truncate(time.Millisecond).Sub(time.Now().Add(-time.Hour)).Round(time.Millisecond) {
				t.Errorf("%v: state %+v", start, s)
			}
		}
	})
}

// Freezing stops the clock, running resumes it, setting and advancing move it forward, frozen or
// not.
func TestControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		start := c.Millis()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		must(c.Advance(0))
		if c.State().Moved {
			t.Error("advancing by nothing moved the clock")
		}
		c.Freeze()
		time.Sleep(time.Minute)
		want(t, "frozen", at(c, start), 0)
		must(c.Advance(10 * time.Second))
		time.Sleep(time.Minute)
		want(t, "frozen, advanced", at(c, start), 10*time.Second)
		if s := c.State(); !s.Frozen || !s.Moved || s.Standing || s.Offset != -110*time.Second {
			t.Errorf("state %+v", s)
		}
		c.Run()
		time.Sleep(time.Second)
		want(t, "run", at(c, start), 11*time.Second)
		must(c.SetRate(60))
		time.Sleep(time.Second)
		want(t, "at rate 60", at(c, start), 71*time.Second)
		must(c.SetRate(0))
		time.Sleep(time.Second)
		want(t, "at rate 0", at(c, start), 71*time.Second)
		c.Run()
		time.Sleep(time.Second)
		want(t, "run at the rate before", at(c, start), 131*time.Second)
		must(c.SetRate(0.5))
		time.Sleep(time.Second)
		want(t, "at rate 0.5", at(c, start), 131500*time.Millisecond)
		must(c.Set(c.Now().Add(time.Hour + time.Microsecond)))
		want(t, "set, rounded up", at(c, start), time.Hour+131501*time.Millisecond)
		must(c.Set(c.Now()))
		time.Sleep(2 * time.Second)
		want(t, "going on at its rate", at(c, start), time.Hour+132501*time.Millisecond)
	})
}

// A move back, or beyond the clock's range, is refused and changes nothing.
func TestRefused(t *testing.T) {
	c := New()
	c.Freeze()
	before := c.State()
	for what, test := range map[string]struct {
		err  error
		want error
	}{
		"set back":         {c.Set(c.Now().Add(-time.Millisecond)), ErrBackward},
		"set to zero":      {c.Set(time.Time{}), ErrBackward},
		"advance back":     {c.Advance(-1), ErrBackward},
		"negative rate":    {c.SetRate(-1), ErrRange},
		"not a number":     {c.SetRate(math.NaN()), ErrRange},
		"infinite rate":    {c.SetRate(math.Inf(1)), ErrRange},
		"year 10000":       {c.Set(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)), ErrRange},
		"beyond all years": {c.Set(time.Unix(math.MaxInt64/2, 0)), ErrRange},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%s: %v", what, test.err)
		}
	}
	after := c.State()
	if before.Offset, after.Offset = 0, 0; before != after {
		t.Errorf("state was %+v, is %+v", before, after)
	}
}

// The clock stops at the end of its range and does not overflow.
func TestEndOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewAt(time.UnixMilli(maxMillis - 10))
		if err := c.SetRate(maxRate); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * 365 * 24 * time.Hour)
		if got := c.Millis(); got != maxMillis {
			t.Errorf("shows %d", got)
		}
		if err := c.Advance(math.MaxInt64); !errors.Is(err, ErrRange) {
			t.Errorf("advance: %v", err)
		}
		if got := NewAt(time.Unix(math.MaxInt64/2, 0)).Millis(); got != maxMillis {
			t.Errorf("started beyond the end, shows %d", got)
		}
	})
}

// After a raise the clock shows at least the floor. It stands still until its own course reaches
// it.
func TestRaise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []*Clock{New(), NewAt(time.UnixMilli(1000))} {
			start := c.Millis()
			c.Raise(start - 5000)
			want(t, "raised to the past", at(c, start), 0)
			c.Raise(start + 5000)
			want(t, "raised", at(c, start), 5*time.Second)
			time.Sleep(4 * time.Second)
			want(t, "standing", at(c, start), 5*time.Second)
			if !c.State().Standing {
				t.Error("the state does not tell that the clock stands")
			}
			time.Sleep(2 * time.Second)
			want(t, "going", at(c, start), 6*time.Second)
			if c.State().Standing {
				t.Error("still said to stand")
			}
			c.Raise(start + 10_000)
			c.Freeze()
			want(t, "frozen while standing", at(c, start), 10*time.Second)
			c.Run()
			time.Sleep(time.Second)
			want(t, "going on after the raise", at(c, start), 11*time.Second)
		}
	})
}

// No call returns less than an earlier one while other calls move the clock; and a frozen clock
// does not move.
func TestMonotonic(t *testing.T) {
	c := New()
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for last := int64(0); ; {
				now := c.Millis()
				if now < last {
					t.Errorf("%d after %d", now, last)
				}
				last = now
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for n := range 300 {
		c.Freeze()
		frozen := c.Millis()
		for range 20 {
			if now := c.Millis(); now != frozen {
				t.Errorf("a frozen clock went from %d to %d", frozen, now)
			}
		}
		c.Run()
		_ = c.SetRate(float64(1 + n%7))
		_ = c.Advance(time.Duration(n%3) * time.Millisecond)
		c.Raise(c.Millis() + int64(n%2))
	}
	close(done)
	readers.Wait()
}

// A freeze is final even for a reader that read the wall clock before it: no result exceeds the
// frozen instant.
func TestFreezeIsFinal(t *testing.T) {
	for range 200 {
		c := New()
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				for range 200 {
					c.Millis()
				}
			})
		}
		c.Freeze()
		frozen := c.Millis()
		readers.Wait()
		if now := c.Millis(); now != frozen {
			t.Fatalf("frozen at %d, shows %d", frozen, now)
		}
	}
}

// Activity is idle when everything begun has ended.
func TestActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Activity
		if err := a.Idle(t.Context()); err != nil {
			t.Error(err)
		}
		first, second := a.Begin(), a.Begin()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Idle(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("idle with two in flight: %v", err)
		}
		idle := make(chan error)
		go func() { idle <- a.Idle(t.Context()) }()
		first()
		first()
		synctest.Wait()
		select {
		case <-idle:
			t.Error("idle with one in flight")
		default:
		}
		if a.Count() != 1 {
			t.Errorf("count %d", a.Count())
		}
		second()
		if err := <-idle; err != nil {
			t.Error(err)
		}
	})
}
