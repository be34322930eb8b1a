package engine

import "sync/atomic"

// Units counts the capacity consumed of a table or an index since the process opened it. The
// service defines a unit and counts. The engine passes the counters from one description to the
// next, and drops them with the table or the index, so counting needs no lookup and no lock.
type Units struct{ read, written atomic.Int64 } // half units: an eventually consistent read

// AddRead counts read units: a multiple of a half.
func (u *Units) AddRead(units float64) { u.read.Add(int64(2 * units)) }

// AddWritten counts write units: a multiple of a half.
func (u *Units) AddWritten(units float64) { u.written.Add(int64(2 * units)) }

// Read returns the read units counted so far.
func (u *Units) Read() float64 { return float64(u.read.Load()) / 2 }

// Written returns the write units counted so far.
func (u *Units) Written() float64 { return float64(u.written.Load()) / 2 }

// countUnits creates the counters of a table that has just been opened or created.
func (d *TableDesc) countUnits() {
	d.Units = &Units{}
	for i := range d.Indexes {
		d.Indexes[i].Units = &Units{}
	}
}
