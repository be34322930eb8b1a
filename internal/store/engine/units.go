package engine

import "sync/atomic"

// Units counts what has been consumed of a table, or of an index, since the process opened it. The service says what a unit is and counts; the
// engine hands the counters from one description to the next, and lets go of them with the table or the index. So counting takes neither a
// lookup nor a lock.
type Units struct{ read, written atomic.Int64 } // halves of units, which is what an eventually consistent read takes

// AddRead counts read units: a multiple of a half.
func (u *Units) AddRead(units float64) { u.read.Add(int64(2 * units)) }

// AddWritten counts write units: a multiple of a half.
func (u *Units) AddWritten(units float64) { u.written.Add(int64(2 * units)) }

// Read gives the read units counted so far.
func (u *Units) Read() float64 { return float64(u.read.Load()) / 2 }

// Written gives the write units counted so far.
func (u *Units) Written() float64 { return float64(u.written.Load()) / 2 }

// countUnits begins to count, for a table that has just been opened or made.
func (d *TableDesc) countUnits() {
	d.Units = &Units{}
	for i := range d.Indexes {
		d.Indexes[i].Units = &Units{}
	}
}
