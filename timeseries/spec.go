package timeseries

import (
	"log/slog"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/option"
)

// Spec has the settings of a series. They are stored with the series at its creation and never
// change.
type Spec struct {
	// Table is the name of the samples' table, and of the series: 3 to 248 of the characters a-z,
	// A-Z, 0-9, "_", "-" and ".".
	Table string `json:"table"`
	// Retention is the lifetime of a sample, from its own instant. Default: 0, unlimited. Range:
	// one second to 100 years.
	Retention time.Duration `json:"retention"`
	// Metrics have an index across all devices, for Reader.Metric. Each adds a write to each sample
	// that has it. Default: none. At most 5.
	Metrics []string `json:"metrics,omitempty"`
	// MetricShards is the number of partitions for a day in a metric's index. A partition takes
	// 1,000 samples per second. Default: 4. Range: 1 to 100.
	MetricShards int `json:"metricShards"`
	// NoLatest omits the table of latest samples: each write has one item less, and Latest reads
	// each device's shards.
	NoLatest bool `json:"noLatest,omitempty"`
	// Ahead is the maximum distance of a sample's time in the future. Default: 0, one hour. Range:
	// up to 10 years.
	Ahead time.Duration `json:"ahead"`
	// CacheFor is the maximum age of cached shard counts in all readers and writers. Default: one
	// minute. Range: one second to one hour.
	CacheFor time.Duration `json:"cacheFor"`

	// Now returns the time for expiry and shard changes. Default: the machine's. It is not stored.
	Now func() time.Time `json:"-"`
	// Logger receives messages for operators. Default: none. It is not stored.
	Logger *slog.Logger `json:"-"`
}

const (
	metricShardsDefault = 4
	shardsMax           = 100 // two digits
	indexesMax          = 5   // metrics
	aheadDefault        = time.Hour
	cacheForDefault     = time.Minute
	year                = 365 * 24 * time.Hour
)

func (o Spec) withDefaults() Spec {
	if o.MetricShards == 0 {
		o.MetricShards = metricShardsDefault
	}
	if o.Ahead == 0 {
		o.Ahead = aheadDefault
	}
	if o.CacheFor == 0 {
		o.CacheFor = cacheForDefault
	}
	if o.Now == nil {
		o.Now = clock.New().Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// The names of a series' tables have up to seven more letters than its own, and an index's name
// contains a metric's.
const (
	tableMax = 248
	indexMax = 200
)

// SpecError lists all problems of a Spec.
type SpecError struct{ Err error }

func (e *SpecError) Error() string { return e.Err.Error() }

func (e *SpecError) Unwrap() error { return e.Err }

// validate returns an error with all problems of a spec after defaults.
func (o Spec) validate() error {
	var all option.Complaints
	all.AddIf(!constraint.Name(o.Table, 3, tableMax), "Table", `%q is not 3 to 248 of the characters a-z, A-Z, 0-9, "_", "-" and "."`, o.Table)
	all.AddIf(o.Retention != 0 && (o.Retention < time.Second || o.Retention > 100*year), "Retention", "%s is not between a second and 100 years", o.Retention)
	all.AddIf(len(o.Metrics) > indexesMax, "Metrics", "%d indexes are too many; the limit is %d", len(o.Metrics), indexesMax)
	seen := map[string]bool{}
	for _, m := range o.Metrics {
		all.AddIf(checkMetric(m) != nil || !constraint.Name(m, 1, indexMax), "Metrics", `%q cannot name an index: 1 to 200 of the characters a-z, A-Z, 0-9, "_", "-" and "."`, m)
		all.AddIf(seen[m], "Metrics", "%q is listed twice", m)
		seen[m] = true
	}
	all.AddIf(o.MetricShards < 1 || o.MetricShards > shardsMax, "MetricShards", "%d is not between 1 and %d", o.MetricShards, shardsMax)
	all.AddIf(o.Ahead < 0 || o.Ahead > 10*year, "Ahead", "%s is not between 0 and 10 years", o.Ahead)
	all.AddIf(o.CacheFor < time.Second || o.CacheFor > time.Hour, "CacheFor", "%s is not between a second and an hour", o.CacheFor)
	if err := all.Err("timeseries: "); err != nil {
		return &SpecError{err}
	}
	return nil
}
