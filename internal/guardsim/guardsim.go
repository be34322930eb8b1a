// Package guardsim runs guard's own code at a size that no machine of a developer has: real workers
// with real strategies and leases, against a simulated endpoint with Amazon's limits, in virtual time.
//
// Ten billion items fit nowhere, and fifty workers do not fit into two cores. So a run simulates some
// of the workers, with their share of the shards, the partitions and the expirations; and of the items
// those that are due in its window of time, and those that are written in it. Items, the index and
// stream records are arithmetic over an item's number: see [items]. guard's own tables are in an
// embedded database, since guard's conditions decide there. Everything that a whole fleet shares has
// its limit scaled to the share: see [limits].
//
// Code takes no virtual time. So a worker has a processor that takes as long for a removal and for a
// row as the planner's measured speeds say, one after another. The garbage collector, the polls and
// the renewal of leases take none.
package guardsim

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/planner"
)

// Options describe a run. Plan must be set; the zero value of other fields is useful.
type Options struct {
	Load   planner.GuardLoad  // with Workers
	Plan   *planner.GuardSize // of Load, with the strategy stream or index
	Prices *planner.Prices    // Default: planner.Default
	// Share is the part of the fleet that is simulated, above 0 and up to 1. Default: two workers,
	// or three if some are lost
	Share float64
	For   time.Duration // window of the deadlines that are measured. Default: 20 s. Range: 1 s to an hour
	Seed  uint64
	Whole bool // deadlines are whole seconds, so many are due together

	Lose     float64       // part of the workers that die after a third of the window
	Pause    time.Duration // the first worker does nothing for so long, after a third of the window
	Reshard  bool          // each shard splits after a third of the window
	Throttle float64       // part of the table's partitions that take a tenth of their units in the middle third of the window

	// called now and then, in real time, with the part that is done
	Progress func(done float64)

	limits limits // for tests
}

// limits of the endpoint: Amazon's, unless a test sets others.
type limits struct {
	partitionWrites        float64 // units a second of a partition of the table or the index
	keyWrites, keyReads    float64 // units a second of a partition key of guard's own tables
	shardBytes, shardCalls float64 // a second of a shard of the stream
	listings               float64 // DescribeStream calls a second of an account
	removals, records      float64 // a second of a worker
	memory                 float64 // bytes of a worker
}

func (l limits) withDefaults() limits {
	speeds := planner.MeasuredGuard()
	for _, f := range []struct {
		of    *float64
		value float64
	}{
		{&l.partitionWrites, 1000}, {&l.keyWrites, 1000}, {&l.keyReads, 3000}, {&l.shardBytes, 2e6}, {&l.shardCalls, 5}, {&l.listings, 10},
		{&l.removals, speeds.Removals}, {&l.records, speeds.Records}, {&l.memory, 2e9},
	} {
		if *f.of == 0 {
			*f.of = f.value
		}
	}
	return l
}

// Strategies are the strategies that can be simulated. A scan finds its deadlines in a whole table,
// which does not exist here, and with the strategy schedule EventBridge Scheduler removes the items.
var Strategies = []string{"stream", "index"}

// simulatedMost is the largest number of expirations of a run: some 20 minutes of two cores.
const simulatedMost = 5_000_000

// share returns the number of workers that are simulated.
func (o Options) share() int {
	n := 2
	if o.Lose > 0 {
		n = 3
	}
	if o.Share > 0 {
		n = int(math.Round(o.Share * float64(o.Plan.Useful())))
	}
	return min(max(n, 1), o.Plan.Useful())
}

func (o Options) withDefaults() (Options, error) {
	if o.For == 0 {
		o.For = 20 * time.Second
	}
	if o.Prices == nil {
		o.Prices = planner.Default()
	}
	o.limits = o.limits.withDefaults()
	simulated := o.Load.Expirations * float64(o.share()) / float64(o.Plan.Useful()) * o.For.Seconds()
	var all option.Complaints
	all.AddIf(!slices.Contains(Strategies, o.Plan.Strategy), "strategy", "%q cannot be simulated; use %s", o.Plan.Strategy, strings.Join(Strategies, " or "))
	all.AddIf(!(o.Share >= 0 && o.Share <= 1), "share", "%v is not between 0 and 1", o.Share)
	all.AddIf(o.For < time.Second || o.For > time.Hour, "for", "%v is not between 1s and 1h", o.For)
	all.AddIf(!(o.Lose >= 0 && o.Lose <= 0.9), "lose", "%v is not between 0 and 0.9", o.Lose)
	all.AddIf(o.Lose > 0 && (o.lost() == 0 || o.lost() == o.share()), "lose", "%v of %d simulated workers are %d; use a larger share", o.Lose, o.share(), o.lost())
	all.AddIf(!(o.Throttle >= 0 && o.Throttle <= 1), "throttle", "%v is not between 0 and 1", o.Throttle)
	all.AddIf(o.Pause < 0 || o.Pause > time.Hour, "pause", "%v is not between 0s and 1h", o.Pause)
	all.AddIf(simulated > simulatedMost, "for", "%.0f expirations in %v are more than %d; use a smaller share or a shorter time", simulated, o.For, simulatedMost)
	if err := all.Err(""); err != nil {
		return o, &UsageError{err}
	}
	return o, nil
}

// UsageError is an error of Options.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// lost returns the number of simulated workers that die.
func (o Options) lost() int { return int(math.Round(o.Lose * float64(o.share()))) }

// Run simulates one strategy. It returns an error for wrong options, once ctx is done, and if a worker
// ends by itself.
func Run(ctx context.Context, o Options) (*planner.GuardOutcome, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := newSimulation(o)
	stop := s.reportProgress(ctx)
	defer stop()
	ended := errors.New("the simulation has ended in the middle")
	bubble(func() { ended = s.run(ctx) })
	if ctx.Err() != nil {
		return nil, errors.New("interrupted; nothing is left behind")
	}
	if ended != nil {
		return nil, ended
	}
	return s.outcome(), nil
}

// bubble runs f in virtual time. Package synctest wants a test for that, which it needs for no more
// than its failure: f reports its errors itself, and calls no method of the test.
func bubble(f func()) {
	synctest.Test(new(testing.T), func(*testing.T) { f() })
}
