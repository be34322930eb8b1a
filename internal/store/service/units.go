package service

import "github.com/mayflydb/mayfly/internal/store/dynamo"

// What each call consumes is counted, whether or not it asks for it, for the operator. A put or delete of an item that nobody had to read is
// counted by the size that is known: the new item's, or one unit. That is so in a table without TTL, stream and indexes, for calls without
// condition that do not ask what was there or what they consumed.

// Consumed is what has been consumed of a table, with its local indexes, or of one of its global indexes since the process began, in units.
type Consumed struct {
	Table, Index string // Index is empty for the table
	Read, Write  float64
}

// Consumed tells of every table and every global index that there is. It is in no order.
func (s *Service) Consumed() (out []Consumed) {
	for _, t := range s.engine.Tables() {
		d := t.Desc()
		if d.Namespace != namespace {
			continue
		}
		out = append(out, Consumed{Table: d.Name, Read: d.Units.Read(), Write: d.Units.Written()})
		for i := range d.Indexes {
			if ix := &d.Indexes[i]; ix.Global {
				out = append(out, Consumed{d.Name, ix.Name, ix.Units.Read(), ix.Units.Written()})
			}
		}
	}
	return out
}

// countWrite counts an applied write. A local index's units are the table's, as Amazon has it.
func (a *action) countWrite(factor float64) {
	units := factor * tableWriteUnits(&a.write)
	for i := range a.write.Indexes {
		if x := &a.write.Indexes[i]; x.Index.Global {
			x.Index.Units.AddWritten(indexWriteUnits(x))
		} else {
			units += indexWriteUnits(x)
		}
	}
	a.desc.Units.AddWritten(units)
}

// countRefused counts writes that were refused together because of a condition: each costs what its item would have, but nothing in the indexes.
// Refusals of other kinds cost nothing.
func countRefused(actions []*action, factor float64) {
	failed := false
	for _, a := range actions {
		failed = failed || errorCode(a.write.Err) == dynamo.CodeConditionalCheckFailed
	}
	if !failed {
		return
	}
	for _, a := range actions {
		a.desc.Units.AddWritten(factor * writeUnits(max(a.write.OldBytes, a.write.New.Size())))
	}
}

// countRead counts what a page has consumed: what was fetched from the table by way of an index is the table's.
func (p *page) countRead(units float64) {
	of := p.desc.Units
	if p.index != nil && p.index.Global {
		of = p.index.Units
	}
	of.AddRead(units)
	if p.fetched > 0 {
		p.desc.Units.AddRead(p.fetched)
	}
}
