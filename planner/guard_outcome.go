package planner

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// GuardSpeeds are the measured speeds of a worker of guard with which plans compute.
type GuardSpeeds struct {
	Removals float64 // a second
	Records  float64 // of a stream that become rows, a second
}

// MeasuredGuard returns the measured speeds.
func MeasuredGuard() GuardSpeeds { return GuardSpeeds{Removals: removalsPerS, Records: recordsPerS} }

// GuardOutcome is what a simulation of guard has measured. Rates are of the whole fleet.
type GuardOutcome struct {
	Strategy string `json:"strategy"`
	Fleet    int    `json:"fleet"` // its workers
	// the simulated part of the fleet
	Workers      int           `json:"workers"`
	Died         int           `json:"died,omitempty"` // of them
	Useful       int           `json:"useful"`         // of the fleet's workers, those that can have a share
	Partitions   int           `json:"partitions,omitempty"`
	IndexShards  int           `json:"index_shards,omitempty"`
	StreamShards int           `json:"stream_shards,omitempty"`
	For          time.Duration `json:"for_ns"`
	Whole        bool          `json:"whole_seconds"`
	// of the simulated part: deadlines in that time, removals before a deadline, items that were never
	// removed, and removals of items that were gone
	Due   int `json:"due"`
	Early int `json:"early"`
	Lost  int `json:"lost"`
	Again int `json:"again"`

	P50       time.Duration `json:"late_p50_ns"`
	P99       time.Duration `json:"late_p99_ns"`
	Max       time.Duration `json:"late_max_ns"`
	Recovered time.Duration `json:"recovered_ns,omitempty"` // from a fault to the last removal that was more than 2 s late

	// mean of the workers that lived, with the rows that are still to be deleted
	Busy        float64 `json:"busy"`
	Owed        float64 `json:"owed"`      // rows that are still to be deleted when the time ends
	Armed       int     `json:"armed"`     // most in a worker's memory
	InFlight    int     `json:"in_flight"` // most removals of a worker at once
	MemoryBytes float64 `json:"memory_bytes"`
	WriteUnits  float64 `json:"write_units"`
	ReadUnits   float64 `json:"read_units"`
	StreamCalls float64 `json:"stream_calls"`
	// time between two polls of a partition's deadlines, if it is longer than the run: then the read
	// units lack these polls
	Polled  time.Duration `json:"polled_ns,omitempty"`
	HourUSD float64       `json:"usd_per_hour"`

	Limits []GuardLimit `json:"limits"` // the most used one first
}

// GuardLimit is the use of a limit: 1 is all of it.
type GuardLimit struct {
	Name    string  `json:"name"`
	Use     float64 `json:"use"`
	Refused float64 `json:"refused,omitempty"` // largest part of the requests to one shard or partition that the endpoint refused for it
}

// refusedMost is the part of the requests that may be refused without harm, for example when a worker
// takes over shards of a dead one.
const refusedMost = 0.05

// Reached reports whether the limit holds guard up.
func (l GuardLimit) Reached() bool { return l.Use >= 0.99 || l.Refused > refusedMost }

// First returns the first bottleneck: the limit that held guard up, or the one that is next to. An
// endpoint's refusals come before a processor, which has more to do because of them.
func (o *GuardOutcome) First() GuardLimit {
	first := o.Limits[0]
	for _, l := range o.Limits {
		if l.Refused > max(first.Refused, refusedMost) {
			first = l
		}
	}
	return first
}

// Price sets the memory and the price of an hour. What the simulation does not have is the plan's: the
// storage, and the audit.
func (o *GuardOutcome) Price(plan *GuardSize, l GuardLoad, p *Prices) {
	each := armedBytes
	if o.Strategy == guardStream {
		each = armedRowBytes
	}
	o.MemoryBytes = idleBytes + float64(o.Armed)*(each+float64(l.KeyBytes))
	o.ReadUnits += auditUnitsPerS
	units := func(writes, reads, calls float64) float64 {
		return 3600 / 1e6 * (writes*p.OnDemand.Write + reads*p.OnDemand.Read + calls*p.Streams.Read)
	}
	reads := o.ReadUnits
	if o.Polled > 0 {
		reads = plan.ReadUnits
	}
	stored := plan.HourUSD - units(plan.WriteUnits, plan.ReadUnits, plan.StreamCalls)
	o.HourUSD = stored + units(o.WriteUnits, reads, o.StreamCalls)
}

// Useful returns how many of the workers can have a share.
func (s *GuardSize) Useful() int {
	switch s.Strategy {
	case guardIndex, guardScan:
		return min(s.Workers, leasesMost)
	case guardStream, guardSchedule:
		return min(s.Workers, partitionsMost)
	}
	return s.Workers
}

// EntryUnits returns the write units of an entry of an index of deadlines.
func (l GuardLoad) EntryUnits() float64 { return WriteUnits(l.KeyBytes+entryText, false) }

// TablePartitions returns how many partitions the table itself has for a load.
func (l GuardLoad) TablePartitions() int {
	return int(partitionsOf(l.Expirations*(2+l.Renewals)*WriteUnits(l.ItemBytes, false), 0, l.Items*float64(l.ItemBytes)))
}

// WriteText writes the outcome beside its plan, for people.
func (o *GuardOutcome) WriteText(out io.Writer, plan *GuardSize) error {
	var b strings.Builder
	shares := fmt.Sprintf("%s partitions of mayfly.deadlines, %s shards of the stream", number(float64(o.Partitions)), number(float64(o.StreamShards)))
	if o.IndexShards > 0 {
		shares = fmt.Sprintf("%s shards of the index", number(float64(o.IndexShards)))
	}
	idle := ""
	if o.Useful < o.Fleet {
		idle = fmt.Sprintf(" (%d more have no share)", o.Fleet-o.Useful)
	}
	if o.Died > 0 {
		idle += fmt.Sprintf(", with %d to die", o.Died)
	}
	fmt.Fprintf(&b, "%s: simulated are %d of %d workers%s, %s, and %s expirations in %s\n\n", o.Strategy, o.Workers, o.Useful, idle, shares, number(float64(o.Due)), short(o.For))
	p50, p99 := plan.P50, plan.P99
	if o.Whole {
		p50, p99 = plan.WholeP50, plan.WholeP99
	}
	fits := "yes"
	if !plan.Fits {
		fits = "no"
	}
	rows := [][]string{
		{"fits", fits, ""},
		{"busy", percent(plan.Busy), percent(o.Busy)},
		{"late, p50", about(p50), about(o.P50)},
		{"late, p99", about(p99), about(o.P99)},
		{"late, at most", "", about(o.Max)},
	}
	if o.Recovered > 0 {
		rows = append(rows, []string{"late again until, after the fault", "", about(o.Recovered)})
	}
	rows = append(rows, [][]string{
		{"armed, each", number(plan.Armed), number(float64(o.Armed))},
		{"memory, each", size(plan.MemoryBytes), size(o.MemoryBytes)},
		{"write units/s", number(plan.WriteUnits), number(o.WriteUnits)},
		{"read units/s", number(plan.ReadUnits), number(o.ReadUnits)},
		{"stream calls/s", number(plan.StreamCalls), number(o.StreamCalls)},
		{"an hour", dollars(plan.HourUSD), dollars(o.HourUSD)},
	}...)
	writeColumns(&b, []string{"", "plan", "simulated"}, rows)
	if o.Polled > 0 {
		fmt.Fprintf(&b, "  read units: without the polls of deadlines, which are %s apart; the price has the plan's\n", short(o.Polled))
	}
	for _, why := range plan.Why {
		fmt.Fprintf(&b, "  the plan does not fit: %s\n", why)
	}
	if o.Owed > 0 {
		fmt.Fprintf(&b, "  %s rows are still to be deleted at the end; that work and its write units are counted as done\n", number(o.Owed))
	}
	fmt.Fprintf(&b, "  early %d, lost %d, removed again %d\n", o.Early, o.Lost, o.Again)
	first := o.First()
	switch {
	case first.Refused > refusedMost:
		fmt.Fprintf(&b, "  first bottleneck: %s, %s used; the endpoint refused up to %s of the requests to one\n", first.Name, percent(first.Use), percent(first.Refused))
	case first.Reached():
		fmt.Fprintf(&b, "  first bottleneck: %s, %s used\n", first.Name, percent(first.Use))
	default:
		fmt.Fprintf(&b, "  no bottleneck; the first one would be: %s, %s used\n", first.Name, percent(first.Use))
	}
	for _, l := range o.Limits {
		if l.Name != first.Name && (l.Use > 0.3 || l.Refused > refusedMost) {
			fmt.Fprintf(&b, "  then: %s, %s used\n", l.Name, percent(l.Use))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
