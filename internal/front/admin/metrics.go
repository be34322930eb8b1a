package admin

import (
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
	deleted  *prometheus.CounterVec
	commit   prometheus.Histogram
	arrival  prometheus.Histogram

	schedules, triggers *deliveries
}

// Sources are functions that every scrape calls. A nil function omits its metric.
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
}

// Consumed is the units consumed of a table with its local indexes (Index is empty then), or of one
// of its global indexes.
type Consumed struct {
	Table, Index string
	Read, Write  float64
}

// DamagedFile is a file with unreadable parts, and the data that they may hold.
type DamagedFile struct {
	File   string
	Ranges []DamagedRange
}

// DamagedRange is a part of a table. Table is empty for other data.
type DamagedRange struct{ Table, Range string }

// HeldStream is the records that a stream retains beyond the retention time, because a consumer in
// this process has not read them.
type HeldStream struct {
	Table, Stream, Consumer string
	Bytes, Records          int64
	Age                     time.Duration // of the oldest record, by the database's clock
}

// TableExpiry is how a table's items expire: Mode strict or aws, and the distribution and seed of
// aws delays.
type TableExpiry struct{ Table, Mode, Delay, Seed string }

// Sample is one measured value of the store.
type Sample struct {
	Name    string // with its unit last, without the leading "mayfly_"
	Help    string
	Counter bool // only ever rises; a gauge otherwise
	Value   float64
}

// latenessBuckets are in milliseconds. They are dense around the promise (p99 within 50 ms), and
// extend to the minute of other implementations.
var latenessBuckets = []float64{0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 200, 500, 1000, 5000, 30_000, 60_000}

// durationBuckets are in milliseconds: from a read in memory to a write behind a slow disk.
var durationBuckets = []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000}

// NewMetrics returns the metrics of one server.
func NewMetrics(s Sources) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mayfly_requests_total",
			Help: "Requests answered, by operation and error code (code OK where there was none).",
		}, []string{"operation", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mayfly_request_duration_ms",
			Help:    "Time from the whole request read to its answer ready, in milliseconds.",
			Buckets: durationBuckets,
		}, []string{"operation"}),
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "TimeToLiveDeletedItemCount",
			Help: "Items removed by their deadlines. Named as the metric of Amazon DynamoDB.",
		}, []string{"TableName"}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "mayfly_lateness_commit_ms",
			Help:    "End of the disk sync that made a removal durable, minus the instant at which it was due (the deadline; in aws expiry the one drawn), in milliseconds.",
			Buckets: latenessBuckets,
		}),
		arrival: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "mayfly_lateness_stream_ms",
			Help:    "Moment from which a reader of the stream can see the removal's record, minus the instant at which the removal was due, in milliseconds.",
			Buckets: latenessBuckets,
		}),
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
	if operation == "" {
		operation = "none"
	}
	if code == "" {
		code = "OK"
	}
	m.requests.WithLabelValues(operation, code).Inc()
	m.duration.WithLabelValues(operation).Observe(millis(took))
}

// Reaped counts items of a table that one durable batch removed.
func (m *Metrics) Reaped(table string, items int) {
	m.deleted.WithLabelValues(table).Add(float64(items))
}

// CommitLateness records how late one removal became durable.
func (m *Metrics) CommitLateness(d time.Duration) { m.commit.Observe(millis(d)) }

// StreamLateness records how late the stream record of one removal became readable.
func (m *Metrics) StreamLateness(d time.Duration) { m.arrival.Observe(millis(d)) }

func (m *Metrics) registerSources(s Sources) {
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	if s.Backlog != nil {
		gauge("mayfly_backlog_items", "Items whose removal is due and that are not yet reaped. In strict expiry reads hide them already.",
			func() float64 { return float64(s.Backlog()) })
	}
	if s.Clock != nil {
		gauge("mayfly_clock_standing", "1 while the clock waits for the machine's clock, which lies behind an instant that was already used.",
			func() float64 { return oneIf(s.Clock().Standing) })
		gauge("mayfly_clock_offset_ms", "The database's clock minus the machine's, in milliseconds.",
			func() float64 { return millis(s.Clock().Offset) })
	}
	if s.Consumed != nil {
		m.registry.MustRegister(consumedCollector(s.Consumed))
	}
	if s.Damaged != nil {
		m.registry.MustRegister(damageCollector(s.Damaged))
	}
	if s.DiskFull != nil {
		gauge("mayfly_disk_full", "1 while writes that grow data are refused because the disk is full.",
			func() float64 { return oneIf(s.DiskFull()) })
	}
	if s.Failed != nil {
		gauge("mayfly_store_failed", "1 after a failed write or sync of the log has stopped the store.",
			func() float64 { return oneIf(s.Failed()) })
	}
	if s.Store != nil {
		m.registry.MustRegister(storeCollector(s.Store))
	}
	if s.HeldFull != nil {
		gauge("mayfly_stream_held_full", "1 while the streams keep so much beyond their retention, for consumers, that new schedules are refused.",
			func() float64 { return oneIf(s.HeldFull()) })
	}
	if s.Held != nil {
		m.registry.MustRegister(heldCollector(s.Held))
	}
	if s.Expiry != nil {
		m.registry.MustRegister(expiryCollector(s.Expiry))
	}
}

// storeCollector collects the store's samples. Their names are known only at the scrape, so it
// describes nothing beforehand; Prometheus calls that unchecked.
type storeCollector func() []Sample

func (storeCollector) Describe(chan<- *prometheus.Desc) {}

func (c storeCollector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c() {
		kind := prometheus.GaugeValue
		if s.Counter {
			kind = prometheus.CounterValue
		}
		desc := prometheus.NewDesc("mayfly_"+s.Name, s.Help, nil, nil)
		metric, err := prometheus.NewConstMetric(desc, kind, s.Value)
		if err != nil {
			metric = prometheus.NewInvalidMetric(desc, err)
		}
		out <- metric
	}
}

// consumedCollector collects the units of tables and indexes. They come and go, and their series
// with them.
type consumedCollector func() []Consumed

var consumedDesc = prometheus.NewDesc("mayfly_consumed_units_total",
	"Read and write units consumed, as Amazon DynamoDB counts them: of a table with its local indexes (index empty), or of one of its global indexes.", []string{"TableName", "index", "kind"}, nil)

func (consumedCollector) Describe(out chan<- *prometheus.Desc) { out <- consumedDesc }

func (c consumedCollector) Collect(out chan<- prometheus.Metric) {
	for _, t := range c() {
		out <- prometheus.MustNewConstMetric(consumedDesc, prometheus.CounterValue, t.Read, t.Table, t.Index, "read")
		out <- prometheus.MustNewConstMetric(consumedDesc, prometheus.CounterValue, t.Write, t.Table, t.Index, "write")
	}
}

// expiryCollector collects how each table's items expire, in labels, as is usual in Prometheus for
// facts that are not numbers.
type expiryCollector func() []TableExpiry

var expiryDesc = prometheus.NewDesc("mayfly_table_expiry", "1 for each table: how its items expire.", []string{"TableName", "mode", "delay", "seed"}, nil)

func (expiryCollector) Describe(out chan<- *prometheus.Desc) { out <- expiryDesc }

func (c expiryCollector) Collect(out chan<- prometheus.Metric) {
	for _, t := range c() {
		out <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, 1, t.Table, t.Mode, t.Delay, t.Seed)
	}
}

// damageCollector collects the damaged files.
type damageCollector func() []DamagedFile

var (
	damagedFiles = prometheus.NewDesc("mayfly_damaged_files", "Table files with blocks that cannot be read.", nil, nil)
	damagedRange = prometheus.NewDesc("mayfly_damaged_range", "1 for each part of a table that a damaged file may hold.", []string{"file", "TableName", "range"}, nil)
)

func (damageCollector) Describe(out chan<- *prometheus.Desc) {
	out <- damagedFiles
	out <- damagedRange
}

func (c damageCollector) Collect(out chan<- prometheus.Metric) {
	files := c()
	out <- prometheus.MustNewConstMetric(damagedFiles, prometheus.GaugeValue, float64(len(files)))
	for _, f := range files {
		for _, r := range f.Ranges {
			out <- prometheus.MustNewConstMetric(damagedRange, prometheus.GaugeValue, 1, f.File, r.Table, r.Range)
		}
	}
}

// heldCollector collects the streams that retain records for a consumer.
type heldCollector func() []HeldStream

var (
	heldLabels  = []string{"TableName", "stream", "consumer"}
	heldBytes   = prometheus.NewDesc("mayfly_stream_held_bytes", "Bytes of stream records that are kept beyond the retention because the consumer has not got there.", heldLabels, nil)
	heldRecords = prometheus.NewDesc("mayfly_stream_held_records", "How many records that are.", heldLabels, nil)
	heldAge     = prometheus.NewDesc("mayfly_stream_held_age_ms", "Age of the oldest of them by the database's clock, in milliseconds.", heldLabels, nil)
)

func (heldCollector) Describe(out chan<- *prometheus.Desc) {
	out <- heldBytes
	out <- heldRecords
	out <- heldAge
}

func (c heldCollector) Collect(out chan<- prometheus.Metric) {
	for _, h := range c() {
		gauge := func(desc *prometheus.Desc, v float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, h.Table, h.Stream, h.Consumer)
		}
		gauge(heldBytes, float64(h.Bytes))
		gauge(heldRecords, float64(h.Records))
		gauge(heldAge, millis(h.Age))
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
