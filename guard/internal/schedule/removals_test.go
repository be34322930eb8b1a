package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// A removal is counted once, whether guard or a schedule made it, and whichever of the outcome and
// the record comes first.
func TestRemovalsAreCountedOnce(t *testing.T) {
	one, late := removal{"a", 1000}, time.Second
	for _, c := range []struct {
		name    string
		outcome armed.Outcome // of guard's own attempt
		before  bool          // the record comes before the outcome
		want    int           // counts of schedules
	}{
		{"guard removed it", armed.Removed, false, 0}, {"guard removed it, and its record is early", armed.Removed, true, 0},
		{"the schedule was first", armed.Refused, false, 1}, {"the schedule was first, and its record is early", armed.Refused, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r removals
			n := 0
			see := func() {
				if r.see(one, late) {
					n++
				}
			}
			r.begin(one)
			if c.before {
				see()
			}
			if got, count := r.end(one, c.outcome); count {
				n++
				if got != late {
					t.Errorf("the lateness is %v", got)
				}
			}
			see()
			see() // delivered again
			if n != c.want || len(r.own) != 0 {
				t.Errorf("%d are counted, want %d; %d are under way", n, c.want, len(r.own))
			}
		})
	}
}

// An attempt that another replaces does not end the other.
func TestRemovalsOverlap(t *testing.T) {
	var r removals
	one := removal{"a", 1000}
	r.begin(one)
	r.begin(one)
	r.end(one, armed.Replaced)
	if r.see(one, 0) {
		t.Error("a removal by guard is counted as one by a schedule")
	}
	if _, count := r.end(one, armed.Removed); count {
		t.Error("a removal by guard is counted as one by a schedule, at its end")
	}
}

// The memory for removals is bounded, and keeps the recent ones.
func TestRemovalsAreForgotten(t *testing.T) {
	var r removals
	for i := range 3 * countedMost {
		r.see(removal{armed.Key(fmt.Sprint(i)), 1}, 0)
	}
	if n := len(r.counted) + len(r.before); n > 2*countedMost {
		t.Errorf("%d are kept", n)
	}
	if r.see(removal{armed.Key(fmt.Sprint(3*countedMost - 1)), 1}, 0) {
		t.Error("the last one is forgotten")
	}
}
