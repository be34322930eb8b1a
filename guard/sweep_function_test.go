package guard

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestSweepFunction: consecutive calls remove all due items, each from the last one's position on.
func TestSweepFunction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	f := NewFunctions(w.indexOptions())
	for i := range int64(100) {
		w.putWindowed(fmt.Sprint(i), w.in(i*60))
	}
	sweep := func() SweepReport {
		t.Helper()
		r, err := f.Sweep(t.Context(), time.Time{})
		must(t, err)
		if !r.Complete || !r.Through.Equal(w.now()) {
			t.Errorf("the sweep at %v: %+v", w.now(), r)
		}
		return r
	}
	w.advance(30*time.Minute + time.Second)
	if r := sweep(); r.Removed != 31 || w.count() != 69 || r.MaxLate < 1800 {
		t.Errorf("%+v, and %d items are left", r, w.count())
	}
	w.advance(time.Second)
	if r := sweep(); r.Removed != 0 || r.Refused != 0 {
		t.Errorf("with nothing new: %+v", r)
	}
	w.advance(40 * time.Minute) // runs were left out
	if r := sweep(); r.Removed != 40 || w.count() != 29 {
		t.Errorf("%+v, and %d items are left", r, w.count())
	}
}

// TestSweepAhead: a sweep up to a later instant waits for it, and items go at their deadlines.
func TestSweepAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	for i := range int64(10) {
		w.putWindowed(fmt.Sprint(i), w.in(i))
	}
	done := make(chan error, 1)
	var r SweepReport
	go func() {
		var err error
		r, err = Sweep(t.Context(), w.indexOptions(), w.now().Add(5*time.Second))
		done <- err
	}()
	for i := range 6 {
		await(t, fmt.Sprintf("%d items are left", 9-i), func() bool { return w.count() == 9-i })
		if i < 5 {
			select {
			case err := <-done:
				t.Fatalf("the sweep ended early: %+v, %v", r, err)
			default:
			}
			w.advance(time.Second)
		}
	}
	if err := <-done; err != nil || !r.Complete || r.Removed != 6 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSweepInTime: a sweep ends before its time is over, and reports that it is not complete.
func TestSweepInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withWindows)
		tap := w.tapped()
		for i := range int64(100) {
			w.putWindowed(fmt.Sprint(i), w.in(0))
		}
		tap.do(func(ctx context.Context, operation string, _ any) error {
			if operation == "DeleteItem" {
				return errors.New("the network is down")
			}
			return nil
		})
		// a twentieth of it is reserved for the end
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		r, err := Sweep(ctx, w.indexOptions(), time.Time{})
		if err != nil || r.Complete || r.Removed != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if ctx.Err() != nil {
			t.Error("nothing of the time was left")
		}
		tap.do(nil)
		if r, err = Sweep(t.Context(), w.indexOptions(), time.Time{}); err != nil || !r.Complete || r.Removed != 100 {
			t.Errorf("the next: %+v, %v", r, err)
		}
	})
}

// TestSweepDryRun: due items stay.
func TestSweepDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	w.putWindowed("a", w.in(0))
	o := w.indexOptions()
	o.DryRun = true
	if r, err := Sweep(t.Context(), o, time.Time{}); err != nil || r.Spared != 1 || !w.has("a") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSweepProblem: a permanent fault is an error.
func TestSweepProblem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var p *Problem
	if _, err := Sweep(t.Context(), w.indexOptions(), time.Time{}); !errors.As(err, &p) || p.Code != NoIndex {
		t.Errorf("without an index: %v", err)
	}
	o := w.indexOptions()
	o.Table = "none"
	if _, err := Sweep(t.Context(), o, time.Time{}); !errors.As(err, &p) || p.Code != NoTable {
		t.Errorf("without a table: %v", err)
	}
}
