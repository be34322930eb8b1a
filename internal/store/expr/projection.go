package expr

import "github.com/mayflydb/mayfly/internal/store/dynamo"

// Projection is a compiled projection expression, or AttributesToGet. It is immutable.
type Projection struct {
	selector *selector
}

// Apply appends the selected part of the item to dst and returns that part: an item without
// attributes if nothing is selected. Several elements of one list come in ascending order, without
// gaps.
func (p *Projection) Apply(dst []byte, item dynamo.Item) dynamo.Item {
	at := len(dst)
	out, _ := p.selector.item(dst, item)
	return dynamo.Item(out[at:])
}

// Attributes returns the top-level attributes that the projection names, each once, in ascending
// order. The nil projection names none.
func (p *Projection) Attributes() []string {
	if p == nil {
		return nil
	}
	list := make([]string, len(p.selector.children))
	for i, c := range p.selector.children {
		list[i] = c.name
	}
	return list
}

// Takes reports whether the projection names the attribute, and whether it selects all of it.
func (p *Projection) Takes(attribute string) (named, whole bool) {
	for _, c := range p.selector.children {
		if c.name == attribute {
			return true, len(c.children) == 0
		}
	}
	return false, false
}
