// Package tracking is the arithmetic of target-tracking autoscaling, as Amazon documents it for
// tables: two alarms over the consumption of minutes, and the capacity that they ask for. The
// planner simulates with it, and the autoscaling of the server acts by it.
//
// Its rules and their sources are in the comment of package planner.
package tracking

import "math"

const (
	// OutMinutes is the number of consecutive minutes above the target before capacity grows.
	OutMinutes = 2
	// InMinutes is the number of consecutive minutes below the target before capacity shrinks.
	InMinutes = 15
)

// Target is what a policy and its scalable target ask for.
type Target struct {
	Utilisation float64 // consumption / capacity, 0.2 to 0.9
	Band        float64 // distance below Utilisation at which capacity shrinks
	Least, Most float64 // capacity, in units per second
}

// Wanted returns the capacity for a consumption at the target, in whole units from Least to Most.
func (t Target) Wanted(units float64) float64 {
	// Slightly less, so that 7/0.7 is 10 and not 11.
	return min(max(math.Ceil(units/t.Utilisation-1e-9), t.Least), t.Most)
}

// Change is what the alarms ask for.
type Change int

// The changes.
const (
	None Change = iota
	Out         // more capacity
	In          // less capacity
)

// Alarms are the two alarms of a policy. The zero value has seen no minutes.
type Alarms struct {
	over, under  int     // consecutive minutes above and below the thresholds
	last, higher float64 // consumption of the last minute; the higher one of the last two
	recent       [InMinutes]float64
	next         int // the place of the next minute in recent
}

// Observe evaluates a minute in which consumed units per second were used of a capacity.
func (a *Alarms) Observe(consumed, capacity float64, t Target) {
	a.recent[a.next] = consumed
	a.next = (a.next + 1) % InMinutes
	if consumed > t.Utilisation*capacity*(1+1e-9) {
		a.over++
	} else {
		a.over = 0
	}
	if a.Low(consumed, capacity, t) {
		a.under++
	} else {
		a.under = 0
	}
	a.higher = max(consumed, a.last)
	a.last = consumed
}

// Low reports whether a consumption is so far below the target that capacity may shrink.
func (a *Alarms) Low(consumed, capacity float64, t Target) bool {
	return consumed < (t.Utilisation-t.Band)*capacity*(1-1e-9)
}

// Ask returns the change that the alarms ask for, with the new capacity.
func (a *Alarms) Ask(capacity float64, t Target) (Change, float64) {
	if a.over >= OutMinutes {
		if to := t.Wanted(a.higher); to > capacity {
			return Out, to
		}
		return None, capacity
	}
	if a.under < InMinutes {
		return None, capacity
	}
	highest := 0.0
	for _, units := range a.recent {
		highest = max(highest, units)
	}
	if to := t.Wanted(highest); to < capacity {
		return In, to
	}
	return None, capacity
}

// Restart makes the alarms count minutes from the beginning, after a change.
func (a *Alarms) Restart() { a.over, a.under = 0, 0 }
