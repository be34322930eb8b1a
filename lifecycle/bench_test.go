package lifecycle_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/lifecycle"
)

var butterflies = flag.Int("butterflies", 10_000, "of BenchmarkYear: fewer for a profile")

// BenchmarkYear measures the lives of 10,000 butterflies in a simulated year, in a durable
// database. Each has four transitions with times of its own, and three of them call a handler. With
// times on the hour, about five transitions share an instant. With times on the millisecond, each
// of the 40,000 has its own, at which the clock stops.
func BenchmarkYear(b *testing.B) {
	for name, unit := range map[string]time.Duration{"hour": time.Hour, "millisecond": time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				year(b, *butterflies, unit)
			}
		})
	}
}

func year(b *testing.B, n int, unit time.Duration) {
	w := &world{t: b}
	w.DB = open(b, b.TempDir())
	o := w.options()
	o.Logger = nil
	w.run(o)
	w.apply(butterfly)
	random := rand.New(rand.NewPCG(1, 2))
	laid := make([]time.Duration, n)
	for i := range laid {
		laid[i] = time.Duration(random.Int64N(int64(200 * 24 * time.Hour))).Truncate(unit)
	}
	slices.Sort(laid)
	began := time.Now()
	for i, at := range laid {
		if w.Clock().Now().Before(begin.Add(at)) {
			w.advanceTo(begin.Add(at))
		}
		w.create("butterfly", fmt.Sprintf("b-%05d", i), "larva", fmt.Sprintf("%dms", (240*time.Hour+time.Duration(random.Int64N(int64(240*time.Hour))).Truncate(unit)).Milliseconds()))
	}
	w.advanceTo(begin.AddDate(1, 0, 0))
	took := time.Since(began)
	w.mu.Lock()
	made := 0
	for _, c := range w.mu.changes {
		if c.Kind == lifecycle.KindTransition && c.Lateness() == 0 {
			made++
		}
	}
	w.mu.Unlock()
	if want := 4 * n; made != want {
		b.Fatalf("%d transitions were made at their instants, of %d", made, want)
	}
	b.ReportMetric(took.Seconds(), "s/year")
	b.ReportMetric(float64(made)/took.Seconds(), "transitions/s")
	w.stop()
	must(b, w.DB.Close())
}

// advanceTo advances the clock to an instant.
func (w *world) advanceTo(to time.Time) {
	for {
		moved, err := w.Clock().Set(context.Background(), to)
		must(w.t, err)
		if !moved.Unfinished {
			return
		}
	}
}
