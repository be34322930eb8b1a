package timer_test

import (
	"context"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/work/timer"
)

// Wait returns for each of its reasons. A ring is kept, but only one.
func TestBell(t *testing.T) {
	b := timer.NewBell()
	b.Ring()
	b.Ring()
	if !b.Wait(t.Context(), 0, nil) {
		t.Error("a ring was lost")
	}
	if b.Wait(t.Context(), time.Nanosecond, nil) {
		t.Error("a second ring was kept")
	}
	changed := make(chan struct{})
	close(changed)
	if b.Wait(t.Context(), 0, changed) {
		t.Error("a change is a ring")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if timer.Bell(nil).Wait(ctx, 0, nil) {
		t.Error("the end of ctx is a ring")
	}
	go b.Ring()
	if !b.Wait(t.Context(), time.Minute, nil) {
		t.Error("a ring does not wake")
	}
}

// AfterAll calls once, at the last of the calls.
func TestAfterAll(t *testing.T) {
	n := 0
	done := timer.AfterAll(3, func() { n++ })
	for i := range 5 {
		if done(); (n == 1) != (i >= 2) {
			t.Errorf("after %d calls it was called %d times", i+1, n)
		}
	}
}
