package engine

import (
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/points"
	"github.com/mayflydb/mayfly/internal/ttl"
)

// Units counts the capacity consumed of a table or an index since the process opened it. The
// service defines a unit and counts. The engine passes the counters from one description to the
// next, and drops them with the table or the index, so counting needs no lookup and no lock.
type Units struct {
	read, written                   atomic.Int64 // half units: an eventually consistent read
	throttledReads, throttledWrites atomic.Int64

	// Carried is the service's. It is nil until the service stores something.
	Carried atomic.Value

	// the units by minutes; nil: not kept
	reads, writes *points.Series
	// Points has the further series of the table or index, and may be nil.
	Points *points.Set
}

// newUnits returns the counters of a table, or of an index of it.
func newUnits(r *points.Recorder, table, index string) *Units {
	u := &Units{Points: r.Set(points.Key{Namespace: points.DynamoDB, Table: table, Index: index})}
	u.reads = u.Points.Get(points.ConsumedReads, "")
	u.writes = u.Points.Get(points.ConsumedWrites, "")
	return u
}

// AddRead counts read units: a multiple of a half.
func (u *Units) AddRead(units float64) {
	u.read.Add(int64(2 * units))
	u.reads.AddJust(units)
}

// AddWritten counts write units: a multiple of a half.
func (u *Units) AddWritten(units float64) {
	u.written.Add(int64(2 * units))
	u.writes.AddJust(units)
}

// AddThrottledRead counts a read that throttling refused.
func (u *Units) AddThrottledRead() {
	u.throttledReads.Add(1)
	u.Points.Get(points.ReadsThrottled, "").Add(1)
}

// AddThrottledWrite counts a write that throttling refused.
func (u *Units) AddThrottledWrite() {
	u.throttledWrites.Add(1)
	u.Points.Get(points.WritesThrottled, "").Add(1)
}

// Throttled returns the reads and writes refused so far.
func (u *Units) Throttled() (reads, writes int64) {
	return u.throttledReads.Load(), u.throttledWrites.Load()
}

// Read returns the read units counted so far.
func (u *Units) Read() float64 { return float64(u.read.Load()) / 2 }

// Written returns the write units counted so far.
func (u *Units) Written() float64 { return float64(u.written.Load()) / 2 }

// Suspicions counts the writes to a table whose TTL value looks like a mistake, since the process
// opened the table. The engine keeps the counters as it keeps Units, so their memory and their
// metrics end with the table.
type Suspicions struct {
	counts [ttl.Reasons]atomic.Int64
	warned [ttl.Reasons]atomic.Uint64 // the TTL generation of the last warning, plus one; 0: none
}

// Add counts a write. It reports whether it is the first for its reason since the table was opened
// or its TTL was changed, in which case the caller warns.
func (s *Suspicions) Add(r ttl.Reason, generation uint32) (first bool) {
	s.counts[r].Add(1)
	mark := uint64(generation) + 1
	return s.warned[r].Load() != mark && s.warned[r].Swap(mark) != mark
}

// Count returns the number of writes with a reason.
func (s *Suspicions) Count(r ttl.Reason) int64 { return s.counts[r].Load() }

// countUnits creates the counters of a table that has just been opened or created.
func (d *TableDesc) countUnits(r *points.Recorder) {
	d.Units, d.Suspicions = newUnits(r, d.Name, ""), &Suspicions{}
	for i := range d.Indexes {
		d.Indexes[i].Units = newUnits(r, d.Name, d.Indexes[i].Name)
	}
}
