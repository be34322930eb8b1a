package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// GuardLoad is the load of a table that guard watches. Required are Items and Expirations; the zero
// value of other fields is useful.
type GuardLoad struct {
	Items       float64 `json:"items"`       // that have a deadline, 1 to 10^15
	Expirations float64 `json:"expirations"` // per second at the peak, up to 10 million
	ItemBytes   int     `json:"item_bytes"`  // Default: 1,024. Range: 1 to 409,600
	KeyBytes    int     `json:"key_bytes"`   // Default: 64, or the item's size if smaller
	// mean number of renewals of an item's deadline before it expires, up to a million
	Renewals float64 `json:"renewals"`
	// stream, with the deadlines in a table and in a directory; index, schedule or scan. Default: all
	Strategy string `json:"strategy,omitempty"`
	// Default: as many as Late takes, and enough if one has died. Range: 1 to 10,000
	Workers int `json:"workers,omitempty"`
	// lateness that 99 % of the removals should have, with deadlines in whole seconds. Default: 1
	// second. Range: 100 ms to an hour
	Late time.Duration `json:"late_ns"`
	// Default: the shortest one with which the leases fit into one partition key, from 6 seconds on.
	// Range: 1 second to an hour
	Lease  time.Duration `json:"lease_ns"`
	Period time.Duration `json:"period_ns"` // of sweeps of an index. Default: 5 seconds. Range: 1 second to an hour
	// of the scan strategy. Default: an hour if that fits, otherwise one of several that does. Range: 1
	// minute to 30 days
	Pass time.Duration `json:"pass_ns"`
	// read units per second of the first scan, of all workers together. Default: no limit
	MaxRCU float64 `json:"max_rcu"`
	// time from a removal's request to the endpoint's answer. Default: 10 ms. Range: 0.1 ms to a
	// second
	RoundTrip time.Duration `json:"round_trip_ns"`
}

// Ways to run guard, as in its flags.
const (
	guardLocal    = "stream --deadlines"
	guardStream   = "stream"
	guardIndex    = "index"
	guardSchedule = "schedule"
	guardScan     = "scan"
)

var guardWays = []string{guardLocal, guardStream, guardIndex, guardSchedule, guardScan}

// GuardSize is the size of a guard for a load, with one strategy. Units and dollars are on demand.
type GuardSize struct {
	Strategy string   `json:"strategy"` // "stream --deadlines" is a single worker with its deadlines in a directory
	Fits     bool     `json:"fits"`
	Why      []string `json:"why,omitempty"`   // reasons why it does not fit
	Notes    []string `json:"notes,omitempty"` // conditions under which it does

	Workers      int           `json:"workers"`
	Busy         float64       `json:"busy"`                   // share of a worker's speed that is used, 0 to 1; of index the busiest one's
	Partitions   int           `json:"partitions,omitempty"`   // of mayfly.deadlines
	IndexShards  int           `json:"index_shards,omitempty"` // partition keys of the index
	StreamShards int           `json:"stream_shards,omitempty"`
	Lease        time.Duration `json:"lease_ns,omitempty"` // 0: a single worker needs none
	Pass         time.Duration `json:"pass_ns,omitempty"`  // of the scan strategy

	// estimates of the lateness: of deadlines spread over each second, and of deadlines in whole
	// seconds
	P50      time.Duration `json:"late_p50_ns"`
	P99      time.Duration `json:"late_p99_ns"`
	WholeP50 time.Duration `json:"whole_seconds_p50_ns"`
	WholeP99 time.Duration `json:"whole_seconds_p99_ns"`
	// lateness while the share of a dead worker waits for another one; with scan, of an item that no
	// pass has seen before its deadline. 0: until the only worker is back
	Bound time.Duration `json:"bound_ns,omitempty"`

	Armed       float64 `json:"armed"`             // deadlines in the memory of a worker
	MemoryBytes float64 `json:"memory_bytes"`      // of a worker
	DiskBytes   float64 `json:"disk_bytes"`        // of the directory of deadlines
	WriteUnits  float64 `json:"write_units"`       // per second, with the deletes and the index
	ReadUnits   float64 `json:"read_units"`        // per second
	StreamCalls float64 `json:"stream_calls"`      // per second
	HourUSD     float64 `json:"usd_per_hour"`      // all of it; machines are not included
	DeletesUSD  float64 `json:"deletes_usd"`       // of HourUSD, the deletes of the items
	KeyWrites   float64 `json:"key_write_units"`   // per second, of the busiest partition key
	KeyReads    float64 `json:"key_read_units"`    // the same
	MaxRCU      float64 `json:"max_rcu,omitempty"` // --max-rcu of the scan strategy, for all workers together

	FirstScan    time.Duration `json:"first_scan_ns"`
	FirstScanUSD float64       `json:"first_scan_usd"`
}

// GuardPlan is the sizes of guard for a load, one for each strategy.
type GuardPlan struct {
	Load    GuardLoad   `json:"load"`
	Prices  *Prices     `json:"prices"`
	Lives   float64     `json:"lives_s"` // mean time in seconds from an item's write to its deadline, if the number of items is constant
	Options []GuardSize `json:"options"`
}

// SizeGuard returns the sizes of guard for a load, or an error with all problems of the load.
func SizeGuard(load GuardLoad, prices *Prices) (*GuardPlan, error) {
	l, err := load.filled()
	if err != nil {
		return nil, err
	}
	p := &GuardPlan{Load: l, Prices: prices, Lives: l.Items / l.Expirations}
	for _, name := range guardWays {
		if l.Strategy == "" || l.Strategy == name || l.Strategy == guardStream && name == guardLocal {
			p.Options = append(p.Options, l.best(name, prices))
		}
	}
	return p, nil
}

const (
	expirationsMax = 1e7 // per second
	workersMax     = 10_000
)

// filled returns the load with defaults, or an error with all its problems.
func (l GuardLoad) filled() (GuardLoad, error) {
	var all []error
	complain := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	complain(!(l.Items >= 1 && l.Items <= itemsMax), "items: %v is not between 1 and %v", l.Items, itemsMax)
	complain(!(l.Expirations >= rateMin && l.Expirations <= expirationsMax), "expirations: %v is not between %v and %v a second", l.Expirations, rateMin, expirationsMax)
	if l.ItemBytes == 0 {
		l.ItemBytes = 1 << 10
	}
	complain(l.ItemBytes < 1 || l.ItemBytes > itemMax, "item size: %d bytes is not between 1 and %d (400 KB)", l.ItemBytes, itemMax)
	if l.KeyBytes == 0 {
		l.KeyBytes = max(min(64, l.ItemBytes), 1)
	}
	complain(l.KeyBytes < 1 || l.KeyBytes > 4096, "key size: %d bytes is not between 1 and 4096", l.KeyBytes)
	complain(l.KeyBytes > max(l.ItemBytes, 1), "key size: %d bytes is more than the item's %d", l.KeyBytes, l.ItemBytes)
	complain(!(l.Renewals >= 0 && l.Renewals <= 1e6), "renewals: %v is not between 0 and a million", l.Renewals)
	complain(!(l.MaxRCU >= 0 && l.MaxRCU <= unitsMax), "read units of a first scan: %v is not between 0 and %d", l.MaxRCU, unitsMax)
	complain(l.Strategy != "" && !slices.Contains(guardWays[1:], l.Strategy), "unknown strategy %q; use %s", l.Strategy, strings.Join(guardWays[1:], ", "))
	complain(l.Workers < 0 || l.Workers > workersMax, "workers: %d is not between 1 and %s", l.Workers, number(workersMax))
	for _, f := range []struct {
		name                string
		at                  *time.Duration
		usually, least, top time.Duration
	}{
		{"lateness", &l.Late, time.Second, 100 * time.Millisecond, time.Hour},
		{"lease", &l.Lease, 0, time.Second, time.Hour},
		{"period", &l.Period, 5 * time.Second, time.Second, time.Hour},
		{"a scan's pass", &l.Pass, 0, time.Minute, 30 * 24 * time.Hour},
		{"round trip", &l.RoundTrip, 10 * time.Millisecond, 100 * time.Microsecond, time.Second},
	} {
		if *f.at == 0 {
			*f.at = f.usually
		}
		complain(*f.at != f.usually && (*f.at < f.least || *f.at > f.top), "%s: %v is not between %v and %v", f.name, *f.at, f.least, f.top)
	}
	if len(all) == 0 {
		least := seconds(l.spread(0.99, busy))
		complain(l.Late < least+10*time.Millisecond, "lateness: %v is too short; with a round trip of %v use at least %v", l.Late, l.RoundTrip, (least + 10*time.Millisecond).Round(time.Millisecond))
	}
	return l, errors.Join(all...)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
