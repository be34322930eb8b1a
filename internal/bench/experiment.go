package bench

import (
	"context"
	"slices"
)

// experiment is a part of a run other than scenarios.
type experiment struct {
	name    string
	measure func(*run, context.Context) error
	pending bool // items with deadlines after the run exist meanwhile

	// It measures only a server that the run starts, and compares nothing within a round, so another
	// run may measure it: in reports whether a report has its result, and take replaces that.
	own  bool
	in   func(*Report) bool
	take func(to, from *Report)
}

// experiments has every experiment, in the order of runs.
var experiments = []experiment{
	{name: experimentExpiry, pending: true, measure: (*run).lateness},
	{name: experimentBurst, pending: true, measure: (*run).bursts},
	{name: experimentDrain, pending: true, measure: (*run).drains},
	{
		name: experimentSchedules, measure: (*run).schedules, own: true,
		in: func(r *Report) bool { return r.Schedules != nil }, take: func(to, from *Report) { to.Schedules = from.Schedules },
	}, {
		name: experimentTriggers, measure: (*run).triggers, own: true,
		in: func(r *Report) bool { return len(r.Delivered) > 0 }, take: func(to, from *Report) { to.Delivered = from.Delivered },
	}, {
		name: experimentGuard, measure: (*run).guards, own: true,
		in: func(r *Report) bool { return r.Guard != nil }, take: func(to, from *Report) { to.Guard = from.Guard },
	}, {
		name: experimentStart, measure: (*run).starts, own: true, pending: true,
		in: func(r *Report) bool { return r.Start != nil }, take: func(to, from *Report) { to.Start = from.Start },
	},
}

// experiments returns those that the options select. A run that measures a URL has none of the
// experiments that need a server of its own.
func (r *run) experiments() []experiment {
	return slices.DeleteFunc(slices.Clone(experiments), func(x experiment) bool { return !r.runs(x.name) || x.own && r.URL != nil })
}
