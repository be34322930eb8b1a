package service

import "github.com/mayflydb/mayfly/internal/store/engine"

// capacityMode is a value of ReturnConsumedCapacity; empty means none.
type capacityMode string

const (
	capacityTotal   capacityMode = "TOTAL"
	capacityIndexes capacityMode = "INDEXES"
)

// asked reports whether the answer shows the units.
func (m capacityMode) asked() bool { return m == capacityTotal || m == capacityIndexes }

const (
	readBlock  = 4 * 1024 // bytes that one read unit covers
	writeBlock = 1024     // bytes that one write unit covers

	// the factor for a table's units in a transaction
	transactional = 2
)

// The units for one block, by the kind of read.
const (
	readEventual      = 0.5
	readStrong        = 1.0
	readTransactional = 2.0
)

func readKind(consistent Opt[bool]) float64 {
	if consistent.V {
		return readStrong
	}
	return readEventual
}

// readUnits returns the cost of reading size bytes. A read that finds nothing costs one block.
func readUnits(size int, perBlock float64) float64 { return blocks(size, readBlock) * perBlock }

func writeUnits(size int) float64 { return blocks(size, writeBlock) }

func blocks(size, block int) float64 { return float64(max(1, (size+block-1)/block)) }

// meter adds up the units that a request consumes of one table and its indexes.
type meter struct {
	given         string // the table as the request named it
	mode          capacityMode
	table         float64
	local, global map[string]float64
	transaction   meterKind
}

// meterKind says whether a meter's answer lists reads and writes separately, as the answers to
// transactions do.
type meterKind int

const (
	meterPlain meterKind = iota
	meterReads
	meterWrites
)

// read adds units of the table.
func (m *meter) read(units float64) { m.table += units }

// write adds the units of one item's change. factor applies to the table's units, not to the
// indexes'.
func (m *meter) write(w *engine.Write, factor float64) {
	m.table += factor * tableWriteUnits(w)
	for i := range w.Indexes {
		m.index(w.Indexes[i].Index, indexWriteUnits(&w.Indexes[i]))
	}
}

// index adds units of an index.
func (m *meter) index(ix *engine.IndexDesc, units float64) {
	part := &m.local
	if ix.Global {
		part = &m.global
	}
	if *part == nil {
		*part = map[string]float64{}
	}
	(*part)[ix.Name] += units
}

// tableWriteUnits returns the cost of a write in its table, by the larger of the item's two sizes.
func tableWriteUnits(w *engine.Write) float64 { return writeUnits(max(w.OldBytes, w.NewBytes)) }

// indexWriteUnits returns the cost of a write in an index: by the larger of the entry's two sizes,
// or by both if the entry's key changes.
func indexWriteUnits(x *engine.IndexWrite) float64 {
	if x.Moved {
		return writeUnits(x.OldBytes) + writeUnits(x.NewBytes)
	}
	return writeUnits(max(x.OldBytes, x.NewBytes))
}

// result returns the sum in the API's form.
func (m *meter) result() *Capacity {
	c := &Capacity{TableName: m.given, Units: m.table + sum(m.local) + sum(m.global), Detail: m.mode == capacityIndexes}
	c.Read, c.Write = m.split(c.Units)
	if !c.Detail {
		return c
	}
	c.Table = m.part(m.table)
	c.Local, c.Global = m.parts(m.local), m.parts(m.global)
	return c
}

func (m *meter) part(units float64) CapacityPart {
	p := CapacityPart{Units: units}
	p.Read, p.Write = m.split(units)
	return p
}

// split returns units as reads or writes, in an answer that lists them separately.
func (m *meter) split(units float64) (read, write Opt[float64]) {
	switch m.transaction {
	case meterReads:
		return Some(units), Opt[float64]{}
	case meterWrites:
		return Opt[float64]{}, Some(units)
	}
	return
}

func (m *meter) parts(units map[string]float64) map[string]CapacityPart {
	if len(units) == 0 {
		return nil
	}
	parts := make(map[string]CapacityPart, len(units))
	for name, u := range units {
		parts[name] = m.part(u)
	}
	return parts
}

func sum(units map[string]float64) float64 {
	total := 0.0
	for _, u := range units {
		total += u
	}
	return total
}

// meters adds up the units that a request consumes of several tables.
type meters struct {
	mode        capacityMode
	transaction meterKind
	list        []*meter // in order of first use
}

// table returns the meter of a table, by the name in the request, and makes it at the first call. A
// table that a request names in two ways has two meters.
func (ms *meters) table(given string) *meter {
	for _, m := range ms.list {
		if m.given == given {
			return m
		}
	}
	m := &meter{given: given, mode: ms.mode, transaction: ms.transaction}
	ms.list = append(ms.list, m)
	return m
}

func (ms *meters) results() []*Capacity {
	if !ms.mode.asked() {
		return nil
	}
	out := make([]*Capacity, len(ms.list))
	for i, m := range ms.list {
		out[i] = m.result()
	}
	return out
}
