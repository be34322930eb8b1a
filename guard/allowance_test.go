package guard

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// wantLimit ends the test unless guard has ended because it has removed as many items as it may.
func (r *guarding) wantLimit() {
	r.t.Helper()
	r.awaitEnd()
	var p *Problem
	if err := r.stop(); !errors.As(err, &p) || p.Code != Limit {
		r.t.Fatalf("guard ended with %v", err)
	}
}

// MaxRemovals is a number of items that guard removes, and no more: alone, many at a time, by
// transactions, and if other removals are refused.
func TestMaxRemovals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ batch, concurrency, renewed int }{{0, 1, 0}, {0, 64, 0}, {25, 8, 0}, {0, 8, 30}, {10, 4, 30}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			w := newWorld(t)
			w.fill("a", 60, w.in(0))
			o := w.options(Auto)
			o.Batch, o.Concurrency, o.MaxRemovals = c.batch, c.concurrency, 20
			r := w.startIdle(o)
			var due []armed.Entry
			for i := range 60 {
				due = append(due, r.entry(w, fmt.Sprint("a", i)))
			}
			for i := range c.renewed {
				w.renew(fmt.Sprint("a", i), w.in(3600))
			}
			for _, e := range due {
				r.arm(e)
			}
			r.wantLimit()
			if left := w.count(); left != 40 {
				t.Errorf("%d of 60 items are left", left)
			}
		})
	}
}

// A removal whose answer was lost counts: no more items go than are allowed.
func TestMaxRemovalsOfLostAnswers(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		t.Run(fmt.Sprint("made ", made), func(t *testing.T) {
			w := newWorld(t, overHTTP)
			var n atomic.Int64
			w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
				if operation(r) != "DeleteItem" || n.Add(1)%2 == 0 {
					return send(r)
				}
				if made {
					answer, err := send(r)
					if err != nil {
						return nil, err
					}
					answer.Body.Close()
				}
				return nil, errors.New("the answer is lost")
			})
			w.fill("a", 60, w.in(0))
			o := w.options(Auto)
			o.Concurrency, o.MaxRemovals = 8, 20
			r := w.startIdle(o)
			for i := range 60 {
				r.arm(r.entry(w, fmt.Sprint("a", i)))
			}
			r.wantLimit()
			if left := w.count(); left < 40 || made && left != 40 {
				t.Errorf("%d of 60 items are left", left)
			}
		})
	}
}

// Guards that share the count remove no more than allowed together, at the same time or one after
// the other. What one has reserved and not removed does not count once it has ended.
func TestMaxRemovalsShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill("a", 60, w.in(0))
	o := w.options(Auto)
	o.Concurrency, o.MaxRemovals, o.Removals = 4, 20, &Removals{}
	arm := func(r *guarding, from, to int) {
		for i := from; i < to; i++ {
			r.arm(r.entry(w, fmt.Sprint("a", i)))
		}
	}
	first := w.startIdle(o)
	arm(first, 0, 5)
	first.awaitCount(Removed, 5)
	must(t, first.stop())
	if left := w.count(); left != 55 {
		t.Fatalf("%d of 60 items are left", left)
	}
	second, third := w.startIdle(o), w.startIdle(o)
	arm(second, 5, 30)
	arm(third, 30, 60)
	second.awaitEnd()
	second.wantLimit()
	third.wantLimit()
	if left := w.count(); left != 40 {
		t.Errorf("%d of 60 items are left", left)
	}
}

// A guard that ends gives back what it has reserved, and wakes the others.
func TestAllowanceGivenBack(t *testing.T) {
	t.Parallel()
	shared := &Removals{}
	one, other := newAllowance(3, shared), newAllowance(3, shared)
	leave := one.join()
	defer other.join()()
	if n, used := one.reserve(5); n != 3 || used {
		t.Fatalf("%d may begin; the limit is reached: %v", n, used)
	}
	if n, used := other.reserve(1); n != 0 || used {
		t.Fatalf("%d may begin while 3 are under way; the limit is reached: %v", n, used)
	}
	lost := armed.Removal{Entry: armed.Entry{Key: "a"}}
	one.again(lost, true)
	leave()
	select {
	case <-other.freed:
	default:
		t.Error("the other guard sleeps on")
	}
	if n, used := other.reserve(5); n != 2 || used {
		t.Errorf("%d may begin after one lost answer; the limit is reached: %v", n, used)
	}
}

// The schedule strategy cannot limit what the Scheduler deletes, and says so.
func TestLimitsOfSchedules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.scheduling()
	o.MaxRemovals = 1
	_, err := StreamRecords(t.Context(), o, w.event())
	if !errors.Is(err, errScheduleLimits) {
		t.Errorf("StreamRecords: %v", err)
	}
	if o.Strategy = Schedule; !errors.Is(second(New(o)), errScheduleLimits) {
		t.Error("New takes the options")
	}
}
