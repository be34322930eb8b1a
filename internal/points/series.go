package points

import (
	"math"
	"sync/atomic"
)

// perUnit is the resolution of values: sums are whole millionths, so that adding is one atomic
// operation. A latency in milliseconds keeps its nanoseconds.
const perUnit = 1e6

// Series is a metric that has values at times. The nil Series ignores them. Its methods are safe
// for concurrent use.
type Series struct {
	r       *Recorder
	key     Key
	current atomic.Pointer[bucket] // of the latest minute in which the series had a value
}

// bucket collects the values of a series in one minute.
type bucket struct {
	minute        int64 // since the epoch
	count, sum    atomic.Int64
	least, utmost atomic.Int64
}

func newBucket(minute int64) *bucket {
	b := &bucket{minute: minute}
	b.least.Store(math.MaxInt64)
	b.utmost.Store(math.MinInt64)
	return b
}

// Add adds a value at the present instant.
func (s *Series) Add(value float64) {
	if s != nil {
		s.add(s.r.minute(), value)
	}
}

// AddJust is Add for a caller that has just read the clock, as every operation on items does. It
// costs a fraction of Add.
func (s *Series) AddJust(value float64) {
	if s != nil {
		s.add(minuteOf(s.r.shown()), value)
	}
}

// AddAt adds a value at an instant in ms since the epoch. A caller with several series reads the
// clock once for all; see Recorder.Now.
func (s *Series) AddAt(now int64, value float64) {
	if s != nil {
		s.add(minuteOf(now), value)
	}
}

func (s *Series) add(minute int64, value float64) {
	b := s.current.Load()
	begun := false
	if b == nil || b.minute != minute {
		b, begun = s.r.bucket(s, minute)
	}
	b.add(int64(math.Round(value * perUnit)))
	if begun && s.r.onBegin != nil {
		s.r.onBegin(s.key, minute)
	}
}

func (b *bucket) add(v int64) {
	b.sum.Add(v)
	for least := b.least.Load(); v < least && !b.least.CompareAndSwap(least, v); least = b.least.Load() {
	}
	for utmost := b.utmost.Load(); v > utmost && !b.utmost.CompareAndSwap(utmost, v); utmost = b.utmost.Load() {
	}
	b.count.Add(1) // last: a point with a count has all of the value
}

// point returns the bucket's present contents.
func (b *bucket) point() Point {
	return Point{
		Minute: b.minute, Count: b.count.Load(), Sum: float64(b.sum.Load()) / perUnit,
		Min: float64(b.least.Load()) / perUnit, Max: float64(b.utmost.Load()) / perUnit,
	}
}

// Point is the values of a metric in one minute, or in several.
type Point struct {
	Minute        int64 // the first one, since the epoch
	Count         int64 // at least 1
	Sum, Min, Max float64
}

// Merge adds the values of another point.
func (p *Point) Merge(other Point) {
	if p.Count == 0 {
		p.Min, p.Max = other.Min, other.Max
	}
	p.Count += other.Count
	p.Sum += other.Sum
	p.Min, p.Max = min(p.Min, other.Min), max(p.Max, other.Max)
}
