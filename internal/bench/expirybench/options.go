package expirybench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/sdk"
)

// Options configure a run. A zero field means its default unless its comment says otherwise.
type Options struct {
	Endpoint    sdk.Endpoint // needed
	Name        string       // in the report. Default: the endpoint's URL
	Configured  string       // settings of the endpoint, such as the period of its sweep; for the report
	AllowRemote bool         // the endpoint may be on another machine
	PID         int          // of the server's process. 0: the one that listens there

	// Start is a command line that starts the server, which keeps its data. The run starts it, and kills it
	// once. It needs a shell. Default: the server runs already, and is not killed.
	Start string

	// Only names the parts to run. Empty: all.
	Only []string
	// Items is the number of items that expire evenly over Spread, 10 to 1 million. Default 1,000 over 10 s.
	Items  int
	Spread time.Duration // whole seconds, 1 s to 10 min
	// AtOnce are the numbers of items that expire at one instant, at most 16, each 1 to 1 million. Default 1,000,
	// 10,000 and 200,000.
	AtOnce []int
	// Pending are the numbers of items with distant deadlines beside which lateness is measured, at most 16, each
	// up to 100 million. Default: 0.
	Pending []int
	// Renewals is the number of items that are renewed around their deadlines, 10 to 100,000. Default 1,000.
	Renewals int
	// Load limits the time in which a case's items are written, 1 s to 24 h. A case that needs more is
	// left out. Default 1 min.
	Load time.Duration
	// Wait limits the time for removals after the last deadline, 1 s to 72 h. Default 30 s.
	Wait time.Duration

	// Quick lowers the defaults of the numbers above, for a test run of seconds.
	Quick bool

	Version, Commit string // of this program, for the report

	// Progress is called when a step begins, and with a result when it ends. nil: no calls.
	Progress func(bench.Step)
}

// parts of a run, in order.
const (
	PartLateness   = "lateness"
	PartVisibility = "visibility"
	PartRenewals   = "renewals"
	PartEvents     = "events"
	PartCalls      = "calls"
	PartCost       = "cost"
	PartSurvival   = "survival"
)

// PartNames returns the names of all parts, in their order.
func PartNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

const valuesMost = 16 // of a list of numbers

// withDefaults returns the options with defaults, or a UsageError with every field that is out of range.
func (o Options) withDefaults() (Options, error) {
	quick := func(quick, full int) int {
		if o.Quick {
			return quick
		}
		return full
	}
	o.Items = cmp.Or(o.Items, quick(60, 1000))
	o.Spread = cmp.Or(o.Spread, time.Duration(quick(2, 10))*time.Second)
	o.Renewals = cmp.Or(o.Renewals, quick(60, 1000))
	o.Load = cmp.Or(o.Load, time.Duration(quick(10, 60))*time.Second)
	o.Wait = cmp.Or(o.Wait, time.Duration(quick(3, 30))*time.Second)
	if len(o.AtOnce) == 0 {
		o.AtOnce = []int{1000, 10_000, 200_000}
		if o.Quick {
			o.AtOnce = []int{200}
		}
	}
	if len(o.Pending) == 0 {
		o.Pending = []int{0}
	}
	if len(o.Only) == 0 {
		o.Only = PartNames()
	}
	if o.Progress == nil {
		o.Progress = func(bench.Step) {}
	}
	o.AtOnce, o.Pending = sorted(o.AtOnce), sorted(o.Pending)
	errs := []error{
		bench.Within("--items", o.Items, 10, 1_000_000), bench.Within("--renewals", o.Renewals, 10, 100_000),
		bench.Within("--spread", o.Spread, time.Second, 10*time.Minute), bench.Within("--load", o.Load, time.Second, 24*time.Hour),
		bench.Within("--wait", o.Wait, time.Second, 72*time.Hour),
	}
	if o.Spread%time.Second != 0 {
		errs = append(errs, fmt.Errorf("--spread: %s is not a number of whole seconds", o.Spread))
	}
	if o.PID < 0 {
		errs = append(errs, fmt.Errorf("--server-pid: %d is not the number of a process", o.PID))
	}
	if most := max(len(o.AtOnce), len(o.Pending)); most > valuesMost {
		errs = append(errs, fmt.Errorf("--at-once, --pending: %d values are more than %d", most, valuesMost))
	}
	for _, n := range o.AtOnce {
		errs = append(errs, bench.Within("--at-once", n, 1, 1_000_000))
	}
	for _, n := range o.Pending {
		errs = append(errs, bench.Within("--pending", n, 0, 100_000_000))
	}
	for _, name := range o.Only {
		if !slices.Contains(PartNames(), name) {
			errs = append(errs, fmt.Errorf("--only: %q is not one of %s", name, strings.Join(PartNames(), ", ")))
		}
	}
	if o.Start != "" && o.PID != 0 {
		errs = append(errs, errors.New("--server-pid: the run starts the server itself"))
	}
	if err := errors.Join(errs...); err != nil {
		return o, &bench.UsageError{Err: err}
	}
	return o, nil
}

func sorted(numbers []int) []int { return slices.Compact(slices.Sorted(slices.Values(numbers))) }
