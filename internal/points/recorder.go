package points

import (
	"cmp"
	"container/list"
	"math"
	"slices"
	"sync"
)

const (
	// Retention is how long a point is kept, in minutes: 15 days, as at Amazon for minutes.
	Retention = 15 * 24 * 60
	// DefaultMost is the default of Options.Most. A point takes about 200 bytes.
	DefaultMost = 100_000
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
	minutes []minute                  // with values, in order
	total   int                       // buckets in all minutes, and changes of all ended levels
	levels  map[string]map[Key]*level // by table
	ended   *list.List                // the ended levels, in the order of their ends
	gone    queue                     // the deleted tables with buckets in the latest minute
}

// minute is the points of one minute.
type minute struct {
	at     int64
	tables map[string]map[Key]*bucket
	total  int // buckets
}

// queue is a set of names in the order in which they were added.
type queue struct {
	order *list.List
	names map[string]*list.Element
}

func newQueue() queue { return queue{list.New(), map[string]*list.Element{}} }

func (q *queue) add(name string) {
	if q.names[name] == nil {
		q.names[name] = q.order.PushBack(name)
	}
}

func (q *queue) remove(name string) {
	if e := q.names[name]; e != nil {
		q.order.Remove(e)
		delete(q.names, name)
	}
}

// NewRecorder returns a recorder without points.
func NewRecorder(o Options) *Recorder {
	if o.Shown == nil {
		o.Shown = o.Now
	}
	return &Recorder{
		now: o.Now, shown: o.Shown, most: cmp.Or(o.Most, DefaultMost),
		levels: map[string]map[Key]*level{}, ended: list.New(), gone: newQueue(),
	}
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
// that is later. begun reports whether the bucket is new. If the minute is full, the bucket is not
// kept.
func (r *Recorder) bucket(s *Series, at int64) (b *bucket, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := r.find(at)
	if i == 0 && !found && len(r.minutes) > 0 && r.total >= r.most {
		return newBucket(at), false // it would be the oldest, and the first to end
	}
	if !found {
		if i == len(r.minutes) {
			r.gone = newQueue() // a value in the latest minute is rare after the deletion
		}
		r.minutes = slices.Insert(r.minutes, i, minute{at: at, tables: map[string]map[Key]*bucket{}})
	}
	if b = r.minutes[i].tables[s.key.Table][s.key]; b == nil {
		b = newBucket(at)
		begun = r.makeRoom(r.minutes[len(r.minutes)-1].at, 1) && r.keep(s.key, b)
	}
	if current := s.current.Load(); current == nil || current.minute < at {
		s.current.Store(b)
	}
	return b, begun
}

// find returns the place of a minute among those with values.
func (r *Recorder) find(at int64) (i int, found bool) {
	return slices.BinarySearchFunc(r.minutes, at, func(m minute, at int64) int { return cmp.Compare(m.at, at) })
}

// keep adds a bucket to its minute, and reports false if the points of the minute have ended.
func (r *Recorder) keep(k Key, b *bucket) bool {
	i, found := r.find(b.minute)
	if !found {
		return false
	}
	m := &r.minutes[i]
	if m.tables[k.Table] == nil {
		m.tables[k.Table] = map[Key]*bucket{}
	}
	m.tables[k.Table][k] = b
	m.total++
	r.total++
	return true
}

// makeRoom ends points that are too old, and then others until there is room for more: the oldest
// minutes and ended levels, and last the points of deleted tables in the latest minute. It reports
// whether there is room; if not, the latest minute is full.
func (r *Recorder) makeRoom(now int64, more int) bool {
	for {
		over := r.total+more > r.most
		last := len(r.minutes) - 1
		ended := r.ended.Front()
		switch {
		case ended != nil && endable(endOf(ended), now, over) && (last < 1 || endOf(ended) <= r.minutes[0].at):
			r.forget(ended.Value.(*level))
		case last >= 1 && endable(r.minutes[0].at, now, over):
			r.total -= r.minutes[0].total
			r.minutes[0] = minute{}
			r.minutes = r.minutes[1:]
		case over && r.gone.order.Len() > 0:
			r.endTable(&r.minutes[last])
		default:
			return !over
		}
	}
}

// endable reports whether points of a minute end: they are too old, or there are too many.
func endable(at, now int64, over bool) bool { return over || at < now-Retention }

// endTable ends the points of the table in the latest minute that was deleted first.
func (r *Recorder) endTable(latest *minute) {
	table := r.gone.order.Front().Value.(string)
	r.gone.remove(table)
	n := len(latest.tables[table])
	delete(latest.tables, table)
	latest.total -= n
	r.total -= n
}
