package expr

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// selector is the tree of some document paths that do not overlap: which parts of a document they name. At the root the
// children are names of attributes; a selector without children takes its part whole.
type selector struct {
	name     string
	index    int32 // of an element of a list; -1: name counts
	children []*selector
}

// newSelector makes the tree of paths whose placeholders stand for names. Where two paths disagree on whether something
// is a list or a map, the document decides which one finds something.
func newSelector(paths []path, names []string) *selector {
	root := &selector{index: -1}
	for _, p := range paths {
		at := root
		for i := range p {
			at = at.child(p[i].index, &p[i], names)
		}
	}
	root.sort()
	return root
}

// child gives the child for a step, made if there is none yet.
func (s *selector) child(index int32, st *step, names []string) *selector {
	name := ""
	if index < 0 {
		name = st.nameIn(names)
	}
	for _, c := range s.children {
		if c.index == index && c.name == name {
			return c
		}
	}
	c := &selector{name: name, index: index}
	s.children = append(s.children, c)
	return c
}

// sort brings names and indices into the order in which items and lists hold them.
func (s *selector) sort() {
	slices.SortFunc(s.children, func(a, b *selector) int {
		return cmp.Or(cmp.Compare(a.index, b.index), strings.Compare(a.name, b.name))
	})
	for _, c := range s.children {
		c.sort()
	}
}

// builders holds builders between uses: one is needed for every map that is put together.
var builders = sync.Pool{New: func() any { return new(dynamo.Builder) }}

// item appends the selected part of an item to dst and reports whether there is any. It goes through the attributes and
// the selector side by side and stops at the last name that it looks for.
func (s *selector) item(dst []byte, item dynamo.Item) ([]byte, bool) {
	b := builders.Get().(*dynamo.Builder)
	defer builders.Put(b)
	b.Reset()
	rest, found := s.names(), false
	for name, v := range item.All() {
		for len(rest) > 0 && rest[0].name < string(name) {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			break
		}
		if rest[0].name == string(name) {
			if part := rest[0].value(v); part != nil {
				b.SetBytes(name, part)
				found = true
			}
		}
	}
	return b.AppendItem(dst), found
}

// names gives the children that are names: the indices stand behind them, for -1 is less than every index.
func (s *selector) names() []*selector {
	n := 0
	for n < len(s.children) && s.children[n].index < 0 {
		n++
	}
	return s.children[:n]
}

// value gives the selected part of a value; nil where there is none.
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

// list gives the selected elements of a list, in ascending order and close together.
func (s *selector) list(v dynamo.Value) dynamo.Value {
	var parts []dynamo.Value
	rest, i := s.children[len(s.names()):], int32(0)
	for e := range v.Elements() {
		if len(rest) == 0 {
			break
		}
		if rest[0].index == i {
			if part := rest[0].value(e); part != nil {
				parts = append(parts, part)
			}
			rest = rest[1:]
		}
		i++
	}
	if parts == nil {
		return nil
	}
	return dynamo.AppendList(nil, parts)
}
