package bench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options configure a run. A zero field means its default unless its comment says otherwise.
type Options struct {
	// Self is the command line of the mayfly program, without arguments. Run starts its servers
	// with it.
	Self []string

	// URL is the endpoint to measure. nil: a server of this program, started for the run.
	URL *Remote
	// Versus are endpoints for comparison. Every round measures them in turn.
	Versus []Remote
	// AllowRemote lets endpoints be on other machines.
	AllowRemote bool

	// InMemory starts a second server of this program, with its data in memory, and measures the
	// calls of scenarios there too.
	InMemory bool
	// Version and Commit of the program, for the report.
	Version, Commit string

	// NATS is a server with JetStream, nats://host:port, that receives stream records too, and whose
	// scheduled messages are compared with expiring items. Default: none.
	NATS string
	// Redis is a server, redis://host:port, whose expiring keys are compared too. Default: none.
	Redis string

	// Dir is the parent of temporary directories for the data of the own server and the loop.
	// Default: the system's directory for temporary files.
	Dir string
	// Durability of the own server and the loop: sync (default), async or memory.
	Durability string

	// Quick lowers the defaults of all following numbers, for a test run of seconds with
	// meaningless figures.
	Quick bool
	// Only names the scenarios and experiments to run. Empty: all.
	Only []string
	// Connections are the numbers of connections at which to measure, each 1 to 1024. Default 1, 16, 64.
	Connections []int
	// Duration of one measurement, 10 ms to 10 min. Default 500 ms.
	Duration time.Duration
	// Rounds of measurements, 1 to 100. Default 3.
	Rounds int
	// Items is the number of items in a table that is read, 100 to 10 million. Default 100,000.
	Items int

	// Expiring is the number of items that expire over Spread. Default 100,000 over 30 s; 100 to 10
	// million, and 1 s to 1 h.
	Expiring int
	Spread   time.Duration
	// Burst is the number of items that expire at one instant, 100 to 10 million. Default 200,000.
	Burst int
	// Pending is the number of additional items with deadlines after the run, up to 10 million.
	// Default none.
	Pending int

	// Progress is called when a step begins and when it ends. nil: no calls.
	Progress func(Step)
}

// Step is a part of a run.
type Step struct {
	Part, Total int // the part of the run that is under way: an experiment, or a scenario of a round
	Text        string
	Result      string // result; empty when the step begins
}

// withDefaults returns the options with defaults, or an error with every field that is out of
// range.
func (o Options) withDefaults() (Options, error) {
	setDefault(&o.Durability, "sync")
	setDefault(&o.Duration, pick(o.Quick, 60*time.Millisecond, 500*time.Millisecond))
	setDefault(&o.Rounds, pick(o.Quick, 1, 3))
	setDefault(&o.Items, pick(o.Quick, 2000, 100_000))
	setDefault(&o.Expiring, pick(o.Quick, 2000, 100_000))
	setDefault(&o.Spread, pick(o.Quick, time.Second, 30*time.Second))
	setDefault(&o.Burst, pick(o.Quick, 5000, 200_000))
	if len(o.Connections) == 0 {
		o.Connections = pick(o.Quick, []int{1, 16}, []int{1, 16, 64})
	}
	o.Connections = slices.Compact(slices.Sorted(slices.Values(o.Connections)))
	if len(o.Only) == 0 {
		o.Only = ScenarioNames()
	}
	if o.Progress == nil {
		o.Progress = func(Step) {}
	}
	const itemsMax = 10_000_000
	var errs []error
	for _, n := range o.Connections {
		errs = append(errs, Within("--connections", n, 1, 1024))
	}
	errs = append(errs,
		Within("--rounds", o.Rounds, 1, 100),
		Within("--items", o.Items, 100, itemsMax),
		Within("--expiring", o.Expiring, 100, itemsMax),
		Within("--burst", o.Burst, 100, itemsMax),
		Within("--pending", o.Pending, 0, itemsMax),
		Within("--duration", o.Duration, 10*time.Millisecond, 10*time.Minute),
		Within("--spread", o.Spread, time.Second, time.Hour),
	)
	if _, known := durabilities[o.Durability]; !known {
		errs = append(errs, fmt.Errorf("--durability: %q is not one of sync, async, memory", o.Durability))
	}
	for _, name := range o.Only {
		if !slices.Contains(ScenarioNames(), name) {
			errs = append(errs, fmt.Errorf("--only: %q is not one of %s", name, strings.Join(ScenarioNames(), ", ")))
		}
	}
	compared := o.runs(experimentExpiry) || o.runs(experimentBurst)
	if o.NATS != "" && !compared && (o.URL != nil || !o.runs(experimentTriggers)) {
		errs = append(errs, fmt.Errorf("--nats works only with the scenarios %s and %s, and with %s at this program's own server", experimentExpiry, experimentBurst, experimentTriggers))
	}
	if o.Redis != "" && !compared {
		errs = append(errs, fmt.Errorf("--redis works only with the scenarios %s and %s", experimentExpiry, experimentBurst))
	}
	if o.InMemory && (o.URL != nil || o.Durability == "memory") {
		errs = append(errs, errors.New("--in-memory works only beside this program's own server with its data on disk"))
	}
	remotes := o.Versus
	if o.URL != nil {
		remotes = append([]Remote{*o.URL}, remotes...)
	}
	for _, remote := range remotes {
		if _, known := durabilities[remote.Durability]; !known && remote.Durability != "" {
			errs = append(errs, fmt.Errorf("durability %q of %s is not one of sync, async, memory", remote.Durability, remote.URL))
		}
	}
	if len(o.Self) == 0 {
		errs = append(errs, errors.New("the program's own command line is needed"))
	}
	if err := errors.Join(errs...); err != nil {
		return o, &UsageError{err}
	}
	return o, nil
}

// Within returns an error unless a value lies in its range.
func Within[T cmp.Ordered](name string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%s: %v is not between %v and %v", name, value, least, most)
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// runs reports whether the run includes a scenario or an experiment.
func (o *Options) runs(name string) bool { return slices.Contains(o.Only, name) }

// UsageError is an error in the options, so that the run did not start. It names them as the flags
// of mayfly bench.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }
