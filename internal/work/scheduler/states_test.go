package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// ReadStates returns the armed occurrence, also after updates of a rate.
func TestReadKept(t *testing.T) {
	w := newWorld(t, "", nil)
	w.must("POST", "/schedules/rate", body("rate(1 hour)"), "X-Mayfly-Catch-Up", "skip")
	w.create("window", "at(2030-01-02T00:00:00)", `"FlexibleTimeWindow":{"Mode":"FLEXIBLE","MaximumWindowInMinutes":60}`)
	w.create("off", "rate(1 hour)", `"State":"DISABLED"`)
	w.create("gone", "at(2030-01-01T00:00:05)")
	w.advance(90 * time.Minute)
	w.must("PUT", "/schedules/rate", body("rate(2 hours)"))
	w.advance(time.Minute)

	names := []string{"rate", "window", "off", "gone", "never"}
	for i := range 120 { // more than one call reads
		name := fmt.Sprint("more-", i)
		w.create(name, "at(2031-01-01T00:00:00)")
		names = append(names, name)
	}
	states, err := ReadStates(t.Context(), w.db, "default", names...)
	if err != nil {
		t.Fatal(err)
	}
	if len(states) != 124 {
		t.Errorf("%d are known", len(states))
	}
	updated := begin.Add(90 * time.Minute)
	if k := states["rate"]; !k.Anchor.Equal(updated) || !k.Occurrence.Equal(updated.Add(2*time.Hour)) || !k.Due.Equal(k.Occurrence) || k.CatchUp != "" {
		t.Errorf("rate: %+v", k)
	}
	if k := states["window"]; !k.Occurrence.Equal(begin.Add(24*time.Hour)) || k.Due.Sub(k.Occurrence) <= 0 || k.Due.Sub(k.Occurrence) > time.Hour {
		t.Errorf("window: %+v", k)
	}
	if !states["off"].Occurrence.IsZero() || !states["gone"].Occurrence.IsZero() || states["more-119"].Occurrence.IsZero() {
		t.Errorf("off: %+v, gone: %+v, more: %+v", states["off"], states["gone"], states["more-119"])
	}
	w.must("PUT", "/schedules/rate", body("rate(2 hours)"), "X-Mayfly-Catch-Up", "all")
	if states, err = ReadStates(t.Context(), w.db, "default", "rate"); err != nil || states["rate"].CatchUp != CatchUpAll {
		t.Errorf("%+v, %v", states, err)
	}
	if states, err = ReadStates(t.Context(), w.db, "unheard-of", "rate"); err != nil || len(states) != 0 {
		t.Errorf("of a group that is not there: %+v, %v", states, err)
	}
}
