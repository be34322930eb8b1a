package timeseries

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/constraint"
)

// Spec says what a series is like. It is settled when the series is created, and kept with it.
type Spec struct {
	// Table is the name of the samples' table, and of the series: 3 to 248 of the characters a-z, A-Z, 0-9, "_", "-" and ".".
	Table string `json:"table"`
	// Retention is how long a sample is kept, counted from its own instant. Default: 0, for ever. Range: one second to 100 years.
	Retention time.Duration `json:"retention"`
	// Metrics are those that get an index across all devices, for Reader.Metric. Each costs a write more for each sample that has it. Default: none. At most 5.
	Metrics []string `json:"metrics,omitempty"`
	// MetricShards is over how many partitions a day of a metric's index is spread. One takes 1,000 samples a second. Default: 4. Range: 1 to 100.
	MetricShards int `json:"metricShards"`
	// NoLatest leaves the latest samples out: then each write is one item less, and Latest asks each device's shards.
	NoLatest bool `json:"noLatest,omitempty"`
	// Ahead is how far in the future a sample may be; one further ahead is refused. Default: one hour. Range: 0 to 10 years; it counts as the default when 0.
	Ahead time.Duration `json:"ahead"`
	// CacheFor is how long readers and writers go by the shard counts that they know, all of them alike. Default: one minute. Range: one second to one hour.
	CacheFor time.Duration `json:"cacheFor"`

	// Now tells the time by which samples expire and shards change. Default: the machine's. It is not kept.
	Now func() time.Time `json:"-"`
	// Logger is told what an operator has to know. Default: nobody is. It is not kept.
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

// A series has tables whose names are its own with up to seven letters more, and a metric has an index whose name begins with its own.
const (
	tableMax = 248
	indexMax = 200
)

// SpecError says what is wrong with a Spec, all of it.
type SpecError struct{ Err error }

func (e *SpecError) Error() string { return e.Err.Error() }

func (e *SpecError) Unwrap() error { return e.Err }

// validate reports everything that is wrong with a spec that is filled in.
func (o Spec) validate() error {
	var all []error
	complain := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, fmt.Errorf("timeseries: "+format, args...))
		}
	}
	complain(!constraint.Name(o.Table, 3, tableMax), `Table: %q is not 3 to 248 of the characters a-z, A-Z, 0-9, "_", "-" and "."`, o.Table)
	complain(o.Retention != 0 && (o.Retention < time.Second || o.Retention > 100*year), "Retention: %s is not between a second and 100 years", o.Retention)
	complain(len(o.Metrics) > indexesMax, "Metrics: %d indexes are too many; the limit is %d", len(o.Metrics), indexesMax)
	seen := map[string]bool{}
	for _, m := range o.Metrics {
		complain(checkMetric(m) != nil || !constraint.Name(m, 1, indexMax), `Metrics: %q cannot name an index: 1 to 200 of the characters a-z, A-Z, 0-9, "_", "-" and "."`, m)
		complain(seen[m], "Metrics: %q is given twice", m)
		seen[m] = true
	}
	complain(o.MetricShards < 1 || o.MetricShards > shardsMax, "MetricShards: %d is not between 1 and %d", o.MetricShards, shardsMax)
	complain(o.Ahead < 0 || o.Ahead > 10*year, "Ahead: %s is not between 0 and 10 years", o.Ahead)
	complain(o.CacheFor < time.Second || o.CacheFor > time.Hour, "CacheFor: %s is not between a second and an hour", o.CacheFor)
	if err := errors.Join(all...); err != nil {
		return &SpecError{err}
	}
	return nil
}
