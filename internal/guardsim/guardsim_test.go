package guardsim

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/planner"
)

// TestSimulation: go test ./internal/guardsim -long 10 runs ten times as many expirations.
var long = flag.Int("long", 1, "how many times the usual load is simulated")

// simulate runs a strategy and checks what holds in each run: nothing is early, lost or removed twice.
func simulate(t *testing.T, load planner.GuardLoad, o Options) *planner.GuardOutcome {
	t.Helper()
	load.Items = cmp.Or(load.Items, 1e8)
	load.Expirations *= float64(*long)
	strategy := cmp.Or(load.Strategy, "stream")
	p, err := planner.SizeGuard(load, planner.Default())
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Options {
		if p.Options[i].Strategy == strategy {
			o.Plan = &p.Options[i]
		}
	}
	o.Load, o.Share, o.Seed = p.Load, cmp.Or(o.Share, 1), cmp.Or(o.Seed, 1)
	got, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(got)
	t.Logf("%s", text)
	// an item may be tried twice around a fault, but its removal is on the books once
	if !o.faulty() && got.Recovered != 0 {
		t.Errorf("late again until %v after a fault, without a fault", got.Recovered)
	}
	if got.Early != 0 || got.Lost != 0 || got.Due < int(load.Expirations*o.For.Seconds()*0.9) {
		t.Errorf("%d of %d deadlines were early, and %d lost", got.Early, got.Due, got.Lost)
	}
	return got
}

func near(t *testing.T, what string, got, least, most float64) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s is %v, which is not between %v and %v", what, got, least, most)
	}
}

// TestUndisturbed: without a fault the simulation has the plan's figures.
func TestUndisturbed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, strategy string
		item, key      int
	}{{"stream", "stream", 0, 0}, {"index", "index", 0, 0}, {"index of long keys", "index", 2000, 1500}} { // whose entries take two units
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			load := planner.GuardLoad{Items: 1e8, Expirations: 100, Workers: 2, Lease: 2 * time.Second, Strategy: c.strategy, ItemBytes: c.item, KeyBytes: c.key}
			got := simulate(t, load, Options{For: 10 * time.Second})
			load.Expirations *= float64(*long)
			plan, err := planner.SizeGuard(load, planner.Default())
			if err != nil {
				t.Fatal(err)
			}
			size := plan.Options[len(plan.Options)-1]
			near(t, "busy", got.Busy, 0.9*size.Busy, 1.1*size.Busy)
			near(t, "write units", got.WriteUnits, 0.9*size.WriteUnits, 1.1*size.WriteUnits)
			near(t, "stream calls", got.StreamCalls, 0.8*size.StreamCalls, 1.2*size.StreamCalls)
			near(t, "dollars an hour", got.HourUSD, 0.9*size.HourUSD, 1.1*size.HourUSD)
			near(t, "the lateness of 99 %", got.P99.Seconds(), 0.01, 0.1)
			near(t, "the removals of items that were gone", float64(got.Again), 0, 0)
		})
	}
}

// takenOver is after how many seconds the items of a worker that stands still are removed: 5/3 leases
// at most, and the time to poll and to catch up.
func takenOver(lease time.Duration) float64 { return lease.Seconds()*5/3 + 2 }

// TestLoss: a third of the workers dies. Their items are late by the time of a takeover, and no
// longer.
func TestLoss(t *testing.T) {
	t.Parallel()
	for _, strategy := range Strategies {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			const lease = 6 * time.Second
			got := simulate(t, planner.GuardLoad{Expirations: 60, Workers: 3, Lease: lease, Strategy: strategy}, Options{For: 15 * time.Second, Lose: 1. / 3})
			near(t, "the highest lateness", got.Max.Seconds(), recoveredLate.Seconds(), takenOver(lease))
			near(t, "the recovery", got.Recovered.Seconds(), recoveredLate.Seconds(), takenOver(lease))
			near(t, "the removals of items that were gone", float64(got.Again), 0, 0.02*float64(got.Due))
			near(t, "the dead workers", float64(got.Died), 1, 1)
		})
	}
}

// TestPause: a worker's requests stand still for longer than a lease, and go on. It then
// tries what was due meanwhile, its half of the items of the pause, at most once again.
func TestPause(t *testing.T) {
	t.Parallel()
	for _, strategy := range Strategies {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			const lease = 3 * time.Second
			got := simulate(t, planner.GuardLoad{Expirations: 60, Workers: 2, Lease: lease, Strategy: strategy}, Options{For: 15 * time.Second, Pause: 3 * lease})
			near(t, "the highest lateness", got.Max.Seconds(), lease.Seconds()/2, takenOver(lease))
			near(t, "the removals of items that were gone", float64(got.Again), 0, 60./2*(3*lease+time.Second).Seconds()*float64(*long))
		})
	}
}

// TestReshard: each shard splits while its records are read. The children are followed, and all goes on
// in time.
func TestReshard(t *testing.T) {
	t.Parallel()
	got := simulate(t, planner.GuardLoad{Expirations: 40, Workers: 2, Lease: 2 * time.Second}, Options{For: 40 * time.Second, Reshard: true})
	near(t, "the highest lateness", got.Max.Seconds(), 0, 1)
	// Nearly a third of the deadlines is written after the split: who does not read the children loses them.
	// Removals after it are records of the children too.
	near(t, "write units", got.WriteUnits, 120*float64(*long), 220*float64(*long))
}

// TestThrottle: some partitions of the table take a tenth of their units for a while. Their items are
// late, those of others are not, and the endpoint's refusals are named.
func TestThrottle(t *testing.T) {
	t.Parallel()
	for _, split := range []bool{false, true} { // then the open ones are throttled
		t.Run(fmt.Sprintf("split %v", split), func(t *testing.T) {
			t.Parallel()
			o := Options{For: 15 * time.Second, Throttle: 0.5, Reshard: split, limits: limits{partitionWrites: 60 * float64(*long)}}
			got := simulate(t, planner.GuardLoad{Expirations: 200, Workers: 2, Strategy: "index"}, o)
			near(t, "the highest lateness", got.Max.Seconds(), 0.2, 60)
			near(t, "the median lateness", got.P50.Seconds(), 0, 0.1)
			if first := got.First(); first.Name != "write units of a partition of the table" || first.Refused < 0.05 {
				t.Errorf("the first bottleneck is %+v", first)
			}
		})
	}
}

// TestBottleneck: the first bottleneck is named rightly.
func TestBottleneck(t *testing.T) {
	t.Parallel()
	times := float64(*long)
	for _, c := range []struct {
		strategy string
		limits   limits
		want     string
	}{
		{"index", limits{indexWrites: 35 * times}, "write units of a shard of the index"},
		{"stream", limits{partitionWrites: 18 * times}, "write units of a partition of the table"},
		{"stream", limits{shardBytes: 15e3 * times}, "bytes of a shard"},
		{"stream", limits{shardCalls: 1}, "GetRecords calls of a shard"},
		{"index", limits{removals: 45 * times}, "processor of a worker"},
		{"stream", limits{memory: 45.1e6}, "memory of a worker"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			got := simulate(t, planner.GuardLoad{Expirations: 100, Workers: 2, Lease: 2 * time.Second, Strategy: c.strategy}, Options{For: 10 * time.Second, limits: c.limits})
			if first := got.First(); first.Name != c.want || !first.Reached() {
				t.Errorf("the first bottleneck is %+v, not %s", first, c.want)
			} else if c.limits.indexWrites > 0 && first.Refused == 0 {
				t.Errorf("an index without units left has refused no removal: %+v", first)
			}
		})
	}
}

// TestOptions: wrong options are errors that name them.
func TestOptions(t *testing.T) {
	t.Parallel()
	p, err := planner.SizeGuard(planner.GuardLoad{Items: 1e10, Expirations: 1e5, Workers: 50}, planner.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		option string
		o      Options
		plan   int
	}{
		{"Strategy", Options{}, 4}, {"Share", Options{Share: 2}, 1}, {"For", Options{For: time.Millisecond}, 1}, {"For", Options{Share: 1, For: time.Hour}, 1},
		{"Lose", Options{Lose: 0.95}, 1}, {"Lose", Options{Lose: 0.1, Share: 0.04}, 1}, {"Lose", Options{Lose: 0.5, Share: 0.06}, 1},
		{"For", Options{Reshard: true, For: 2 * time.Minute}, 1}, {"For", Options{For: 790 * time.Second}, 2}, // with what users write
		{"Throttle", Options{Throttle: 7}, 1}, {"Pause", Options{Pause: -1}, 1},
	} {
		c.o.Load, c.o.Plan = p.Load, &p.Options[c.plan]
		if _, err := Run(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), strings.ToLower(c.option)+": ") {
			t.Errorf("%+v: the error is %v", c.o, err)
		}
	}
	for want, load := range map[string]planner.GuardLoad{
		"share: 200 workers are more than the 100": {Items: 1e8, Expirations: 10, Workers: 200},
		"shards are more than the 2000":            {Items: 1e12, Expirations: 10, Workers: 2},
	} {
		p, err := planner.SizeGuard(load, planner.Default())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), Options{Load: p.Load, Plan: &p.Options[1], Share: 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, not %s", err, want)
		}
	}
}
