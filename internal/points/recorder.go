package points

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

const (
	// Retention is how long a point is kept, in minutes: 15 days, as at Amazon for minutes.
	Retention = 15 * 24 * 60
	// DefaultMost is the default of Options.Most. A point takes about 200 bytes.
	DefaultMost = 100_000
	// stepsMost is the number of changes that are kept of one level.
	stepsMost = 1000
	// Oldest is before every minute.
	Oldest int64 = math.MinInt64
)

// Options configure a Recorder.
type Options struct {
	Now func() int64 // the clock, in ms since the epoch; it never goes back. Required
	// Shown is the latest instant that Now returned to anyone, at a lower cost. Default: Now
	Shown func() int64
	Most  int // points to keep. Default DefaultMost
}

// Recorder keeps the points of all metrics. Its methods are safe for concurrent use, and the nil
// Recorder keeps nothing.
type Recorder struct {
	now   func() int64
	shown func() int64
	most  int
	// called with the first value of a metric in a minute; nil: not called
	onBegin func(k Key, minute int64)

	mu      sync.RWMutex
	minutes []minute // with values, in order
	total   int      // buckets in all minutes
	levels  map[Key][]step
}

// minute is the points of one minute.
type minute struct {
	at      int64
	buckets map[Key]*bucket
}

// step is a change of a level.
type step struct {
	minute int64
	value  float64 // NaN: there is none any longer
}

// NewRecorder returns a recorder without points.
func NewRecorder(o Options) *Recorder {
	if o.Shown == nil {
		o.Shown = o.Now
	}
	return &Recorder{now: o.Now, shown: o.Shown, most: cmp.Or(o.Most, DefaultMost), levels: map[Key][]step{}}
}

// Series returns a series. Series of equal keys are one metric.
func (r *Recorder) Series(k Key) *Series {
	if r == nil {
		return nil
	}
	return &Series{r: r, key: k}
}

// Now returns the present instant, for AddAt.
func (r *Recorder) Now() int64 {
	if r == nil {
		return 0
	}
	return r.now()
}

func (r *Recorder) minute() int64 { return minuteOf(r.now()) }

// minuteOf returns the minute of an instant in ms since the epoch, also before it.
func minuteOf(ms int64) int64 {
	m := ms / 60_000
	if ms%60_000 < 0 {
		m--
	}
	return m
}

// OnBegin sets a function that is called with each metric and minute that gets its first value, by
// the goroutine that adds the value. It must be quick. Call OnBegin before the recorder is shared.
func (r *Recorder) OnBegin(f func(k Key, minute int64)) { r.onBegin = f }

// bucket returns the bucket of a series in a minute, and makes it the series' current one unless
// that is later. begun reports whether the bucket is new.
func (r *Recorder) bucket(s *Series, at int64) (b *bucket, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := slices.BinarySearchFunc(r.minutes, at, func(m minute, at int64) int { return cmp.Compare(m.at, at) })
	if !found {
		r.minutes = slices.Insert(r.minutes, i, minute{at, map[Key]*bucket{}})
	}
	if b = r.minutes[i].buckets[s.key]; b == nil {
		b, begun = newBucket(at), true
		r.minutes[i].buckets[s.key] = b
		r.total++
	}
	if current := s.current.Load(); current == nil || current.minute < at {
		s.current.Store(b)
	}
	r.drop(r.minutes[len(r.minutes)-1].at)
	return b, begun
}

// drop ends the points that are too old or too many. The latest minute stays.
func (r *Recorder) drop(latest int64) {
	n := 0
	for n < len(r.minutes)-1 && (r.minutes[n].at < latest-Retention || r.total > r.most) {
		r.total -= len(r.minutes[n].buckets)
		n++
	}
	r.minutes = slices.Delete(r.minutes, 0, n)
}

// SetLevels notes the present levels of all metrics that are levels. A level that is missing now has
// ended.
func (r *Recorder) SetLevels(levels map[Key]float64) {
	if r == nil {
		return
	}
	at := r.minute()
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, v := range levels {
		r.step(k, step{at, v})
	}
	for k, steps := range r.levels {
		if _, present := levels[k]; !present {
			r.step(k, step{at, math.NaN()})
		}
		if last := steps[len(steps)-1]; math.IsNaN(last.value) && last.minute < at-Retention {
			delete(r.levels, k)
		}
	}
}

// step appends a change. A minute keeps its last value.
func (r *Recorder) step(k Key, s step) {
	steps := r.levels[k]
	if n := len(steps); n > 0 {
		switch last := &steps[n-1]; {
		case last.value == s.value || math.IsNaN(last.value) && math.IsNaN(s.value):
			return
		case last.minute == s.minute:
			last.value = s.value
			return
		}
	}
	if len(steps) == stepsMost {
		steps = slices.Delete(steps, 0, 1)
	}
	r.levels[k] = append(steps, s)
}
