package clock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit"
)

// sleeper sleeps in a goroutine of its own.
type sleeper struct {
	wake chan struct{}
	err  chan error
}

func sleep(ctx context.Context, c *Clock, until int64) sleeper {
	s := sleeper{make(chan struct{}), make(chan error, 1)}
	go func() { s.err <- c.Sleep(ctx, until, s.wake) }()
	synctest.Wait()
	return s
}

// returned reports whether the sleeper has returned, with its error.
func (s sleeper) returned() (bool, error) {
	synctest.Wait()
	select {
	case err := <-s.err:
		return true, err
	default:
		return false, nil
	}
}

func (s sleeper) check(t *testing.T, what string, want bool) {
	t.Helper()
	if got, err := s.returned(); got != want || err != nil {
		t.Errorf("%s: returned %v, %v", what, got, err)
	}
}

// A sleeper returns exactly at its millisecond, at any rate, and not a nanosecond before.
func TestNeverEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(123456 * time.Nanosecond)
		for _, rate := range []float64{1, 1, 0.001, 0.3, 2, 3, 7, 1000} {
			c := New()
			if err := c.SetRate(rate); err != nil {
				t.Fatal(err)
			}
			for _, ahead := range []int64{1, 2, 999, 86_400_000} {
				until := c.Millis() + ahead
				before := time.Now()
				if err := c.Sleep(t.Context(), until, nil); err != nil {
					t.Fatal(err)
				}
				if now := c.Millis(); now < until || now > until+int64(rate/1000) {
					t.Errorf("rate %v, %d ahead: returned at %d, which is %d late", rate, ahead, now, now-until)
				}
				if slept := time.Since(before); slept > time.Duration(float64(ahead)*1e6/rate)+2*time.Microsecond {
					t.Errorf("rate %v, %d ms ahead: slept %v", rate, ahead, slept)
				}
			}
		}
	})
}

// Sleep returns at once for a past instant, and returns the error of a done context.
func TestSleepPast(t *testing.T) {
	c := New()
	if err := c.Sleep(t.Context(), c.Millis(), nil); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, until := range []int64{0, c.Millis() + 1e6, Never} {
		if err := c.Sleep(ctx, until, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("until %d: %v", until, err)
		}
	}
}

// A wake, a move of the clock and the end of the context each end a sleep.
func TestSleepEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		for what, act := range map[string]func(c *Clock, s sleeper){
			"wake":    func(_ *Clock, s sleeper) { s.wake <- struct{}{} },
			"freeze":  func(c *Clock, _ sleeper) { c.Freeze() },
			"advance": func(c *Clock, _ sleeper) { _ = c.Advance(1) },
			"rate":    func(c *Clock, _ sleeper) { _ = c.SetRate(3) },
			"raise":   func(c *Clock, _ sleeper) { c.Raise(c.Millis() + 1) },
		} {
			for _, ahead := range []int64{1000, Never} {
				c := New()
				until := ahead
				if ahead != Never {
					until += c.Millis()
				}
				s := sleep(ctx, c, until)
				s.check(t, what+" before", false)
				if what == "advance" {
					_ = c.Advance(time.Microsecond)
				}
				act(c, s)
				s.check(t, what, true)
			}
		}
		s := sleep(ctx, New(), Never)
		cancel()
		if done, err := s.returned(); !done || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v, %v", done, err)
		}
	})
}

// While the clock is frozen no real time ends a sleep; once it runs again the sleep continues.
func TestSleepFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		c.Freeze()
		until := c.Millis() + 1000
		s := sleep(t.Context(), c, until)
		time.Sleep(24 * time.Hour)
		s.check(t, "a day later", false)
		if err := c.Advance(999 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		s.check(t, "advanced, not yet there", true)
		s = sleep(t.Context(), c, until)
		c.Run()
		s.check(t, "running", true)
		s = sleep(t.Context(), c, until)
		time.Sleep(time.Millisecond)
		s.check(t, "there", true)
	})
}

// A clock below its floor does not end a sleep before it has caught up.
func TestSleepStanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		start := c.Millis()
		c.Raise(start + 1000)
		s := sleep(t.Context(), c, start+1001)
		time.Sleep(1000 * time.Millisecond)
		s.check(t, "standing", false)
		time.Sleep(time.Millisecond)
		s.check(t, "caught up", true)
	})
}

// After a step of the wall clock, the next call of Millis makes sleepers set new timers.
func TestWallJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		s := sleep(t.Context(), c, c.Millis()+3_600_000)
		c.skew.Add(int64(time.Hour)) // as if the wall clock had stepped since the timer was set
		s.check(t, "unnoticed", false)
		c.Millis()
		s.check(t, "noticed", true)
	})
}

// Nothing ticks while a sleeper waits, however long; and an instant beyond all timers is slept for
// too.
func TestIdleIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		near, far, never := sleep(t.Context(), c, c.Millis()+86_400_000), sleep(t.Context(), c, Never-1), sleep(t.Context(), c, Never)
		before := testkit.Wakeups()
		time.Sleep(24*time.Hour - time.Millisecond)
		if n := testkit.Wakeups() - before; n > 100 {
			t.Errorf("%d wake-ups in an idle day", n)
		}
		near.check(t, "a millisecond before", false)
		time.Sleep(time.Millisecond)
		near.check(t, "a day later", true)
		far.check(t, "far away", false)
		never.check(t, "never", false)
		far.wake <- struct{}{}
		never.wake <- struct{}{}
		far.check(t, "woken", true)
		never.check(t, "woken", true)
	})
}

// Real time is measured and waited for whatever a clock does.
func TestRealTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elapsed := Stopwatch()
		Pause(time.Second, nil)
		if got := elapsed(); got != time.Second {
			t.Errorf("paused for %v", got)
		}
		stop := make(chan struct{})
		close(stop)
		Pause(time.Hour, stop)
		called := make(chan struct{})
		AfterFunc(time.Second, func() { close(called) })
		AfterFunc(time.Second, func() { t.Error("called after Stop") }).Stop()
		<-called
		if got := elapsed(); got != 2*time.Second {
			t.Errorf("at the end %v", got)
		}
	})
}
