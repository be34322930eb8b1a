package clock

import (
	"errors"
	"testing"
	"time"
)

// An instant so early that its milliseconds overflow counts as past, not as future.
func TestAbsurdPast(t *testing.T) {
	for _, seconds := range []int64{-1 << 62, -1 << 56, -1<<55 - 1, -300_000_000_000} {
		past := time.Unix(seconds, 0)
		c := New()
		before := c.Millis()
		if err := c.Set(past); !errors.Is(err, ErrBackward) {
			t.Errorf("set to %d s: %v", seconds, err)
		}
		if now := c.Millis(); now < before || now > before+60_000 {
			t.Errorf("set to %d s: it is %d ms later", seconds, now-before)
		}
		if now := NewAt(past).Millis(); now > 0 {
			t.Errorf("begun at %d s: it shows %d", seconds, now)
		}
	}
}
