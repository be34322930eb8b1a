package planner

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Workload is the load of a table. Required are ItemBytes and one of Writes, Reads and Shape; the
// zero value of other fields is useful.
type Workload struct {
	ItemBytes int     `json:"item_bytes"` // bytes of an item, names and values; 1 to 409,600
	Writes    float64 `json:"writes"`     // per second; ignored if there is a shape
	// reads per second; with a shape only their proportions count, by default all eventual
	Mix Mix `json:"reads"`

	TransactionalWrites float64 `json:"transactional_writes"` // share of the writes that are part of transactions, 0 to 1
	// share of the writes that change an existing item, 0 to 1; the others create one
	Updates float64 `json:"updates"`

	Indexes []Index `json:"indexes,omitempty"` // up to 20 global and 5 local ones

	Retention time.Duration `json:"retention_ns"` // lifetime of an item; 0: unlimited
	Expiring  float64       `json:"expiring"`     // share of the new items that expire, 0 to 1. Default: 1 with a retention
	// stored items. Default: the items written during the retention, or in a month
	Items float64 `json:"items"`
	// mean number of renewals of an item's deadline before it expires
	Renewals float64 `json:"renewals"`
	// bytes of the primary key, names and values. Default: 64, or the item's size if smaller
	KeyBytes int `json:"key_bytes"`

	// share of the traffic of the busiest partition key, 0 to 1; 0: even
	HottestKey float64 `json:"hottest_key"`

	// readers of the stream other than Lambda, whose calls are free. Range: 0 to 100
	StreamReaders int `json:"stream_readers"`

	Shape   *Shape  `json:"-"` // nil: constant traffic
	Scaling Scaling `json:"scaling"`
	Sweep   Sweep   `json:"sweep"`

	// subtract the monthly free tier, as if the account had no other use
	FreeTier bool `json:"free_tier"`
}

// Mix counts reads per second by consistency.
type Mix struct {
	Strong        float64 `json:"strong"`
	Eventual      float64 `json:"eventual"`
	Transactional float64 `json:"transactional"`
}

// Sum returns the reads per second of all kinds.
func (m Mix) Sum() float64 { return m.Strong + m.Eventual + m.Transactional }

// Projection names the attributes that an index holds.
type Projection string

const (
	All      Projection = "ALL"
	KeysOnly Projection = "KEYS_ONLY"
	Include  Projection = "INCLUDE"
)

// Index is a secondary index.
type Index struct {
	Name       string     `json:"name"`
	Projection Projection `json:"projection"`
	// bytes of an entry. Default: the item's for ALL, twice the keys' for KEYS_ONLY; required for
	// INCLUDE
	EntryBytes int  `json:"entry_bytes"`
	Local      bool `json:"local"` // writes take the table's capacity
	// share of the items that have an entry, above 0 to 1. Default: 1
	Share float64 `json:"share"`
	Moves float64 `json:"moves"` // share of the updates that change its key, which takes two writes, 0 to 1
	// per second, eventually consistent, of one entry each
	Reads float64 `json:"reads"`
	// distinct partition keys in use at a time, evenly; 0: very many
	Keys int `json:"keys"`
}

// Sweep configures the removal of items at their deadlines.
type Sweep struct {
	// length of a window of the expiration-window index, and period of its sweeps. Default: 1
	// minute
	Window time.Duration `json:"window_ns"`
	// period of the sweeps of the sharded index. Default: 5 minutes
	Period time.Duration `json:"period_ns"`
	Ahead  time.Duration `json:"guard_period_ns"` // guard's period. Default: 5 seconds
	// duration of one scan of the table by guard. Default: 1 hour
	Pass  time.Duration `json:"scan_pass_ns"`
	Lease time.Duration `json:"lease_ns"` // lease of guard's workers. Default: 6 seconds
	// number of guard's workers. Default: 2; a single one needs no leases
	Workers int `json:"workers"`
}

// Limits of a workload.
const (
	rateMax = 1e9 // operations per second
	// once in 30 years; a lower rate is probably a mistake, and its mean could be a division by
	// zero
	rateMin      = 1e-9
	itemsMax     = 1e15
	retentionMax = 100 * 365 * 24 * time.Hour
	globalMax    = 20
	localMax     = 5
)

// nameLetters are the characters of an index's name.
const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// filled returns the workload with defaults, or an error with all its problems.
func (w Workload) filled() (Workload, error) {
	var all []error
	complain := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	share := func(name string, v float64) {
		complain(!(v >= 0 && v <= 1), "%s: %v is not between 0 and 1", name, v)
	}
	rate := func(name string, v float64) {
		complain(!(v >= 0 && v <= rateMax), "%s: %v is not between 0 and %v a second", name, v, rateMax)
		complain(v > 0 && v < rateMin, "%s: %v a second is less than one request in 30 years", name, v)
	}
	complain(w.ItemBytes < 1 || w.ItemBytes > itemMax, "item size: %d bytes is not between 1 and %d (400 KB)", w.ItemBytes, itemMax)
	rate("writes", w.Writes)
	rate("strong reads", w.Mix.Strong)
	rate("eventual reads", w.Mix.Eventual)
	rate("transactional reads", w.Mix.Transactional)
	complain(w.Shape == nil && w.Writes == 0 && w.Mix.Sum() == 0, "no traffic: set writes or reads")
	share("transactional writes", w.TransactionalWrites)
	share("updates", w.Updates)
	share("hottest key", w.HottestKey)
	complain(w.Retention < 0 || w.Retention > retentionMax, "retention: %v is not between 0 and 100 years", w.Retention)
	if w.Expiring == 0 && w.Retention > 0 {
		w.Expiring = 1
	}
	share("expiring", w.Expiring)
	complain(w.Expiring > 0 && w.Retention == 0, "expiring: it needs a retention")
	complain(!(w.Items >= 0 && w.Items <= itemsMax), "items: %v is not between 0 and %v", w.Items, itemsMax)
	complain(!(w.Renewals >= 0 && w.Renewals <= 1e6), "renewals: %v is not between 0 and a million", w.Renewals)
	if w.KeyBytes == 0 {
		w.KeyBytes = max(min(64, w.ItemBytes), 1)
	}
	complain(w.KeyBytes < 1 || w.KeyBytes > 4096, "key size: %d bytes is not between 1 and 4096", w.KeyBytes)
	complain(w.KeyBytes > max(w.ItemBytes, 1), "key size: %d bytes is more than the item's %d", w.KeyBytes, w.ItemBytes)
	complain(w.StreamReaders < 0 || w.StreamReaders > 100, "stream readers: %d is not between 0 and 100", w.StreamReaders)

	w.Indexes = append([]Index(nil), w.Indexes...)
	global, local, names := 0, 0, map[string]bool{}
	for i := range w.Indexes {
		x := &w.Indexes[i]
		if x.Local {
			local++
		} else {
			global++
		}
		complain(len(x.Name) < 3 || len(x.Name) > 255 || strings.Trim(x.Name, nameLetters) != "", "index %q: a name must have 3 to 255 of a-z, A-Z, 0-9, _, . and -", x.Name)
		complain(names[x.Name], "index %q is listed twice", x.Name)
		names[x.Name] = true
		all = append(all, x.fill(&w)...)
	}
	complain(global > globalMax, "%d global indexes are too many; the limit is %d", global, globalMax)
	complain(local > localMax, "%d local indexes are too many; the limit is %d", local, localMax)
	w.Scaling.fill(complain)
	w.Sweep.fill(complain)
	return w, errors.Join(all...)
}

func (x *Index) fill(w *Workload) (all []error) {
	complain := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Errorf("index %q: "+format, append([]any{x.Name}, args...)...))
		}
	}
	switch x.Projection {
	case "":
		x.Projection = All
		fallthrough
	case All:
		complain(x.EntryBytes != 0 && x.EntryBytes != w.ItemBytes, "an entry of projection ALL has the item's size")
		x.EntryBytes = w.ItemBytes
	case KeysOnly:
		if x.EntryBytes == 0 {
			x.EntryBytes = 2 * w.KeyBytes
		}
	case Include:
		complain(x.EntryBytes == 0, "projection INCLUDE needs the size of an entry (bytes=)")
	default:
		complain(true, "unknown projection %q; use ALL, KEYS_ONLY or INCLUDE", x.Projection)
	}
	complain(x.EntryBytes < 0 || x.EntryBytes > itemMax, "an entry of %d bytes is not between 1 and %d", x.EntryBytes, itemMax)
	if x.Share == 0 {
		x.Share = 1
	}
	complain(!(x.Share > 0 && x.Share <= 1), "share: %v is not above 0 and at most 1", x.Share)
	complain(!(x.Moves >= 0 && x.Moves <= 1), "moves: %v is not between 0 and 1", x.Moves)
	complain(!(x.Reads >= 0 && x.Reads <= rateMax), "reads: %v is not between 0 and %v a second", x.Reads, rateMax)
	complain(x.Keys < 0, "keys: %d is negative", x.Keys)
	return all
}

func (s *Sweep) fill(complain func(bool, string, ...any)) {
	for _, f := range []struct {
		name    string
		at      *time.Duration
		usually time.Duration
		least   time.Duration
	}{
		{"window", &s.Window, time.Minute, time.Second}, {"period", &s.Period, 5 * time.Minute, time.Second}, {"guard's period", &s.Ahead, 5 * time.Second, time.Second},
		{"a scan's pass", &s.Pass, time.Hour, time.Minute}, {"lease", &s.Lease, 6 * time.Second, time.Second},
	} {
		if *f.at == 0 {
			*f.at = f.usually
		}
		complain(*f.at < f.least || *f.at > 30*24*time.Hour, "%s: %v is not between %v and 30 days", f.name, *f.at, f.least)
	}
	if s.Workers == 0 {
		s.Workers = 2
	}
	complain(s.Workers < 1 || s.Workers > 1000, "workers: %d is not between 1 and 1000", s.Workers)
}

// Scaling configures autoscaling of the table and of each global index. The zero value suits most
// tables.
type Scaling struct {
	MinWrite float64 `json:"min_write"` // units per second. Default: 1
	MaxWrite float64 `json:"max_write"` // Default: 40,000, the quota of a table
	MinRead  float64 `json:"min_read"`
	MaxRead  float64 `json:"max_read"`
	Target   float64 `json:"target"` // desired utilisation, 0.2 to 0.9. Default: 0.7
	// distance below the target at which capacity scales in. Default: 0.2; below 0: none, as in the
	// developer guide
	Band float64 `json:"band"`
	// minutes from the alarm to the new capacity, 0 to 60. Default: 2; below 0: at once
	Delay int `json:"delay_minutes"`
}

// unitsMax is the highest capacity, in units per second, that the planner accepts: table quotas can
// be raised beyond it.
const unitsMax = 10_000_000

func (s *Scaling) fill(complain func(bool, string, ...any)) {
	for _, f := range []struct {
		at      *float64
		usually float64
	}{{&s.MinWrite, 1}, {&s.MinRead, 1}, {&s.MaxWrite, 40_000}, {&s.MaxRead, 40_000}, {&s.Target, 0.7}, {&s.Band, 0.2}} {
		if *f.at == 0 {
			*f.at = f.usually
		}
	}
	if s.Delay == 0 {
		s.Delay = 2
	}
	s.Delay, s.Band = max(s.Delay, 0), max(s.Band, 0)
	for _, f := range []struct {
		of       Kind
		low, top float64
	}{{Writes, s.MinWrite, s.MaxWrite}, {Reads, s.MinRead, s.MaxRead}} {
		whole := f.low == math.Trunc(f.low) && f.top == math.Trunc(f.top)
		complain(!whole || !(f.low >= 1 && f.low <= f.top && f.top <= unitsMax), "capacity for %s: %v to %v is not a range of whole units from 1 to %d", f.of, f.low, f.top, unitsMax)
	}
	complain(!(s.Target >= 0.2 && s.Target <= 0.9), "target: %v is not between 0.2 and 0.9 (20 to 90 %%)", s.Target)
	complain(!(s.Band < s.Target), "band: %v is not below the target %v", s.Band, s.Target)
	complain(s.Delay > 60, "delay: %d minutes are more than 60", s.Delay)
}
