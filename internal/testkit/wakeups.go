package testkit

import "runtime/metrics"

// Wakeups returns how often goroutines have become runnable: a sample, of about a quarter. Tests
// compare two calls, to show that nothing ticks.
func Wakeups() (n uint64) {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	for _, count := range sample[0].Value.Float64Histogram().Counts {
		n += count
	}
	return n
}
