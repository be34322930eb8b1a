package expr

import (
	"cmp"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// rewrite returns the item with the edits made. Their paths do not overlap, and the parent of each
// exists.
func (u *Update) rewrite(item dynamo.Item, edits []edit) dynamo.Item {
	return dynamo.Item(u.rewriteItem(nil, item, edits, 0))
}

// rewriteItem appends an item, or the contents of a map, with the edits made; depth is the number
// of steps in their paths that lead to it. It copies members without edits as bytes.
func (u *Update) rewriteItem(dst []byte, item dynamo.Item, edits []edit, depth int) []byte {
	b := builders.Get().(*dynamo.Builder)
	defer builders.Put(b)
	b.Reset()
	name := func(e edit) string { return e.path[depth].nameIn(u.names) }
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(name(a), name(b)) })
	for have, v := range item.All() {
		for len(edits) > 0 && name(edits[0]) < string(have) {
			b.Set(name(edits[0]), edits[0].value) // a new member: its path ends here
			edits = edits[1:]
		}
		n := 0 // edits of this member
		for n < len(edits) && name(edits[n]) == string(have) {
			n++
		}
		b.SetBytes(have, u.rewriteValue(v, edits[:n], depth+1))
		edits = edits[n:]
	}
	for _, e := range edits {
		b.Set(name(e), e.value)
	}
	return b.AppendItem(dst)
}

// rewriteValue returns a value with the edits made whose paths lead to it in depth steps, or nil if
// it is removed.
func (u *Update) rewriteValue(v dynamo.Value, edits []edit, depth int) dynamo.Value {
	switch {
	case len(edits) == 0:
		return v
	case len(edits[0].path) == depth:
		return edits[0].value
	case edits[0].path[depth].isIndex():
		return u.rewriteList(v, edits, depth)
	default:
		return dynamo.AppendMap(nil, u.rewriteItem(nil, v.Map(), edits, depth))
	}
}

// rewriteList returns a list with the edits made. All indices are positions in the old list.
// Elements beyond its end are appended in the order of their indices.
func (u *Update) rewriteList(v dynamo.Value, edits []edit, depth int) dynamo.Value {
	index := func(e edit) int { return int(e.path[depth].index) }
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(index(a), index(b)) })
	elems := make([]dynamo.Value, 0, v.Len()+len(edits))
	put := func(e dynamo.Value) {
		if e != nil {
			elems = append(elems, e)
		}
	}
	i := 0
	for e := range v.Elements() {
		n := 0 // edits of this element
		for n < len(edits) && index(edits[n]) == i {
			n++
		}
		put(u.rewriteValue(e, edits[:n], depth+1))
		edits = edits[n:]
		i++
	}
	for _, e := range edits {
		put(e.value)
	}
	return dynamo.AppendList(nil, elems)
}
