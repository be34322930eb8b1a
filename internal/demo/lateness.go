package demo

import (
	"math"
	"time"
)

// latenessMax is the last lateness, in milliseconds, with a counter of its own.
const latenessMax = 60_000

// lateness counts by whole milliseconds, which is the resolution of deadlines and of the clock.
type lateness struct {
	n     int
	max   time.Duration
	count []int // by milliseconds; the last counts everything above
}

func (l *lateness) add(d time.Duration) {
	if l.count == nil {
		l.count = make([]int, latenessMax+1)
	}
	ms := min(max(d.Milliseconds(), 0), latenessMax)
	l.count[ms]++
	l.n++
	l.max = max(l.max, d)
}

// quantile returns the least number of milliseconds that the share q of all removals does not
// exceed.
func (l *lateness) quantile(q float64) int {
	need, seen := int(math.Ceil(q*float64(l.n))), 0
	for ms, n := range l.count {
		if seen += n; seen >= need && seen > 0 {
			return ms
		}
	}
	return 0
}

// Bucket is one bar of the histogram of lateness.
type Bucket struct {
	UpToMS int `json:"up_to_ms"` // inclusive; 0 in the last bucket: unlimited
	Items  int `json:"items"`
}

var bucketLimits = []int{0, 1, 2, 5, 10, 20, 50, 100, 1000}

// buckets returns the histogram. Its last bucket counts everything beyond the last limit.
func (l *lateness) buckets() []Bucket {
	out := make([]Bucket, len(bucketLimits)+1)
	for i, limit := range bucketLimits {
		out[i].UpToMS = limit
	}
	i := 0
	for ms, n := range l.count {
		for i < len(bucketLimits) && ms > bucketLimits[i] {
			i++
		}
		out[i].Items += n
	}
	return out
}
