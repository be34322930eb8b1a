package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collector sends the values of a scrape. Their series come and go, with tables for example. It
// describes nothing beforehand, since the names of the store's samples are known only at the
// scrape; Prometheus calls that unchecked.
type collector func(scrape)

// Describe describes nothing.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the present values.
func (c collector) Collect(out chan<- prometheus.Metric) { c(out) }

// scrape receives the values of one scrape.
type scrape chan<- prometheus.Metric

func (s scrape) gauge(desc *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
}

func (s scrape) counter(desc *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, v, labels...)
}

// register registers the collector of a source, if there is one.
func register[T any](r *prometheus.Registry, source func() []T, newCollector func(func() []T) collector) {
	if source != nil {
		r.MustRegister(newCollector(source))
	}
}

func newCounters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func newHistograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// newHistogram returns a histogram of lateness without labels.
func newHistogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: latenessBuckets})
}

// events are counters by event.
type events map[string]*prometheus.CounterVec

// newEvents returns a counter for each event. metrics maps the event to the name of its metric,
// without the prefix, and the help text. The counters have one label.
func newEvents(prefix string, metrics map[string][2]string, label string) events {
	e := events{}
	for event, m := range metrics {
		e[event] = newCounters(prefix+m[0], m[1], label)
	}
	return e
}

func (e events) register(r *prometheus.Registry) {
	for _, c := range e {
		r.MustRegister(c)
	}
}

// count counts an event, and ignores unknown ones.
func (e events) count(event, label string) {
	if c := e[event]; c != nil {
		c.WithLabelValues(label).Inc()
	}
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// storeSamples collects the store's own measurements. One with a bad name fails the scrape.
func storeSamples(samples func() []Sample) collector {
	return func(out scrape) {
		for _, s := range samples() {
			kind := prometheus.GaugeValue
			if s.Counter {
				kind = prometheus.CounterValue
			}
			desc := newDesc("mayfly_"+s.Name, s.Help)
			metric, err := prometheus.NewConstMetric(desc, kind, s.Value)
			if err != nil {
				metric = prometheus.NewInvalidMetric(desc, err)
			}
			out <- metric
		}
	}
}

// consumedUnits collects the units of tables and indexes.
func consumedUnits(consumed func() []Consumed) collector {
	desc := newDesc("mayfly_consumed_units_total",
		"Read and write units consumed, as Amazon DynamoDB counts them: of a table with its local indexes (index empty), or of one of its global indexes.",
		"TableName", "index", "kind")
	return func(out scrape) {
		for _, c := range consumed() {
			out.counter(desc, c.Read, c.Table, c.Index, "read")
			out.counter(desc, c.Write, c.Table, c.Index, "write")
		}
	}
}

// throttled collects the calls that throttling refused.
func throttled(consumed func() []Consumed) collector {
	desc := newDesc("mayfly_throttled_total",
		"Reads and writes refused because the throughput of the table (index empty) or of a global index is enforced and was used up.",
		"TableName", "index", "kind")
	return func(out scrape) {
		for _, c := range consumed() {
			out.counter(desc, float64(c.ThrottledReads), c.Table, c.Index, "read")
			out.counter(desc, float64(c.ThrottledWrites), c.Table, c.Index, "write")
		}
	}
}

// tableExpiries collects how each table's items expire, in labels, as is usual in Prometheus for
// facts that are not numbers.
func tableExpiries(expiries func() []TableExpiry) collector {
	desc := newDesc("mayfly_table_expiry", "1 for each table: how its items expire.", "TableName", "mode", "delay", "seed")
	return func(out scrape) {
		for _, t := range expiries() {
			out.gauge(desc, 1, t.Table, t.Mode, t.Delay, t.Seed)
		}
	}
}

// suspicions collects the writes whose TTL value looks like a mistake. Their series end with the
// table, and there are as many for a table as there are reasons.
func suspicions(all func() []Suspicion) collector {
	desc := newDesc("mayfly_ttl_suspicious_values_total",
		"Writes whose TTL value looks like a mistake, such as milliseconds or a string: their items do not expire in time. Refused writes are not counted.",
		"table", "reason")
	return func(out scrape) {
		for _, s := range all() {
			out.counter(desc, float64(s.Writes), s.Table, s.Reason)
		}
	}
}

// damagedFiles collects the number of damaged files, and the parts of tables that they may hold.
func damagedFiles(damaged func() []DamagedFile) collector {
	count := newDesc("mayfly_damaged_files", "Table files with blocks that cannot be read.")
	part := newDesc("mayfly_damaged_range", "1 for each part of a table that a damaged file may hold.", "file", "TableName", "range")
	return func(out scrape) {
		files := damaged()
		out.gauge(count, float64(len(files)))
		for _, f := range files {
			for _, r := range f.Ranges {
				out.gauge(part, 1, f.File, r.Table, r.Range)
			}
		}
	}
}

// heldStreams collects the streams that retain records for a consumer.
func heldStreams(held func() []HeldStream) collector {
	labels := []string{"TableName", "stream", "consumer"}
	bytes := newDesc("mayfly_stream_held_bytes",
		"Bytes of stream records that are kept beyond the retention because the consumer has not got there.", labels...)
	records := newDesc("mayfly_stream_held_records", "How many records that are.", labels...)
	age := newDesc("mayfly_stream_held_age_seconds", "Age of the oldest of them by the database's clock, in seconds.", labels...)
	return func(out scrape) {
		for _, h := range held() {
			out.gauge(bytes, float64(h.Bytes), h.Table, h.Stream, h.Consumer)
			out.gauge(records, float64(h.Records), h.Table, h.Stream, h.Consumer)
			out.gauge(age, seconds(h.Age), h.Table, h.Stream, h.Consumer)
		}
	}
}

// guardedTables collects the state of the guarded tables.
func guardedTables(tables func() []GuardTable) collector {
	const label = "TableName"
	armed := newDesc("mayfly_guard_armed", "Deadlines that are waited for in memory.", label)
	due := newDesc("mayfly_guard_due", "Of those, the ones that have passed and whose removal has not ended.", label)
	givenUp := newDesc("mayfly_guard_given_up",
		"Items whose removal the endpoint or the archive did not take; they are tried again ever more seldom.", label)
	overdue := newDesc("mayfly_guard_oldest_overdue_seconds", "How long ago the earliest of these passed, in seconds.", label)
	cost := newDesc("mayfly_guard_cost_per_million_usd",
		"Estimated cost of a million removals in US dollars, from the units consumed so far at the on-demand prices of us-east-1; absent before the first removal.", label)
	problem := newDesc("mayfly_guard_problem", "1 while a problem is open that may pass, else 0.", label, "code")
	return func(out scrape) {
		for _, t := range tables() {
			for code, open := range t.Problems {
				out.gauge(problem, oneIf(open), t.Table, code)
			}
			out.gauge(armed, float64(t.Armed), t.Table)
			out.gauge(due, float64(t.Due), t.Table)
			out.gauge(givenUp, float64(t.GivenUp), t.Table)
			out.gauge(overdue, seconds(t.OldestOverdue), t.Table)
			if t.USDPerMillion > 0 {
				out.gauge(cost, t.USDPerMillion, t.Table)
			}
		}
	}
}

func seconds(d time.Duration) float64 { return d.Seconds() }

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
