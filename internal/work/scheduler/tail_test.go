package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// inputs returns the new deliveries in order, as minute of the occurrence and input.
func (w *world) inputs() string {
	var all []string
	taken := w.taken()
	slices.SortStableFunc(taken, func(a, b target.Delivery) int { return a.Time.Compare(b.Time) })
	for _, d := range taken {
		all = append(all, d.Time.Format("4")+string(d.Body))
	}
	return strings.Join(all, " ")
}

// While firings lag behind, occurrences due before an update are delivered by the earlier version
// and its catch-up, and those after it by the new version. In the end no trace of the earlier
// version is left.
func TestUpdateWhileLagging(t *testing.T) {
	input := func(text string) string { return targetJSON(queueARN, `"Input":"`+text+`"`) }
	for _, tt := range []struct {
		name, catchUp string
		change        func(*world)
		want          string
	}{
		{"input", "all", func(w *world) {
			w.must("PUT", "/schedules/s", body("rate(1 minute)", input("b")), headerCatchUp, "all")
		}, "1a 2a 3a 4b 5b 6b"},
		{"pace", "all", func(w *world) {
			w.must("PUT", "/schedules/s", body("rate(2 minutes)", input("b")), headerCatchUp, "all")
		}, "1a 2a 3a 3b 5b"},
		{"disabled", "all", func(w *world) {
			w.must("PUT", "/schedules/s", body("rate(1 minute)", input("b"), `"State":"DISABLED"`))
		}, "1a 2a 3a"},
		{"once", "all", func(w *world) { w.must("PUT", "/schedules/s", body("at(2030-01-01T00:04:00)", input("b"))) }, "1a 2a 3a 4b"},
		{"last", "last", func(w *world) {
			w.must("PUT", "/schedules/s", body("rate(1 minute)", input("b")), headerCatchUp, "last")
		}, "3a 4b 5b 6b"},
		{"skip", "skip", func(w *world) {
			w.must("PUT", "/schedules/s", body("rate(1 minute)", input("b")), headerCatchUp, "skip")
		}, "5b 6b"},
		{"twice", "all", func(w *world) {
			w.must("PUT", "/schedules/s", body("rate(1 minute)", input("b")), headerCatchUp, "all")
			w.must("PUT", "/schedules/s", body("rate(1 minute)", input("c")), headerCatchUp, "all")
		}, "1a 2a 3a 4c 5c 6c"},
		{"thrice, lagging", "all", func(w *world) {
			w.must("PUT", "/schedules/s", body("rate(1 minute)", input("b")), headerCatchUp, "all")
			w.advance(2 * time.Minute) // 4 and 5 are due; 4 is armed, and 5 is dropped
			w.must("PUT", "/schedules/s", body("rate(1 minute)", input("c")), headerCatchUp, "all")
		}, "1a 2a 3a 4b 6c 7c 8c"},
		{"deleted", "all", func(w *world) { w.must("DELETE", "/schedules/s", "") }, "1a"},
		{"updated and deleted", "all", func(w *world) {
			w.must("PUT", "/schedules/s", body("rate(1 minute)", input("b")))
			w.must("DELETE", "/schedules/s", "")
		}, "1a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, t.TempDir(), nil)
			w.must("POST", "/schedules/s", body("rate(1 minute)", input("a")), headerCatchUp, tt.catchUp)
			w.advance(0)
			w.taken()
			w.halt()
			w.advance(3*time.Minute + 500*time.Millisecond)
			tt.change(w)
			w.restart(2*time.Minute + 15*time.Second)
			w.advance(time.Minute)
			var ids = map[string]bool{}
			w.got.Lock()
			for _, d := range w.got.all {
				ids[d.ID] = true
			}
			n := len(w.got.all)
			w.got.Unlock()
			if len(ids) != n {
				t.Errorf("%d deliveries have %d ids", n, len(ids))
			}
			if got := w.inputs(); got != tt.want {
				t.Errorf("delivered\n got %s\nwant %s", got, tt.want)
			}
			if got := w.items(defaultTable); strings.Contains(got, partRemains) {
				t.Errorf("the table has %s", got)
			}
			if e, err := w.entry(t.Context(), defaultTable, "s"); err != nil || e != nil && e.tail.pending() {
				t.Errorf("the definition has %+v, %v", e, err)
			}
		})
	}
}

// After a deletion the earlier version arms nothing more.
func TestDeleteWhileLagging(t *testing.T) {
	w := newWorld(t, "", nil)
	w.must("POST", "/schedules/s", body("cron(* * * * ? *)"), headerCatchUp, "all")
	w.halt()
	w.advance(9 * time.Minute)
	w.must("PUT", "/schedules/s", body("rate(1 hour)", `"State":"DISABLED"`))
	for range 3 {
		all := w.firings(defaultTable)
		w.armAfter(all[len(all)-1])
		w.advance(0)
	}
	w.must("DELETE", "/schedules/s", "")
	for _, f := range w.firings(defaultTable) {
		w.armAfter(f)
	}
	w.advance(0)
	if n := len(w.firings(defaultTable)); n != 4 {
		t.Errorf("%d firings, want 4", n)
	}
	if got := w.items(defaultTable); got != "" {
		t.Errorf("the table has %s", got)
	}
}

// If a rule is changed or disabled, or loses its targets, while its firings lag behind, occurrences
// due before are delivered by the earlier version.
func TestRuleWhileLagging(t *testing.T) {
	for _, tt := range []struct{ action, body, want string }{
		{"PutTargets", `{"Rule":"r","Targets":[{"Id":"1","Arn":"` + lambdaARN + `","Input":"\"b\""}]}`, `1"a" 2"a" 3"a" 4"b" 5"b" 6"b"`},
		{"DisableRule", `{"Name":"r"}`, `1"a" 2"a" 3"a"`},
		{"RemoveTargets", `{"Rule":"r","Ids":["1"]}`, `1"a" 2"a" 3"a"`},
	} {
		t.Run(tt.action, func(t *testing.T) {
			w := newWorld(t, t.TempDir(), func(w *world) { w.options.CatchUp = CatchUpAll })
			w.mustAct("PutRule", `{"Name":"r","ScheduleExpression":"rate(1 minute)"}`)
			w.mustAct("PutTargets", `{"Rule":"r","Targets":[{"Id":"1","Arn":"`+lambdaARN+`","Input":"\"a\""}]}`)
			w.halt()
			w.advance(3*time.Minute + 500*time.Millisecond)
			w.mustAct(tt.action, tt.body)
			w.restart(2*time.Minute + 15*time.Second)
			w.advance(time.Minute)
			if got := w.inputs(); got != tt.want {
				t.Errorf("delivered\n got %s\nwant %s", got, tt.want)
			}
			if got := w.items(rulesTable); strings.Contains(got, partRemains) {
				t.Errorf("the table has %s", got)
			}
		})
	}
}

// A repeated record arms nothing twice, neither while an earlier version has firings nor after
// that.
func TestTailArmsOnce(t *testing.T) {
	w := newWorld(t, "", nil)
	w.must("POST", "/schedules/s", body("cron(* * * * ? *)"), headerCatchUp, "all")
	w.halt()
	w.advance(3 * time.Minute)
	w.must("PUT", "/schedules/s", body("at(2031-01-01T00:00:00)"))
	for range 6 {
		for _, f := range w.firings(defaultTable) {
			w.armAfter(f)
			w.armAfter(f)
		}
		w.advance(0)
	}
	var got []string
	for _, f := range w.firings(defaultTable) {
		got = append(got, fmt.Sprintf("%d.%d@%s", f.version, f.number, f.occurrence.Format("4")))
	}
	if s := fmt.Sprint(got); s != "[1.1@1 1.2@2 1.3@3]" {
		t.Errorf("fired %s", s)
	}
	if e, err := w.entry(t.Context(), defaultTable, "s"); err != nil || e.tail.pending() {
		t.Errorf("the definition has %+v, %v", e, err)
	}
}
