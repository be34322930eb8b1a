package expr

import "github.com/mayflydb/mayfly/internal/store/dynamo"

// Projection is a compiled projection expression, or AttributesToGet. It is immutable.
type Projection struct {
	selector *selector
	columns  []column // in place of the selector: see Columns
}

// Apply appends the selected part of the item to dst and returns that part: an item without
// attributes if nothing is selected. Several elements of one list come in ascending order, without
// gaps.
func (p *Projection) Apply(dst []byte, item dynamo.Item) dynamo.Item {
	at := len(dst)
	if p.selector == nil {
		return dynamo.Item(p.applyColumns(dst, item)[at:])
	}
	out, _ := p.selector.item(dst, item)
	return dynamo.Item(out[at:])
}

// Attributes returns the top-level attributes that the projection names, each once: in ascending
// order, or in the order of Columns. The nil projection names none.
func (p *Projection) Attributes() []string {
	if p == nil {
		return nil
	}
	if p.selector == nil {
		var found nameList
		for i := range p.columns {
			found.add(p.columns[i].path[0].name)
		}
		return found.list
	}
	list := make([]string, len(p.selector.children))
	for i, c := range p.selector.children {
		list[i] = c.name
	}
	return list
}

// Takes reports whether the projection names the attribute, and whether it selects all of it. It must
// not be one of Columns.
func (p *Projection) Takes(attribute string) (named, whole bool) {
	for _, c := range p.selector.children {
		if c.name == attribute {
			return true, len(c.children) == 0
		}
	}
	return false, false
}
