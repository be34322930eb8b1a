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
	// or, if some are lost, the fewest from three on of which about that part can be lost
	Share float64
	For   time.Duration // window of the deadlines that are measured. Default: 20 s. Range: 1 s to an hour
	Seed  uint64
	Whole bool // deadlines are whole seconds, so many are due together

	Lose     float64       // part of the workers that die after a third of the window
	Pause    time.Duration // the first worker's requests stand still for so long, after a third of the window; its timers go on
	Reshard  bool          // each shard splits after a third of the window
	Throttle float64       // part of the table's partitions that take a tenth of their units in the middle third of the window

	// called now and then, in real time, with the part that is done
	Progress func(done float64)

	limits limits // for tests
}

// limits of the endpoint: Amazon's, unless a test sets others.
type limits struct {
	partitionWrites        float64 // units a second of a partition of the table
	indexWrites            float64 // the same, of the index
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
		{&l.partitionWrites, 1000}, {&l.indexWrites, 1000}, {&l.keyWrites, 1000}, {&l.keyReads, 3000}, {&l.shardBytes, 2e6}, {&l.shardCalls, 5}, {&l.listings, 10},
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

// A run has at most so many items, some 20 minutes of two cores; workers; and shards of the stream or
// the index.
const (
	simulatedMost = 5_000_000
	workersMost   = 100
	shardsMost    = 2_000
)

// share returns the number of workers that are simulated.
func (o Options) share() int {
	n := 2
	if o.Lose > 0 {
		for n = 3; n < 10 && o.far(n); n++ {
		}
	}
	if o.Share > 0 {
		n = int(math.Round(o.Share * float64(o.Plan.Useful())))
	}
	return min(max(n, 1), o.Plan.Useful())
}

// far reports whether the dying workers of n would be far from the part that Lose is.
func (o Options) far(n int) bool {
	return math.Abs(math.Round(o.Lose*float64(n))/float64(n)-o.Lose) > 0.05
}

// faulty reports whether there is a fault.
func (o Options) faulty() bool { return o.Lose > 0 || o.Pause > 0 || o.Reshard || o.Throttle > 0 }

// lead is how long before its deadline an item is written: longer than the time to the next poll.
func (o Options) lead() time.Duration {
	if o.Plan.Strategy == "index" {
		return 4*o.Load.Period + 2*time.Second
	}
	return o.Plan.Lease + o.Plan.Lease/4 + 12*time.Second
}

// runIn is how long before the window removals begin, since their rows are deleted later:
// guard/internal/stream.
func (o Options) runIn() time.Duration {
	if o.Plan.Strategy == "index" {
		return 0
	}
	return min(10*time.Second, o.Plan.Lease/2) + 2*time.Second
}

// shards returns how many shards the stream and the index of the whole fleet have.
func (o Options) shards() (stream, index int) {
	if stream = o.Plan.StreamShards; stream == 0 { // the plan of the index has none
		stream = o.Load.TablePartitions()
	}
	return stream, o.Plan.IndexShards
}

func (o Options) withDefaults() (Options, error) {
	if o.For == 0 {
		o.For = 20 * time.Second
	}
	if o.Prices == nil {
		o.Prices = planner.Default()
	}
	o.limits = o.limits.withDefaults()
	share := float64(o.share()) / float64(o.Plan.Useful())
	window := o.For + o.runIn()
	simulated := o.Load.Expirations * share * (window + min(window, o.lead())).Seconds()
	stream, index := o.shards()
	shards := float64(max(stream, index)) * share
	var all option.Complaints
	all.AddIf(!slices.Contains(Strategies, o.Plan.Strategy), "strategy", "%q cannot be simulated; use %s", o.Plan.Strategy, strings.Join(Strategies, " or "))
	all.AddIf(!(o.Share >= 0 && o.Share <= 1), "share", "%v is not between 0 and 1", o.Share)
	all.AddIf(o.For < time.Second || o.For > time.Hour, "for", "%v is not between 1s and 1h", o.For)
	all.AddIf(!(o.Lose >= 0 && o.Lose <= 0.9), "lose", "%v is not between 0 and 0.9", o.Lose)
	all.AddIf(o.Lose > 0 && (o.lost() == 0 || o.lost() == o.share() || o.far(o.share())), "lose", "%.3g of %d simulated workers would be %d; use a larger share, or another part", o.Lose, o.share(), o.lost())
	all.AddIf(o.share() > workersMost, "share", "%d workers are more than the %d that can be simulated; use a smaller share", o.share(), workersMost)
	all.AddIf(shards > shardsMost, "share", "%.0f shards are more than the %d that can be simulated; use a smaller share, or fewer items", shards, shardsMost)
	all.AddIf(o.Reshard && o.Plan.Strategy == "stream" && o.For < 2*o.lead(), "for", "%v is too short for a split: most deadlines would be known before it; use %v or more", o.For, 2*o.lead())
	all.AddIf(!(o.Throttle >= 0 && o.Throttle <= 1), "throttle", "%v is not between 0 and 1", o.Throttle)
	all.AddIf(o.Pause < 0 || o.Pause > time.Hour, "pause", "%v is not between 0s and 1h", o.Pause)
	all.AddIf(simulated > simulatedMost, "for", "%.0f items that are due or written in %v are more than %d; use a smaller share or a shorter time", simulated, o.For, simulatedMost)
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
