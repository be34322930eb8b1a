package clock_test

import (
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Shown is the latest result of Millis, whether the clock follows the wall clock, is frozen or moved.
func TestShown(t *testing.T) {
	start := time.UnixMilli(1_000_000)
	frozen := clock.NewFrozenAt(start)
	if frozen.Shown() != 1_000_000 {
		t.Errorf("a frozen clock has shown %d", frozen.Shown())
	}
	if err := frozen.Set(start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*clock.Clock{frozen, clock.NewAt(start), clock.New()} {
		if now := c.Millis(); c.Shown() < now {
			t.Errorf("the clock returned %d, and has shown %d", now, c.Shown())
		}
	}
}
