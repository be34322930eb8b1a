package clock

import (
	"testing"
	"time"
)

// A step of the wall clock is reported once, with its sign; drift is not.
func TestOnStep(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Minute, 10 * time.Millisecond} {
		c := New()
		var steps []time.Duration
		c.OnStep(func(by time.Duration) { steps = append(steps, by) })
		// as if the wall clock had stepped by this since the last call
		c.skew.Add(-int64(by))
		c.Millis()
		c.Millis()
		if by == 10*time.Millisecond {
			if len(steps) != 0 {
				t.Errorf("drift of %v was reported as %v", by, steps)
			}
			continue
		}
		if len(steps) != 1 || (steps[0]-by).Abs() > maxSkew {
			t.Errorf("a step of %v was reported as %v", by, steps)
		}
	}
}
