package expr

import (
	"math"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// path is a document path: the name of an attribute, then names of map members and list indices.
type path []step

// step is one element of a path. Its name is written in the expression (ref < 0, index < 0) or is
// the name of placeholder number ref (ref ≥ 0), or it is a list index (index ≥ 0). The first step
// is never an index.
type step struct {
	name  string
	ref   int32
	index int32
}

func nameStep(name string) step { return step{name: name, ref: -1, index: -1} }

func (s *step) isIndex() bool { return s.index >= 0 }

// nameIn returns the step's name; names belong to the tree's placeholders.
func (s *step) nameIn(names []string) string {
	if s.ref >= 0 {
		return names[s.ref]
	}
	return s.name
}

// maxPath is the number of elements in the longest path.
const maxPath = 32

// parseIndex returns a list index. fits is false for a number that no list index can be; the result
// is then the largest.
func parseIndex(digits string) (index int32, fits bool) {
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return math.MaxInt32, false
	}
	return int32(n), true
}

// find returns the value at the path, or nil.
func (p path) find(item dynamo.Item, names []string) dynamo.Value {
	v := item.Get(p[0].nameIn(names))
	for i := 1; i < len(p) && v != nil; i++ {
		v = p[i].in(v, names)
	}
	return v
}

// in returns the member of v that the step names, or nil.
func (s *step) in(v dynamo.Value, names []string) dynamo.Value {
	switch {
	case s.isIndex():
		if v.Kind() == dynamo.KindList {
			return v.Index(int(s.index))
		}
	case v.Kind() == dynamo.KindMap:
		return v.Map().Get(s.nameIn(names))
	}
	return nil
}

// same reports whether two paths are equal.
func (p path) same(q path, names []string) bool {
	return len(p) == len(q) && p.common(q, names) == len(p)
}

// common returns the number of leading steps that both paths share.
func (p path) common(q path, names []string) int {
	n := min(len(p), len(q))
	for i := range n {
		if p[i].index != q[i].index || !p[i].isIndex() && p[i].nameIn(names) != q[i].nameIn(names) {
			return i
		}
	}
	return n
}

// text returns the path in the form of AWS's messages: [a, [0], b].
func (p path) text(names []string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range p {
		if i > 0 {
			b.WriteString(", ")
		}
		if p[i].isIndex() {
			b.WriteString("[" + strconv.Itoa(int(p[i].index)) + "]")
		} else {
			b.WriteString(p[i].nameIn(names))
		}
	}
	b.WriteByte(']')
	return b.String()
}

// checkPaths refuses a path that contains another, and then paths that disagree on whether a
// value is a list or a map. It reports the first two.
func checkPaths(paths []path, names []string) error {
	if len(paths) < 2 {
		return nil
	}
	var conflict error
	for i, later := range paths[1:] {
		for _, earlier := range paths[:i+1] {
			n := earlier.common(later, names)
			switch {
			case n == 0: // different attributes
			case n == min(len(earlier), len(later)):
				return problemPaths("overlap", earlier.text(names), later.text(names))
			case conflict == nil && earlier[n].isIndex() != later[n].isIndex():
				conflict = problemPaths("conflict", earlier.text(names), later.text(names))
			}
		}
	}
	return conflict
}
