package kv

import (
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// wakeups returns a sample, about a quarter, of how often goroutines have become runnable.
func wakeups() (n uint64) {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	for _, count := range sample[0].Value.Float64Histogram().Counts {
		n += count
	}
	return n
}

// An idle open store does nothing. (Pebble's own scheduler would wake 864,000 times in this day.)
func TestIdleIsFree(t *testing.T) {
	for _, d := range []Durability{Sync, Async, Memory} {
		synctest.Test(t, func(t *testing.T) {
			db, err := Open(Options{FS: NewMemFS(), Durability: d})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			mustWrite(t, db, "a=1")
			time.Sleep(time.Minute)
			before := wakeups()
			time.Sleep(24 * time.Hour)
			if n := wakeups() - before; n > 1000 {
				t.Errorf("%v: %d wake-ups in an idle day", d, n)
			}
		})
	}
}
