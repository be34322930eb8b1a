package admin

import (
	"cmp"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics counts events of the server. Its methods are safe for concurrent use and take well under
// a microsecond.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	counted  atomic.Pointer[map[requestName]requestMetrics] // found in both; replaced, never edited
	adding   sync.Mutex                                     // held to replace counted
	deleted  *prometheus.CounterVec
	commit   prometheus.Histogram
	arrival  prometheus.Histogram

	schedules, triggers *deliveries
}

// Sources are functions that every scrape calls; scrapes may overlap. A nil function omits its
// metrics.
type Sources struct {
	Backlog  func() int64 // items that are due and not yet reaped
	Clock    func() ClockState
	Consumed func() []Consumed // of every table and global index
	Damaged  func() []DamagedFile
	DiskFull func() bool
	Failed   func() bool          // the store has stopped
	Store    func() []Sample      // the storage engine's own measurements
	Expiry   func() []TableExpiry // of every table
	Held     func() []HeldStream  // of every stream that retains records for a consumer
	HeldFull func() bool          // the retained records have reached their limit
	Suspect  func() []Suspicion   // of every table with any
}

// Consumed is the units consumed of a table with its local indexes (Index is empty then), or of one
// of its global indexes.
type Consumed struct {
	Table, Index string
	Read, Write  float64
	// calls refused by throttling
	ThrottledReads, ThrottledWrites int64
}

// DamagedFile is a file with unreadable parts, and the data that they may hold.
type DamagedFile struct {
	File   string
	Ranges []DamagedRange
}

// DamagedRange is a part of a table. Table is empty for other data.
type DamagedRange struct{ Table, Range string }

// HeldStream is the records that a stream retains beyond the retention time, because the durable
// checkpoint of a consumer in this process is not past them. Consumer is the one furthest behind.
type HeldStream struct {
	Table, Stream, Consumer string
	Bytes, Records          int64
	Age                     time.Duration // of the oldest record, by the database's clock
}

// TableExpiry is how a table's items expire: Mode strict or aws, and the distribution and seed of
// aws delays.
type TableExpiry struct{ Table, Mode, Delay, Seed string }

// Suspicion is the number of writes to a table whose TTL value looks like a mistake, by reason.
type Suspicion struct {
	Table, Reason string
	Writes        int64
}

// Sample is one measured value of the store.
type Sample struct {
	Name    string // with its unit last, without the leading "mayfly_"
	Help    string
	Counter bool // only ever rises; a gauge otherwise
	Value   float64
}

// latenessBuckets are in seconds. They are dense around the promise (p99 within 50 ms), and
// extend to the minute of other implementations.
var latenessBuckets = []float64{0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 5, 30, 60}

// durationBuckets are in seconds: from a read in memory to a write behind a slow disk.
var durationBuckets = []float64{0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5}

// NewMetrics returns the metrics of one server.
func NewMetrics(s Sources) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: newCounters("mayfly_requests_total", "Requests answered, by operation and error code (code OK where there was none).", "operation", "code"),
		duration: newHistograms("mayfly_request_duration_seconds", "Time from the whole request read to its answer ready, in seconds.", durationBuckets, "operation"),
		deleted:  newCounters("TimeToLiveDeletedItemCount", "Items removed by their deadlines. Named as the metric of Amazon DynamoDB.", "TableName"),
		commit: newHistogram("mayfly_lateness_commit_seconds",
			"End of the disk sync that made a removal durable, minus the instant at which it was due (the deadline; in aws expiry the one drawn), in seconds."),
		arrival: newHistogram("mayfly_lateness_stream_seconds",
			"Moment from which a reader of the stream can see the removal's record, minus the instant at which the removal was due, in seconds."),
	}
	m.schedules = newDeliveries("scheduler", "group", "fired", "A firing handed over for delivery, minus the instant at which it was due")
	m.triggers = newDeliveries("trigger", "trigger", "attempted", "Begin of a delivery's first attempt, minus the instant of its first record")
	m.schedules.register(m.registry)
	m.triggers.register(m.registry)
	m.registry.MustRegister(m.requests, m.duration, m.deleted, m.commit, m.arrival,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registerSources(s)
	return m
}

// Request counts one answered request. operation is empty if the request named none; code is the
// API's error code, or empty.
func (m *Metrics) Request(operation, code string, took time.Duration) {
	operation = cmp.Or(operation, "none")
	code = cmp.Or(code, "OK")
	of := requestName{operation, code}
	counted := m.counted.Load()
	if counted == nil || (*counted)[of].total == nil {
		counted = m.addCounted(of)
	}
	c := (*counted)[of]
	c.total.Inc()
	c.duration.Observe(seconds(took))
}

// requestName is the labels of requests. Both are from bounded lists.
type requestName struct{ operation, code string }

// requestMetrics are the metrics of requests of one name. To look them up in the vectors takes
// longer than to count.
type requestMetrics struct {
	total    prometheus.Counter
	duration prometheus.Observer
}

// addCounted adds the metrics of a name to those found, and returns all.
func (m *Metrics) addCounted(of requestName) *map[requestName]requestMetrics {
	m.adding.Lock()
	defer m.adding.Unlock()
	more := map[requestName]requestMetrics{}
	if counted := m.counted.Load(); counted != nil {
		maps.Copy(more, *counted)
	}
	more[of] = requestMetrics{m.requests.WithLabelValues(of.operation, of.code), m.duration.WithLabelValues(of.operation)}
	m.counted.Store(&more)
	return &more
}

// Reaped counts items of a table that one durable batch removed.
func (m *Metrics) Reaped(table string, items int) {
	m.deleted.WithLabelValues(table).Add(float64(items))
}

// CommitLateness records how late one removal became durable.
func (m *Metrics) CommitLateness(d time.Duration) { m.commit.Observe(seconds(d)) }

// StreamLateness records how late the stream record of one removal became readable.
func (m *Metrics) StreamLateness(d time.Duration) { m.arrival.Observe(seconds(d)) }

func (m *Metrics) registerSources(s Sources) {
	if s.Backlog != nil {
		m.gauge("mayfly_backlog_items", "Items whose removal is due and that are not yet reaped. In strict expiry reads hide them already.",
			func() float64 { return float64(s.Backlog()) })
	}
	if s.Clock != nil {
		m.flag("mayfly_clock_standing", "1 while the clock waits for the machine's clock, which lies behind an instant that was already used.",
			func() bool { return s.Clock().Standing })
		m.gauge("mayfly_clock_offset_seconds", "The database's clock minus the machine's, in seconds.",
			func() float64 { return seconds(s.Clock().Offset) })
	}
	m.flag("mayfly_disk_full", "1 while writes that grow data are refused because the disk is full.", s.DiskFull)
	m.flag("mayfly_store_failed", "1 after a failed write or sync of the log has stopped the store.", s.Failed)
	m.flag("mayfly_stream_held_full", "1 while the streams keep so much beyond their retention, for consumers, that new schedules are refused.", s.HeldFull)
	register(m.registry, s.Consumed, consumedUnits)
	register(m.registry, s.Consumed, throttled)
	register(m.registry, s.Damaged, damagedFiles)
	register(m.registry, s.Store, storeSamples)
	register(m.registry, s.Held, heldStreams)
	register(m.registry, s.Expiry, tableExpiries)
	register(m.registry, s.Suspect, suspicions)
}

func (m *Metrics) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// flag registers a gauge that is 1 or 0, unless there is no source for it.
func (m *Metrics) flag(name, help string, source func() bool) {
	if source != nil {
		m.gauge(name, help, func() float64 { return oneIf(source()) })
	}
}
