package scheduler

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkCreate measures durable creations per second, 16 at a time.
func BenchmarkCreate(b *testing.B) {
	w := newWorld(b, b.TempDir(), nil)
	var n atomic.Int64
	b.SetParallelism(8) // on each of two processors
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

// BenchmarkDrain measures durable firings per second of schedules that are due at one instant: b.N
// one-time schedules, and b.N recurring ones.
func BenchmarkDrain(b *testing.B) {
	for _, kind := range []struct{ name, expression, more string }{
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
					var more []string
					if kind.more != "" {
						more = append(more, kind.more)
					}
					w.create(fmt.Sprintf("s%d", n.Add(1)), kind.expression, more...)
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
