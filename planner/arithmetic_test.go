package planner

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/guard"
)

const month = 30 * 24 * time.Hour

// readings returns the published time-series design: 10,000 readings a second, each up to 1 KB,
// kept for 30 days.
func readings() Workload { return Workload{Writes: 10_000, ItemBytes: 150, Retention: month} }

// fixed returns the plan of a workload whose capacity never changes.
func fixed(w Workload, write, read float64) Workload {
	w.Scaling = Scaling{MinWrite: write, MaxWrite: write, MinRead: read, MaxRead: read}
	return w
}

// TestArithmetic checks each row of the corrected arithmetic of the published time-series design,
// to the dollar.
func TestArithmetic(t *testing.T) {
	now, before := made(t, readings(), USEast1), made(t, readings(), USEast1From2018)
	withAll := readings()
	withAll.Indexes = []Index{{Name: "metric", Projection: All}}
	doubled := made(t, withAll, USEast1)
	five := made(t, fixed(readings(), 5000, 15_000), USEast1)
	ten := made(t, fixed(readings(), 10_000, 1), USEast1)
	provisioned := func(r *Report, i int) float64 { return r.Tracks[i].USD }
	for _, row := range []struct {
		what      string
		got, want float64
		digits    int // after the decimal point
	}{
		{"writes a day", now.WritesPerDay, 864e6, 0},
		{"writes a month", now.WritesPerMonth, 25.92e9, 0},
		{"on demand at $1.25 a million", before.Demands[0].USD, 32_400, 0},
		{"on demand since November 2024", now.Demands[0].USD, 16_200, 0},
		{"a write unit and hour", now.Prices.Provisioned.Write, 0.00065, 5},
		{"5,000 write units", provisioned(five, 0), 2340, 0},
		{"10,000 write units", provisioned(ten, 0), 4680, 0},
		{"write units at 70 %", now.Tracks[0].Most, 14_286, 0},
		{"14,286 write units", provisioned(now, 0), 6686, 0},
		{"15,000 read units", provisioned(five, 1), 1404, 0},
		{"on demand, times the capacity that is just enough", now.Demands[0].USD / provisioned(ten, 0), 3.5, 1},
		{"on demand, times the capacity at 70 %", now.Demands[0].USD / provisioned(now, 0), 2.4, 1},
		{"on demand with an index of ALL", doubled.Demands[0].USD + doubled.Demands[2].USD, 2 * 16_200, 0},
		{"capacity with an index of ALL", provisioned(doubled, 0) + provisioned(doubled, 2), 2*6686 - 0.3, 0},
		{"items", now.StoredItems, 25.92e9, 0},
		{"TB stored", now.StoredBytes / 1e12, 6.5, 1},
		{"storage", now.StorageUSD, 1620, 0},
		{"shards of Kinesis for 10,000 records a second", float64(now.KinesisShards), 10, 0},
		{"requests throttled at 5,000 write units", five.Tracks[0].Requests, 12.96e9, -6},
		{"utilisation at which both modes cost the same", now.Modes.CrossingWrites, 0.289, 3},
		{"and before", before.Modes.CrossingWrites, 0.144, 3},
		{"and of reads", now.Modes.CrossingReads, 0.289, 3},
	} {
		if scale := math.Pow10(row.digits); math.Round(row.got*scale) != math.Round(row.want*scale) {
			t.Errorf("%s: %v, want %v", row.what, row.got, row.want)
		}
	}
	// 5,000 write units are half of the demand.
	if got := five.Tracks[0].Throttled / five.Tracks[0].Asked; math.Abs(got-0.5) > 1e-6 {
		t.Errorf("of 5,000 write units %v is throttled", got)
	}
	if ten.Tracks[0].Throttled != 0 {
		t.Errorf("of 10,000 write units %v are throttled", ten.Tracks[0].Throttled)
	}
}

// TestExpiryArithmetic checks the cost of a million expiries against the published designs,
// corrected, and against the page about guard.
func TestExpiryArithmetic(t *testing.T) {
	// A million items of 1 KB per month.
	w := Workload{Writes: 1e6 / secondsPerMonth, ItemBytes: 1000, Retention: time.Hour, Sweep: Sweep{Workers: 1}}
	r := made(t, w, USEast1)
	part := func(name, of string) float64 {
		t.Helper()
		for _, s := range r.Expiry {
			for _, p := range s.Parts {
				if s.Name == name && p.Of == of {
					return p.USD
				}
			}
		}
		t.Errorf("%s has no %s", name, of)
		return 0
	}
	cents := func(what string, got, want float64) {
		t.Helper()
		if math.Round(got*100) != math.Round(want*100) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	cents("native", r.Expiry[0].PerMillion, 0)
	cents("schedule per item: firings", part("scheduler per item", partFirings), 1)
	cents("schedule per item: deletes", part("scheduler per item", partDeletes), 0.63)
	cents("schedule per item: together", part("scheduler per item", partFirings)+part("scheduler per item", partDeletes), 1.63)
	// An item of 1,000 bytes and its index entry exceed 1 KB with the window attribute: 2 + 2 units
	// to delete, 1 + 2 additional ones to write.
	cents("window: deletes", part("window sweeper", partDeletes), 4*0.625)
	cents("window: writers", part("window sweeper", partWriters), 3*0.625)
	cents("window: 800 s of 2 GB in batches, 43,200 runs of a second", part("window sweeper", partLambda), (800+43_200)*2*0.0000166667+0.0432*0.2)
	cents("shards: index writes", part("sharded index", partWriters), 0.63)
	cents("shards: deletes", part("sharded index", partDeletes), 1.25)
	cents("shards: 8,640 firings", part("sharded index", partFirings), 0.0086)
	// 2.00 if each item is rounded
	cents("shards: the article's items, plus its reads of $0.11, which differ from the rules of reading", part("sharded index", partWriters)+part("sharded index", partDeletes)+part("sharded index", partFirings)+0.11, 1.99)
	cents("guard's page: local stream", part("guard stream, --deadlines DIR", partDeletes), 0.63)
	cents("guard's page: table of deadlines", part("guard stream", partDeletes)+part("guard stream", partWriters), 1.88)
	cents("guard's page: index", part("guard index", partDeletes)+part("guard index", partWriters), 1.88)
	cents("guard's page: schedules", part("guard schedule", partDeletes)+part("guard schedule", partFirings), 1.63)

	// An hourly scan over a million stored items: $0.02.
	w.Items, w.Sweep.Pass = 1e6, time.Hour
	r = made(t, w, USEast1)
	cents("guard's page: scan, an hour", part("guard scan", partReads)/hoursPerMonth, 0.02)

	// Rows and polls of a fleet, with a million expiries per month: $2.59 per worker and $0.69 per
	// table.
	for i, want := range []float64{0, 5.88, 8.47} {
		w.Sweep.Workers = i + 1
		r = made(t, w, USEast1)
		cents("guard's page: fleet", part("guard stream", partFleet), want)
	}
	cents("one crew, and no looks", part("guard index", partFleet), 3*2.592/2)
}

// TestGuardsPrices checks that the two prices in guard, which estimates without a price table,
// equal the default table.
func TestGuardsPrices(t *testing.T) {
	if p := Default(); p.OnDemand.Write != guard.PriceWrite || p.OnDemand.Read != guard.PriceRead {
		t.Errorf("guard counts with %v and %v, the table has %v and %v", guard.PriceWrite, guard.PriceRead, p.OnDemand.Write, p.OnDemand.Read)
	}
}

func TestUnits(t *testing.T) {
	for _, x := range []struct {
		bytes                             int
		write, strong, eventual, transact float64
	}{{1, 1, 1, 0.5, 2}, {1024, 1, 1, 0.5, 2}, {1025, 2, 1, 0.5, 2}, {3584, 4, 1, 0.5, 2}, {4096, 4, 1, 0.5, 2}, {4097, 5, 2, 1, 4}, {409_600, 400, 100, 50, 200}} {
		if got := []float64{WriteUnits(x.bytes, false), WriteUnits(x.bytes, true) / 2, ReadUnits(x.bytes, Strong), ReadUnits(x.bytes, Eventual), ReadUnits(x.bytes, Transactional)}; got[0] != x.write || got[1] != x.write || got[2] != x.strong ||
			got[3] != x.eventual || got[4] != x.transact {
			t.Errorf("%d bytes: %v", x.bytes, got)
		}
	}
}

// A new item writes one index entry, a changed index key two, and a change of no projected
// attribute none.
func TestIndexWrites(t *testing.T) {
	w := Workload{Writes: 100, ItemBytes: 3000, Updates: 0.5, Indexes: []Index{
		{Name: "all"}, {Name: "keys", Projection: KeysOnly}, {Name: "moving", Projection: KeysOnly, Moves: 1}, {Name: "some", Projection: Include, EntryBytes: 2000, Share: 0.5},
		{Name: "here", Projection: KeysOnly, Local: true},
	}}
	r := made(t, w, USEast1)
	want := map[string]float64{
		"table":        100*3 + 100*0.5,     // 3 KB each, and the new entries of the local index
		"index all":    100 * 3,             // every write
		"index keys":   100 * 0.5,           // new items
		"index moving": 100*0.5 + 100*0.5*2, // also both writes of each update
		"index some":   100 * 0.5 * 2,       // half of the items, of 2 KB
	}
	for _, track := range r.Tracks {
		if track.Kind == Writes && math.Abs(track.Demand-want[track.Resource]) > 1e-9 {
			t.Errorf("%s: %v write units, want %v", track.Resource, track.Demand, want[track.Resource])
		}
	}
	if len(r.Tracks) != 10 {
		t.Errorf("%d tracks: the local index has none of its own", len(r.Tracks))
	}
}

// An index with one partition key receives all its writes there, and the number of shards follows
// from a partition's capacity.
func TestHotPartitions(t *testing.T) {
	w := readings()
	w.Indexes = []Index{{Name: "metric", Keys: 1}, {Name: "spread", Keys: 100}}
	w.HottestKey = 0.09
	r := made(t, w, USEast1)
	for i, want := range []struct {
		risk   Risk
		shards int
	}{{RiskNear, 2}, {RiskOver, 13}, {RiskNone, 1}} {
		if h := r.Hot[i]; h.Risk != want.risk || h.Shards != want.shards || (h.Why == "") != (want.risk == RiskNone) || strings.Contains(h.Why, "holds up the table's writes") != (want.risk == RiskOver) {
			t.Errorf("%+v, want %+v", h, want)
		}
	}
	if got := shardsFor(3000, 0); got != 4 { // the published example
		t.Errorf("%d shards for 3,000 units a second", got)
	}
	if got := partitionsOf(10_000, 0, 6.48e12); got != 604 { // by its size
		t.Errorf("%v partitions", got)
	}
}

func TestFreeTier(t *testing.T) {
	w := Workload{Writes: 1, ItemBytes: 1000, Retention: time.Hour, StreamReaders: 1}
	dear := made(t, w, USEast1)
	w.FreeTier = true
	free := made(t, w, USEast1)
	if dear.StorageUSD == 0 || free.StorageUSD != 0 || dear.StreamUSD == 0 || free.StreamUSD >= dear.StreamUSD {
		t.Errorf("storage %v and %v, stream %v and %v", dear.StorageUSD, free.StorageUSD, dear.StreamUSD, free.StreamUSD)
	}
}
