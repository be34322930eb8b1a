package lease

import (
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Options says who takes leases, and for how long. The zero value is that of a worker among others.
type Options struct {
	Owner     string        // of this process alone, and of no run of it before. Default: random
	Duration  time.Duration // after which a silent worker's leases are taken over. Default: 10 s. Range: 100 ms to an hour
	Exclusive bool          // no other worker reads the same streams: leases are taken at once, and there are no beats
	Elapsed   clock.Elapsed // the local monotonic clock. Default: the machine's

	Fatal       func(error) bool // errors of the table with which Hold ends. Default: none; it asks again
	CrewChanged func()           // called by Hold when a worker has come or gone. Default: nobody is told
	Logger      *slog.Logger     // of Hold. Default: nothing is logged
}

const (
	durationDefault = 10 * time.Second
	durationMin     = 100 * time.Millisecond
	durationMax     = time.Hour
)

// withDefaults is a copy in which nothing is left open.
func (o Options) withDefaults() Options {
	if o.Owner == "" {
		o.Owner = rand.Text()
	}
	if o.Duration == 0 {
		o.Duration = durationDefault
	}
	o.Duration = min(max(o.Duration, durationMin), durationMax)
	if o.Elapsed == nil {
		o.Elapsed = clock.Stopwatch()
	}
	if o.Fatal == nil {
		o.Fatal = func(error) bool { return false }
	}
	if o.CrewChanged == nil {
		o.CrewChanged = func() {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
