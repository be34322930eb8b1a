package service

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// The units of each call are counted for the operator, whether or not the call asks for them. A put
// or delete that did not read the old item is counted by the known size: the new item's, or one
// unit. That happens in a table without TTL, stream and indexes, for calls without condition that
// ask neither for the old item nor for the units.

// Consumed is the units consumed since the process began, of a table with its local indexes, or of
// one global index.
type Consumed struct {
	Table, Index string // Index is empty for the table
	Read, Write  float64
	// calls refused by throttling
	ThrottledReads, ThrottledWrites int64
}

// Consumed returns the units of every table and every global index, in no order.
func (s *Service) Consumed() (out []Consumed) {
	for _, t := range s.engine.Tables() {
		d := t.Desc()
		if d.Namespace != namespace {
			continue
		}
		out = append(out, consumedOf(d.Name, "", d.Units))
		for i := range d.Indexes {
			if ix := &d.Indexes[i]; ix.Global {
				out = append(out, consumedOf(d.Name, ix.Name, ix.Units))
			}
		}
	}
	return out
}

func consumedOf(table, index string, u *engine.Units) Consumed {
	c := Consumed{Table: table, Index: index, Read: u.Read(), Write: u.Written()}
	c.ThrottledReads, c.ThrottledWrites = u.Throttled()
	return c
}

// countWrite counts an applied write. A local index's units are the table's, as at AWS.
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

// countRefused counts writes that were refused together. If a condition was the reason, each costs as
// much as an applied write of its item, but nothing in the indexes. Other refusals cost nothing; those
// of strained indexes count as throttled.
func countRefused(actions []*action, factor float64) {
	failed := false
	for _, a := range actions {
		code := errorCode(a.write.Err)
		a.countStrained()
		failed = failed || code == dynamo.CodeConditionalCheckFailed || code == dynamo.CodeDuplicateItem
	}
	if !failed {
		return
	}
	for _, a := range actions {
		a.desc.Units.AddWritten(factor * writeUnits(max(a.write.OldBytes, a.write.New.Size())))
	}
}

// countRead counts the units of a page. Items fetched by way of an index count for the table.
func (p *page) countRead(units float64) {
	counter := p.desc.Units
	if p.index != nil && p.index.Global {
		counter = p.index.Units
	}
	counter.AddRead(units)
	if p.fetched > 0 {
		p.desc.Units.AddRead(p.fetched)
	}
}
