package console

import (
	"testing"
	"time"
)

// The bars of a minute have all its removals, also while the minute goes on.
func TestSpread(t *testing.T) {
	for after, bars := range map[time.Duration]int{0: 1, 4 * time.Second: 1, 12 * time.Second: 2, time.Minute: 12, time.Hour: 12} {
		p := present{past: map[int64]float64{}}
		p.spread(begin, 120, begin.Add(after))
		total := 0.0
		for _, rate := range p.past {
			total += rate * pastStep.Seconds()
		}
		if len(p.past) != bars || total < 119.999 || total > 120.001 {
			t.Errorf("%s after its beginning a minute has %d bars with %f removals; want %d with 120", after, len(p.past), total, bars)
		}
	}
}
