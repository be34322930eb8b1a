package guard

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Over HTTP and by the machine's clock, guard learns the endpoint's time, and removes items soon
// after the deadline, but never before.
func TestCalibratesAgainstAServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overHTTP, inRealTime)
	deadline := w.now().Add(4 * time.Second).Truncate(time.Second)
	w.put("a", w.in(int64(deadline.Sub(w.now().Truncate(time.Second)).Seconds())))
	r := w.startIdle(w.options(Auto))
	r.arm(r.entry(w, "a"))
	there := w.now()
	r.await("it is gone", func() bool {
		now := w.now()
		if !w.has("a") {
			return true
		}
		there = now
		return false
	})
	if r.Stats().Lateness.Max > 5*time.Second { // which a machine of CI may take for anything
		t.Errorf("it went %v late", r.Stats().Lateness.Max)
	}
	if there.Before(deadline) && w.now().Before(deadline) {
		t.Errorf("it went before its deadline: it was there at %v, and gone at %v", there, w.now())
	}
	s := r.Stats()
	// dates are whole seconds
	if s.Ahead[0] > 0 || s.Ahead[1] < 0 || s.Ahead[1]-s.Ahead[0] > 900*time.Millisecond {
		t.Errorf("the endpoint's clock is this machine's, and guard takes it for one between %v", s.Ahead)
	}
}

// If the clocks differ too much, in either direction, guard stops instead of removing items too
// early.
func TestStopsBeyondMaxSkew(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-time.Minute, time.Minute} {
		w := newWorld(t, overHTTP)
		o := w.options(Auto)
		o.clock, o.LocalClock = clock.NewFrozenAt(w.now().Add(-by)), false
		r := w.run(must1(New(o))(t), nil)
		p := r.problem()
		if p == nil || p.Code != Skew || !strings.Contains(p.Message, map[bool]string{true: "ahead of", false: "behind"}[by > 0]) {
			t.Errorf("by %v: %v", by, p)
		}
	}
}

// An endpoint without Date headers cannot be guarded.
func TestNoDate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options(Auto)
	o.LocalClock = false
	w.answer(func(answer *http.Response) { answer.Header.Del("Date") })
	o.DB = w.db
	r := w.run(must1(New(o))(t), nil)
	if p := r.problem(); p == nil || p.Code != NoDate {
		t.Errorf("%v", p)
	}
}

// problem waits for the end of Run, and returns its problem.
func (r *guarding) problem() *Problem {
	r.t.Helper()
	await(r.t, "guard ends", func() bool {
		select {
		case <-r.over:
			return true
		default:
			return false
		}
	})
	var p *Problem
	errors.As(r.stop(), &p)
	return p
}

// must1 returns a value that comes with an error.
func must1[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// NeverEarly: a response with a Date far ahead, from a machine or proxy with a wrong clock, makes
// nothing due early, until guard finds that the clocks differ too much.
func TestOneWrongDateRemovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overHTTP)
	o := w.options(Auto)
	o.clock, o.LocalClock = clock.NewFrozenAt(w.now()), false
	g := must1(New(o))(t)
	at := w.now().UnixMilli()
	says := func(ms int64) { g.saw(time.UnixMilli(ms).UTC().Format(http.TimeFormat), at, at) }
	says(at)
	bound := g.now()
	// within MaxSkew and beyond
	for _, ahead := range []time.Duration{2 * time.Second, 4 * time.Second, time.Hour} {
		says(at + ahead.Milliseconds())
		if g.now() > bound {
			t.Errorf("one answer that is %v ahead is believed: by %v", ahead, time.Duration(g.now()-bound)*time.Millisecond)
		}
		if says(at); g.now() > bound {
			t.Errorf("after one that was %v ahead, the endpoint's clock is taken for %v later", ahead, time.Duration(g.now()-bound)*time.Millisecond)
		}
	}
	says(at + time.Hour.Milliseconds())
	says(at + time.Hour.Milliseconds())
	if ahead := g.now() - at; ahead > o.withDefaults().MaxSkew.Milliseconds() {
		t.Errorf("guard takes it to be %v later", time.Duration(ahead)*time.Millisecond)
	}
	if p := g.doubt(); p == nil || p.Code != Skew {
		t.Errorf("the problem is %v", p)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := g.sleep(ctx, at+time.Minute.Milliseconds(), nil); err == nil {
		t.Error("who waits for a deadline that is not due looks again and again")
	}
}

// One response with a Date hours in the past stops removals until the next ones contradict it, and
// neither removals nor the strategies wait for the wrong time.
func TestOneWrongDateDelaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := must1(New(Options{DB: dynamodb.New(dynamodb.Options{}), Table: worldTable, clock: clock.NewAt(began)}))(t)
		says := func(behind time.Duration) {
			at := g.local.Millis()
			g.saw(time.Now().Add(-behind).UTC().Format(http.TimeFormat), at, at)
		}
		says(0)
		says(8 * time.Hour)
		until := g.now() + 5000
		if g.trusted() == nil {
			t.Error("removals go on")
		}
		var all sync.WaitGroup
		for name, wake := range map[string]chan struct{}{"a sweep": nil, "the owner of a partition": make(chan struct{}), "the pump of removals": g.armed.Wake} {
			all.Go(func() {
				for g.now() < until {
					must(t, g.sleep(t.Context(), until, wake))
				}
				if took := time.Since(began); took < 4*time.Second || took > 10*time.Second {
					t.Errorf("%s has waited for %v", name, took)
				}
			})
		}
		synctest.Wait()
		time.Sleep(time.Second)
		says(0)
		time.Sleep(time.Second)
		says(0)
		if err := g.trusted(); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
}

// A wait for the endpoint's clock does not take half an hour longer when that is set back by half
// an hour.
func TestPassWhereTheClockGoesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Options{DB: dynamodb.New(dynamodb.Options{}), Table: "t", Attribute: "ttl", MaxSkew: time.Hour})
		must(t, err)
		says := func(off time.Duration) {
			at := g.local.Millis()
			g.saw(time.Now().Add(off).UTC().Format(http.TimeFormat), at, at)
		}
		says(30 * time.Minute)
		since, began := g.now(), time.Now()
		must(t, g.env().Pass(t.Context(), since, 5000))
		if took := time.Since(began); took < 5*time.Second || took > 7*time.Second {
			t.Errorf("5 s take %v", took)
		}
		for _, early := range []bool{true, false} {
			says(30 * time.Minute) // guard trusts the second one
			time.Sleep(time.Millisecond)
			says(30 * time.Minute)
			since, began = g.now(), time.Now()
			if early {
				says(0)
			} else {
				time.AfterFunc(time.Second, func() { says(0) })
			}
			must(t, g.env().Pass(t.Context(), since, 5000))
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("5 s take %v", took)
			}
		}
	})
}
