package timeseries

import (
	"fmt"
	"iter"
	"time"
)

// Stat summarizes a metric within a bucket.
type Stat struct {
	Count          int64
	Min, Max, Mean float64
}

// Bucket is a span of time with its statistics.
type Bucket struct {
	Start time.Time       // first instant; empty buckets may follow
	Stats map[string]Stat // by metric
}

// Common lengths of buckets. Valid are lengths of a millisecond or more that divide a second, whole
// seconds that divide a day, and 1 to 366 whole days.
const (
	Minute = time.Minute
	Hour   = time.Hour
	Day    = 24 * time.Hour
)

// Rollup summarizes samples, in either order of time, by buckets of equal length. It omits empty
// buckets. Buckets begin at multiples of their length since 1970 in UTC. Only buckets of one day
// depend on zone, nil for UTC: they begin at its midnight, and have 23 or 25 hours when its clocks
// change. The samples may come from a Reader, an archive, or both.
func Rollup(samples iter.Seq2[Sample, error], every time.Duration, zone *time.Location) iter.Seq2[Bucket, error] {
	return func(yield func(Bucket, error) bool) {
		if err := checkEvery(every); err != nil {
			yield(Bucket{}, err)
			return
		}
		var sum *summing
		for s, err := range samples {
			if err != nil {
				yield(Bucket{}, err)
				return
			}
			start := bucketStart(s.Time, every, zone)
			if sum != nil && !sum.start.Equal(start) {
				if !yield(sum.bucket(), nil) {
					return
				}
				sum = nil
			}
			if sum == nil {
				sum = &summing{start, map[string]*sums{}}
			}
			sum.add(s)
		}
		if sum != nil {
			yield(sum.bucket(), nil)
		}
	}
}

func checkEvery(every time.Duration) error {
	whole := every >= time.Millisecond && every < time.Second && time.Second%every == 0 ||
		every >= time.Second && every < Day && every%time.Second == 0 && Day%every == 0 ||
		every >= Day && every <= 366*Day && every%Day == 0
	if !whole {
		return fmt.Errorf("invalid bucket length %s: it must divide a day, or be a multiple of one", every)
	}
	return nil
}

// bucketStart returns the start of an instant's bucket.
func bucketStart(t time.Time, every time.Duration, zone *time.Location) time.Time {
	if every == Day && zone != nil {
		y, m, d := t.In(zone).Date()
		return time.Date(y, m, d, 0, 0, 0, 0, zone)
	}
	seconds, nanos := t.Unix(), int64(t.Nanosecond())
	if every < time.Second {
		return time.Unix(seconds, nanos-nanos%int64(every)).UTC()
	}
	return time.Unix(seconds-seconds%int64(every/time.Second), 0).UTC()
}

type summing struct {
	start time.Time
	by    map[string]*sums
}

type sums struct {
	count         int64
	min, max, sum float64
}

func (b *summing) add(s Sample) {
	for name, v := range s.Values {
		if m := b.by[name]; m != nil {
			m.count, m.min, m.max, m.sum = m.count+1, min(m.min, v), max(m.max, v), m.sum+v
		} else {
			b.by[name] = &sums{1, v, v, v}
		}
	}
}

func (b *summing) bucket() Bucket {
	stats := make(map[string]Stat, len(b.by))
	for name, m := range b.by {
		stats[name] = Stat{m.count, m.min, m.max, m.sum / float64(m.count)}
	}
	return Bucket{b.start, stats}
}
