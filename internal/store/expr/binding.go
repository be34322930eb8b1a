package expr

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// binding holds the names and values of a tree's placeholders in one request, by their numbers in
// the tree.
type binding struct {
	names  []string
	values []dynamo.Value

	// The first undefined placeholder of each sort, in order of appearance.
	undefinedName, undefinedValue error

	nameBuf  [4]string
	valueBuf [4]dynamo.Value
}

// bind looks the placeholders up, and records them as used. An undefined one becomes "" or nil, and
// the tree's check refuses it.
func (s *Session) bind(b *binding, p *placeholders) {
	s.bound = append(s.bound, p)
	b.names = slices.Grow(b.nameBuf[:0], len(p.names))
	for _, key := range p.names {
		name, ok := s.names[key]
		if !ok && b.undefinedName == nil {
			b.undefinedName = problemName.about(key)
		}
		b.names = append(b.names, name)
	}
	b.values = slices.Grow(b.valueBuf[:0], len(p.values))
	for _, key := range p.values {
		v, ok := s.values[key]
		if !ok && b.undefinedValue == nil {
			b.undefinedValue = problemValue.about(key)
		}
		b.values = append(b.values, v)
	}
}

// typeOf returns the type of a value, and N for size. It returns 0 for every other operand, even
// for a sum or list_append, whose types do not depend on the item either.
func (b *binding) typeOf(n *node) dynamo.Kind {
	switch {
	case n.op == opValue:
		return b.values[n.value].Kind()
	case n.op == opCall && n.fn == fnSize:
		return dynamo.KindNumber
	}
	return 0
}

// undefined returns the error for the first undefined placeholder in n and its operands, or nil.
func (b *binding) undefined(n *node, p *placeholders) error {
	switch n.op {
	case opPath:
		for i := range n.path {
			if ref := n.path[i].ref; ref >= 0 && b.names[ref] == "" {
				return problemName.about(p.names[ref])
			}
		}
	case opValue:
		if b.values[n.value] == nil {
			return problemValue.about(p.values[n.value])
		}
	}
	for _, arg := range n.args {
		if err := b.undefined(arg, p); err != nil {
			return err
		}
	}
	return nil
}
