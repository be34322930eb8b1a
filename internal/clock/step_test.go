package clock

import (
	"testing"
	"time"
)

// A step of the wall clock is told once, with its sign; drift is not.
func TestOnStep(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Minute, 10 * time.Millisecond} {
		c := New()
		var told []time.Duration
		c.OnStep(func(by time.Duration) { told = append(told, by) })
		c.skew.Add(-int64(by)) // what was seen last lies as far back as the clock is about to be found ahead
		c.Millis()
		c.Millis()
		if by == 10*time.Millisecond {
			if len(told) != 0 {
				t.Errorf("drift of %v was told as %v", by, told)
			}
			continue
		}
		if len(told) != 1 || (told[0]-by).Abs() > maxSkew {
			t.Errorf("a step of %v was told as %v", by, told)
		}
	}
}
