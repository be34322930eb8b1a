package expr

import "github.com/mayflydb/mayfly/internal/store/dynamo"

// Projection is a compiled projection expression, or AttributesToGet. It is immutable.
type Projection struct {
	selector *selector
}

// Apply appends what the projection selects of the item to dst, and returns that part: an item without attributes where
// nothing is selected. Several elements of one list come in ascending order and close together.
func (p *Projection) Apply(dst []byte, item dynamo.Item) dynamo.Item {
	at := len(dst)
	out, _ := p.selector.item(dst, item)
	return dynamo.Item(out[at:])
}

// Attributes gives the top-level attributes that the projection names, each once, in ascending order.
func (p *Projection) Attributes() []string {
	list := make([]string, len(p.selector.children))
	for i, c := range p.selector.children {
		list[i] = c.name
	}
	return list
}

// Takes reports whether the projection names the attribute, and whether it takes it whole rather than in parts.
func (p *Projection) Takes(attribute string) (named, whole bool) {
	for _, c := range p.selector.children {
		if c.name == attribute {
			return true, len(c.children) == 0
		}
	}
	return false, false
}
