package scheduler

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// Schedules created a second, by 16 at a time, durably.
func BenchmarkCreate(b *testing.B) {
	w := newWorld(b, b.TempDir(), nil)
	var n atomic.Int64
	b.SetParallelism(8) // of two processors
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, err := w.call("POST", fmt.Sprintf("/schedules/s%d", n.Add(1)), body("at(2031-01-01T00:00:05)", `"ClientToken":"t"`))
			if err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "schedules/s")
}

// Firings a second of schedules that are all due in one instant, durably: b.N once-only ones, and b.N that are armed again.
func BenchmarkDrain(b *testing.B) {
	for _, kind := range []struct{ name, expression, rest string }{
		{"once", "at(2030-01-01T01:00:00)", ""},
		{"deleted", "at(2030-01-01T01:00:00)", `"ActionAfterCompletion":"DELETE"`},
		{"armed again", "cron(0 1 * * ? *)", ""},
	} {
		b.Run(kind.name, func(b *testing.B) {
			w := newWorld(b, b.TempDir(), nil)
			var n atomic.Int64
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					var rest []string
					if kind.rest != "" {
						rest = append(rest, kind.rest)
					}
					w.create(fmt.Sprintf("s%d", n.Add(1)), kind.expression, rest...)
				}
			})
			b.ResetTimer()
			w.advance(time.Hour)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "firings/s")
			if got := len(w.taken()); got != b.N {
				b.Errorf("%d of %d fired", got, b.N)
			}
		})
	}
}
