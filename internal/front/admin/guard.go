package admin

import (
	"bytes"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/mayflydb/mayfly/internal/front/browser"
)

// Guard counts the events of mayfly guard, by table. Its methods are safe for concurrent use and
// take well under a microsecond.
type Guard struct {
	registry *prometheus.Registry
	events   events
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
	"missed":    {"missed_total", "Overdue items that the strategy did not know of and the audit found."},
	"archived":  {"archived_total", "Items handed to the archive."},
}

// GuardTable is the state of a guarded table.
type GuardTable struct {
	Table         string
	Armed         int             // deadlines in memory
	Due           int             // those that have passed and whose removal is not done
	GivenUp       int             // items whose removal failed at the last attempt
	OldestOverdue time.Duration   // the age of the earliest deadline that is Due; 0: none is
	USDPerMillion float64         // estimated cost of a million removals; 0: not known yet
	Problems      map[string]bool // by code of a problem that may pass: whether it is open
}

// NewGuard returns the metrics of one process. It calls tables at every scrape.
func NewGuard(tables func() []GuardTable) *Guard {
	m := &Guard{
		registry: prometheus.NewRegistry(),
		events:   newEvents("mayfly_guard_", guardEvents, "TableName"),
		lateness: newHistograms("mayfly_guard_lateness_seconds", "Answer to a removal minus the item's deadline, by the endpoint's clock, in seconds.",
			latenessBuckets, "TableName"),
		units: newCounters("mayfly_guard_consumed_units_total", "Units that the endpoint says were consumed, of the kinds read and write.", "TableName", "kind"),
	}
	m.events.register(m.registry)
	m.registry.MustRegister(m.lateness, m.units, guardedTables(tables),
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
func (m *Guard) Count(table, event string) { m.events.count(event, table) }

// Lateness records how late an item was removed.
func (m *Guard) Lateness(table string, late time.Duration) {
	m.lateness.WithLabelValues(table).Observe(seconds(late))
}

// Consumed counts capacity units.
func (m *Guard) Consumed(table string, read, write float64) {
	m.units.WithLabelValues(table, "read").Add(read)
	m.units.WithLabelValues(table, "write").Add(write)
}

// Handler returns a handler for /healthz, /readyz and /metrics, as the server has them. ready
// returns nil, or the reason why nothing is guarded.
func (m *Guard) Handler(ready func() error) http.Handler {
	mux := http.NewServeMux()
	probes{ready: ready, registry: m.registry}.serve(mux)
	return checkPages(browser.Rules{}, mux)
}

// writeMetrics writes all metrics in Prometheus's text format, uncompressed. promhttp also has
// Prometheus's two other formats and compression, which every scraper can do without, and which
// would add 300 KB to the program.
func writeMetrics(w http.ResponseWriter, registry prometheus.Gatherer) {
	families, err := registry.Gather()
	var text bytes.Buffer
	for _, family := range families {
		if err == nil {
			_, err = expfmt.MetricFamilyToText(&text, family) // a buffer accepts all
		}
	}
	if err != nil {
		http.Error(w, "cannot collect the metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	_, _ = w.Write(text.Bytes())
}
