package expirybench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// ErrFaults is the error of a run that found faults. The report has them.
var ErrFaults = errors.New("the endpoint broke promises of a server that claims durable data")

// run is the state of a run.
type run struct {
	Options
	*endpoint
	report   *Report
	prefix   string          // of the names of its tables
	tables   map[string]bool // that exist, by name
	progress bench.Step
	server   *server // that the run has started; nil: another one

	perS           float64 // rate at which items were written last
	created        int     // tables so far
	far            *table  // has the pending items
	pending        int     // how many
	failed         []error // of parts, which are left out
	removesNothing string  // why further waiting is of no use; empty: it may be of use
}

// part is a part of a run.
type part struct {
	name string
	run  func(*run, context.Context) error
}

// parts returns the parts in their order.
func parts() []part {
	return []part{
		{PartLateness, (*run).lateness},
		{PartVisibility, (*run).visibility},
		{PartRenewals, (*run).renewals},
		{PartEvents, (*run).events},
		{PartCalls, (*run).calls},
		{PartCost, (*run).cost},
		{PartSurvival, (*run).survival},
	}
}

const cleanUpLimit = 30 * time.Second

// Run measures an endpoint. It removes its tables at the end, also after a failure. A report with faults
// comes with ErrFaults, and one in which parts failed with their errors.
func Run(ctx context.Context, o Options) (*Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, prefix: fmt.Sprintf("expiry-bench-%08x-", rand.Uint32()), tables: map[string]bool{}}
	if r.endpoint, err = connect(ctx, o); err != nil {
		return nil, err
	}
	if o.Start != "" && !r.local {
		return nil, &bench.UsageError{Err: errors.New("--start: the endpoint is not on this machine")}
	}
	start := time.Now()
	r.report = newReport(o, r.endpoint, start)
	err = r.all(ctx)
	r.report.TookS = time.Since(start).Round(100 * time.Millisecond).Seconds()
	left := r.cleanUp()
	if err != nil {
		return nil, errors.Join(err, left)
	}
	r.report.judge()
	if len(r.report.Faults) > 0 {
		err = fmt.Errorf("%w: %s", ErrFaults, strings.Join(r.report.Faults, "; "))
	}
	return r.report, errors.Join(err, errors.Join(r.failed...), left)
}

func (r *run) all(ctx context.Context) (err error) {
	if r.Start != "" {
		if r.server, err = r.startServer(ctx); err != nil {
			return err
		}
		r.pid = r.server.pid()
		r.report.Endpoint.PID = r.pid
	}
	if err := r.readClock(ctx); err != nil {
		return fmt.Errorf("call the endpoint: %w", err)
	}
	if err := r.probe(ctx); err != nil {
		return err
	}
	for _, p := range parts() {
		switch {
		case !slices.Contains(r.Only, p.name):
			continue
		case r.report.NoTTL != "":
			r.leaveOut(p.name, "the endpoint has no TTL")
			continue
		}
		r.progress.Part++
		if err := p.run(r, ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			err = fmt.Errorf("%s: %w", p.name, err)
			r.failed = append(r.failed, err)
			r.leaveOut(p.name, "it failed: "+err.Error())
		}
	}
	r.report.Clock = r.difference()
	return nil
}

// probe measures the rate of writing, and learns whether the endpoint has TTL.
func (r *run) probe(ctx context.Context) error {
	r.progress.Total = len(r.Only) + 1
	r.step("rate of writes")
	t, err := r.createTable(ctx, "probe", design{index: true, stream: true})
	var noTTL *errNoTTL
	if errors.As(err, &noTTL) {
		r.report.NoTTL = retry.Code(noTTL)
		return nil
	}
	if err != nil {
		return err
	}
	far := time.Now().Add(farDeadline)
	r.perS, err = t.fill(ctx, probeItems, r.Load, func(i int) item { return item{i, far} })
	if errors.Is(err, errTooSlow) {
		return fmt.Errorf("the endpoint does not write %d items in %s", probeItems, r.Load)
	}
	if err != nil {
		return err
	}
	r.result("%.0f items a second", r.perS)
	return r.drop(ctx, t.name)
}

// prepared runs a measurement whose deadlines begin a lead after its start. While the items are not
// written in time, it starts again with a longer lead, and in the end leaves the measurement out.
func (r *run) prepared(what string, measure func(lead time.Duration) error) error {
	lead := prepareFor
	for range loadTries {
		if err := measure(lead); !errors.Is(err, errTooSlow) {
			return err
		}
		lead *= 4
	}
	r.leaveOut(what, fmt.Sprintf("it was too slow to begin with the deadlines, also %s after its start", lead/4))
	return nil
}

// cleanUp removes the tables that are left.
func (r *run) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpLimit)
	defer cancel()
	var errs []error
	for name := range r.tables {
		errs = append(errs, r.drop(ctx, name))
	}
	r.server.stop()
	return errors.Join(errs...)
}

// step reports the start of a step.
func (r *run) step(format string, args ...any) {
	r.progress.Text, r.progress.Result = fmt.Sprintf(format, args...), ""
	r.Progress(r.progress)
}

// result reports the end of the step.
func (r *run) result(format string, args ...any) {
	r.progress.Result = fmt.Sprintf(format, args...)
	r.Progress(r.progress)
}

// leaveOut notes a measurement that is not made, with the reason.
func (r *run) leaveOut(what, why string) {
	r.report.LeftOut = append(r.report.LeftOut, LeftOut{what, why})
}
