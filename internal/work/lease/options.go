package lease

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// Options identify a worker and set the duration of leases. The zero value suits a worker among
// others.
type Options struct {
	Owner string // unique to this run of this process. Default: random
	// silence after which a worker's leases may be taken. Default: 10 s. Range: 100 ms to an hour
	Duration time.Duration
	// no other worker reads the same streams: leases are taken at once, and there are no beats
	Exclusive bool
	Elapsed   clock.Elapsed // the local monotonic clock. Default: the machine's
	// the table of leases: all workers use the same name. Default: TableName, billed on demand
	Table ensure.Settings

	Fatal       func(error) bool       // errors of the table that end Hold. Default: none; it retries
	CrewChanged func(workers []string) // called by Hold when a worker has come or gone. Default: none
	Logger      *slog.Logger           // of Hold. Default: nothing is logged
}

const (
	durationDefault = 10 * time.Second
	durationMin     = 100 * time.Millisecond
	durationMax     = time.Hour
)

// TableName returns the name of the table of leases.
func (o Options) TableName() string { return cmp.Or(o.Table.Name, TableName) }

// withDefaults returns a copy with all defaults.
func (o Options) withDefaults() Options {
	o.Owner = cmp.Or(o.Owner, rand.Text())
	o.Duration = cmp.Or(o.Duration, durationDefault)
	o.Duration = min(max(o.Duration, durationMin), durationMax)
	if o.Elapsed == nil {
		o.Elapsed = clock.Stopwatch()
	}
	if o.Fatal == nil {
		o.Fatal = func(error) bool { return false }
	}
	if o.CrewChanged == nil {
		o.CrewChanged = func([]string) {}
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}
