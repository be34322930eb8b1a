package program

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/guard"
)

// If neither an index nor a deadline table shows overdue items, the workers' reports are added up.
func TestOverdueAtWorkers(t *testing.T) {
	for _, c := range []struct {
		workers []guard.Worker
		want    string
	}{
		{nil, "unknown (no worker runs)"},
		{[]guard.Worker{{Name: "a"}, {Name: "b"}}, "none reported by the workers"},
		{[]guard.Worker{{Name: "a", Due: 2, Overdue: 500}, {Name: "b", Due: 3, Overdue: 1500}}, "5 reported by the workers, the oldest 1.5s late"},
	} {
		if got := overdueAtWorkers(&guard.Status{Workers: c.workers}); got != c.want {
			t.Errorf("%d workers: %q, want %q", len(c.workers), got, c.want)
		}
	}
}

// A worker's horizon is shown with its date where that is not today's.
func TestStatusShowsHorizon(t *testing.T) {
	at := time.Date(2030, 1, 1, 23, 59, 50, 0, time.UTC)
	s := &guard.Status{Table: "holds", At: at, Workers: []guard.Worker{
		{Name: "index", Strategy: guard.Index, At: at, Horizon: at.Add(9500 * time.Millisecond)}, {Name: "scan", Strategy: guard.Scan, At: at, Horizon: at.Add(2 * time.Hour)},
		{Name: "new", Strategy: guard.Scan, At: at},
	}}
	var out strings.Builder
	if err := writeStatus(&out, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`Until`, `index +index +now +0 +23:59:59\.500Z +0`, `scan +scan +now +0 +2030-01-02 01:59:50Z +0`, `new +scan +now +0 +0`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}

// A narrow terminal has room for the numbers first.
func TestUpcomingCells(t *testing.T) {
	for _, c := range []struct {
		columns int
		most    int64
		want    int64
	}{{80, 500, 40}, {57, 500, 40}, {56, 500, 39}, {40, 500, 23}, {25, 500, 8}, {24, 500, 0}, {24, 5, 9}, {1, 5, 0}} {
		if got := upcomingCells(c.columns, c.most); got != c.want {
			t.Errorf("%d columns and %d items: %d cells, want %d", c.columns, c.most, got, c.want)
		}
	}
}
