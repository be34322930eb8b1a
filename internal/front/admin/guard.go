package admin

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Guard counts the events of mayfly guard, by table. Its methods are safe for concurrent use and
// take well under a microsecond.
type Guard struct {
	registry *prometheus.Registry
	events   map[string]*prometheus.CounterVec // by event
	lateness *prometheus.HistogramVec
	units    *prometheus.CounterVec
}

// guardEvents are the counted events, with the metric's name and help text.
var guardEvents = map[string][2]string{
	"armed":     {"deadlines_armed_total", "Deadlines that guard began to wait for."},
	"disarmed":  {"deadlines_disarmed_total", "Deadlines that it no longer waits for, because the item was renewed, lost its deadline or was deleted."},
	"removed":   {"removals_total", "Items removed by their deadlines."},
	"refused":   {"removals_refused_total", "Removals refused, because the item was renewed meanwhile or gone."},
	"spared":    {"removals_spared_total", "Items that a dry run would have removed."},
	"throttled": {"throttled_total", "Answers by which the endpoint wanted to be asked less often."},
	"failed":    {"removals_failed_total", "Removals abandoned after the last attempt."},
	"bad_value": {"bad_values_total", "TTL attributes that are no number of epoch seconds, each item once; the items stay."},
	"retried":   {"retries_total", "Attempts at a removal that failed, other than by throttling, and are made again."},
	"archived":  {"archived_total", "Items handed to the archive."},
}

// GuardTable is the state of a guarded table.
type GuardTable struct {
	Table         string
	Armed         int           // deadlines in memory
	Due           int           // those that have passed and whose removal is not done
	GivenUp       int           // items whose removal failed at the last attempt
	OldestOverdue time.Duration // the age of the earliest of these deadlines; 0: there are none
	USDPerMillion float64       // estimated cost of a million removals; 0: not known yet
}

// NewGuard returns the metrics of one process. It calls tables at every scrape.
func NewGuard(tables func() []GuardTable) *Guard {
	label := []string{"TableName"}
	m := &Guard{
		registry: prometheus.NewRegistry(), events: map[string]*prometheus.CounterVec{},
		lateness: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mayfly_guard_lateness_ms",
			Help:    "Answer to a removal minus the item's deadline, by the endpoint's clock, in milliseconds.",
			Buckets: latenessBuckets,
		}, label),
		units: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mayfly_guard_consumed_units_total",
			Help: "Units that the endpoint says were consumed, of the kinds read and write.",
		}, []string{"TableName", "kind"}),
	}
	for event, metric := range guardEvents {
		m.events[event] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mayfly_guard_" + metric[0], Help: metric[1]}, label)
		m.registry.MustRegister(m.events[event])
	}
	m.registry.MustRegister(m.lateness, m.units, guardCollector(tables),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Begin shows a table's counters at zero, so that rates have a beginning.
func (m *Guard) Begin(table string) {
	for _, c := range m.events {
		c.WithLabelValues(table)
	}
	m.lateness.WithLabelValues(table)
	m.units.WithLabelValues(table, "read")
	m.units.WithLabelValues(table, "write")
}

// Count counts one of guardEvents, and ignores other events.
func (m *Guard) Count(table, event string) {
	if c := m.events[event]; c != nil {
		c.WithLabelValues(table).Inc()
	}
}

// Lateness records how late an item was removed.
func (m *Guard) Lateness(table string, late time.Duration) {
	m.lateness.WithLabelValues(table).Observe(millis(late))
}

// Consumed counts capacity units.
func (m *Guard) Consumed(table string, read, write float64) {
	m.units.WithLabelValues(table, "read").Add(read)
	m.units.WithLabelValues(table, "write").Add(write)
}

// Handler returns a handler for /healthz, /readyz and /metrics like those of the server. ready
// returns nil, or the reason why nothing is guarded.
func (m *Guard) Handler(ready func() error) http.Handler {
	mux := http.NewServeMux()
	serveProbes(mux, ready, nil, m.registry)
	return mux
}

// serveProbes adds the endpoints for probes and scrapers.
func serveProbes(mux *http.ServeMux, ready func() error, degraded func() []string, registry *prometheus.Registry) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { writeReady(w, ready, degraded) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}

// guardCollector collects the state of the guarded tables.
type guardCollector func() []GuardTable

var (
	guardArmed   = prometheus.NewDesc("mayfly_guard_armed", "Deadlines that are waited for in memory.", []string{"TableName"}, nil)
	guardDue     = prometheus.NewDesc("mayfly_guard_due", "Of those, the ones that have passed and whose removal has not ended.", []string{"TableName"}, nil)
	guardGivenUp = prometheus.NewDesc("mayfly_guard_given_up", "Items whose removal the endpoint or the archive did not take; they are tried again ever more seldom.", []string{"TableName"}, nil)
	guardOverdue = prometheus.NewDesc("mayfly_guard_oldest_overdue_ms", "How long ago the earliest of these passed, in milliseconds.", []string{"TableName"}, nil)
	guardCost    = prometheus.NewDesc("mayfly_guard_cost_per_million_usd",
		"Estimated cost of a million removals in US dollars, from the units consumed so far at the on-demand prices of us-east-1; absent before the first removal.", []string{"TableName"}, nil)
)

func (guardCollector) Describe(out chan<- *prometheus.Desc) {
	out <- guardArmed
	out <- guardDue
	out <- guardGivenUp
	out <- guardOverdue
	out <- guardCost
}

func (c guardCollector) Collect(out chan<- prometheus.Metric) {
	for _, t := range c() {
		gauge := func(desc *prometheus.Desc, v float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, t.Table)
		}
		gauge(guardArmed, float64(t.Armed))
		gauge(guardDue, float64(t.Due))
		gauge(guardGivenUp, float64(t.GivenUp))
		gauge(guardOverdue, millis(t.OldestOverdue))
		if t.USDPerMillion > 0 {
			gauge(guardCost, t.USDPerMillion)
		}
	}
}
