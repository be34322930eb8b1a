package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// What is kept says which occurrence is armed, after updates of a rate as well, of which the API does not tell.
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
	for i := range 120 { // more than one call asks for
		name := fmt.Sprint("more-", i)
		w.create(name, "at(2031-01-01T00:00:00)")
		names = append(names, name)
	}
	kept, err := ReadKept(t.Context(), w.db, "default", names...)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) != 124 {
		t.Errorf("%d are known", len(kept))
	}
	updated := begin.Add(90 * time.Minute)
	if k := kept["rate"]; !k.Anchor.Equal(updated) || !k.Occurrence.Equal(updated.Add(2*time.Hour)) || !k.Due.Equal(k.Occurrence) || k.CatchUp != "" {
		t.Errorf("rate: %+v", k)
	}
	if k := kept["window"]; !k.Occurrence.Equal(begin.Add(24*time.Hour)) || k.Due.Sub(k.Occurrence) <= 0 || k.Due.Sub(k.Occurrence) > time.Hour {
		t.Errorf("window: %+v", k)
	}
	if !kept["off"].Occurrence.IsZero() || !kept["gone"].Occurrence.IsZero() || kept["more-119"].Occurrence.IsZero() {
		t.Errorf("off: %+v, gone: %+v, more: %+v", kept["off"], kept["gone"], kept["more-119"])
	}
	w.must("PUT", "/schedules/rate", body("rate(2 hours)"), "X-Mayfly-Catch-Up", "all")
	if kept, err = ReadKept(t.Context(), w.db, "default", "rate"); err != nil || kept["rate"].CatchUp != CatchUpAll {
		t.Errorf("%+v, %v", kept, err)
	}
	if kept, err = ReadKept(t.Context(), w.db, "unheard-of", "rate"); err != nil || len(kept) != 0 {
		t.Errorf("of a group that is not there: %+v, %v", kept, err)
	}
}
