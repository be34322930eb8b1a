package planner

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A renewal is a write and belongs to the updates: if the workload has fewer updates, the report
// says so.
func TestRenewalsAreUpdates(t *testing.T) {
	noted := func(w Workload) bool {
		return slices.ContainsFunc(made(t, w, USEast1).Notes, func(n string) bool {
			return n == "a write moves a deadline: 3 renewals of each item are 75.0 % of the writes; include them in --updates" || strings.Contains(n, "moved by a write") && w.Updates > 0
		})
	}
	w := Workload{Writes: 100, ItemBytes: 1000, Retention: time.Hour, Renewals: 3}
	if !noted(w) {
		t.Error("it is not said that renewals are writes")
	}
	if w.Updates = 0.75; noted(w) {
		t.Error("the updates include the renewals, and it is said that they do not")
	}
	if w.Updates = 0.74; !noted(w) {
		t.Error("the updates are too few, and it is not said")
	}
}

// A mode that is cheaper because it throttles is reported with that reason.
func TestCheaperThatThrottles(t *testing.T) {
	verdict := func(w Workload) string {
		r := made(t, w, USEast1)
		if r.Modes.Throttles != (r.Tracks[0].Throttled > 0) {
			t.Errorf("%+v throttles %v", r.Modes, r.Tracks[0].Throttled)
		}
		return r.modesSection().below[0]
	}
	if got := verdict(readings()); got != "provisioned with autoscaling is cheaper, by $9,514.06 (58.7 %)" {
		t.Error(got)
	}
	if got := verdict(fixed(readings(), 5000, 1)); !strings.HasSuffix(got, "; but it throttles, see below") {
		t.Error(got)
	}
}
