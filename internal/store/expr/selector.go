package expr

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// selector is the tree of document paths that do not overlap: the parts of a document that they
// name. At the root, the children are names of attributes. A selector without children takes its
// part whole.
type selector struct {
	name     string
	index    int32 // the index of a list element; -1: name counts
	children []*selector
}

// newSelector returns the tree of paths; names are the names of the placeholders. If two paths
// disagree on whether a value is a list or a map, the document decides which one finds something.
func newSelector(paths []path, names []string) *selector {
	root := &selector{index: -1}
	for _, p := range paths {
		at := root
		for i := range p {
			at = at.child(&p[i], names)
		}
	}
	root.sort()
	return root
}

// child returns the child for a step, and adds it if it is missing.
func (s *selector) child(st *step, names []string) *selector {
	name := ""
	if !st.isIndex() {
		name = st.nameIn(names)
	}
	for _, c := range s.children {
		if c.index == st.index && c.name == name {
			return c
		}
	}
	c := &selector{name: name, index: st.index}
	s.children = append(s.children, c)
	return c
}

// sort orders names and indices as items and lists do.
func (s *selector) sort() {
	slices.SortFunc(s.children, func(a, b *selector) int {
		return cmp.Or(cmp.Compare(a.index, b.index), strings.Compare(a.name, b.name))
	})
	for _, c := range s.children {
		c.sort()
	}
}

// builders holds builders between uses; each map under construction needs one.
var builders = sync.Pool{New: func() any { return new(dynamo.Builder) }}

// item appends the selected part of an item to dst and reports whether there is any. It walks the
// attributes and the selector in parallel, and stops after the last name.
func (s *selector) item(dst []byte, item dynamo.Item) ([]byte, bool) {
	b := builders.Get().(*dynamo.Builder)
	defer builders.Put(b)
	b.Reset()
	unread, found := s.names(), false
	for name, v := range item.All() {
		for len(unread) > 0 && unread[0].name < string(name) {
			unread = unread[1:]
		}
		if len(unread) == 0 {
			break
		}
		if unread[0].name == string(name) {
			if part := unread[0].value(v); part != nil {
				b.SetBytes(name, part)
				found = true
			}
		}
	}
	return b.AppendItem(dst), found
}

// names returns the children that are names. They stand before the indices, since -1 is less than
// every index.
func (s *selector) names() []*selector {
	n := 0
	for n < len(s.children) && s.children[n].index < 0 {
		n++
	}
	return s.children[:n]
}

// value returns the selected part of a value, or nil.
func (s *selector) value(v dynamo.Value) dynamo.Value {
	switch {
	case len(s.children) == 0:
		return v
	case v.Kind() == dynamo.KindMap:
		if part, found := s.item(nil, v.Map()); found {
			return dynamo.AppendMap(nil, part)
		}
	case v.Kind() == dynamo.KindList:
		return s.list(v)
	}
	return nil
}

// list returns the selected elements of a list, in ascending order and without gaps.
func (s *selector) list(v dynamo.Value) dynamo.Value {
	var parts []dynamo.Value
	unread, i := s.children[len(s.names()):], int32(0)
	for e := range v.Elements() {
		if len(unread) == 0 {
			break
		}
		if unread[0].index == i {
			if part := unread[0].value(e); part != nil {
				parts = append(parts, part)
			}
			unread = unread[1:]
		}
		i++
	}
	if parts == nil {
		return nil
	}
	return dynamo.AppendList(nil, parts)
}
