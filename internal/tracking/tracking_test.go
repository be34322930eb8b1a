package tracking

import "testing"

var target = Target{Utilisation: 0.7, Band: 0.2, Least: 5, Most: 100}

func TestWanted(t *testing.T) {
	for units, want := range map[float64]float64{0: 5, 3.5: 5, 7: 10, 7.1: 11, 70: 100, 1000: 100} {
		if got := target.Wanted(units); got != want {
			t.Errorf("%g units want %g, not %g", units, want, got)
		}
	}
}

// Two minutes above the target grow capacity, by the higher one. Fifteen minutes twenty points
// below shrink it, by the highest one.
func TestAlarms(t *testing.T) {
	var a Alarms
	capacity := 20.0
	minute := func(consumed float64, want Change, to float64) {
		t.Helper()
		a.Observe(consumed, capacity, target)
		if change, got := a.Ask(capacity, target); change != want || got != to {
			t.Fatalf("after %g: %d to %g, want %d to %g", consumed, change, got, want, to)
		}
	}
	minute(14, None, 20) // at the target
	minute(15, None, 20)
	minute(12, None, 20)
	minute(21, None, 20)
	minute(15, Out, 30)
	a.Restart()
	capacity = 30
	minute(20, None, 30)
	minute(16, None, 30)
	minute(15, None, 30) // at the lower threshold
	for range 14 {
		minute(1, None, 30)
	}
	minute(7, In, 10)
	minute(7, In, 10) // the alarm goes on
	a.Restart()
	minute(7, None, 30)
	capacity = 100
	for range 5 {
		minute(99, None, 100) // no more than Most
	}
}
