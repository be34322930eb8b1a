package expr

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// check returns the error for the first bad leaf of a condition, in the order of
// docs/spec/errors.md §11: undefined names and values, paths that are too long, operand counts, equal operands, operand
// types.
func (b *binding) check(t *conditionTree) error {
	complete := b.undefinedName == nil && b.undefinedValue == nil
	if complete && t.tooDeep != nil {
		return t.tooDeep
	}
	for _, leaf := range t.leaves {
		if !complete {
			if err := b.undefined(leaf, &t.placeholders); err != nil {
				return err
			}
		}
		if err := checkCounts(leaf); err != nil {
			return err
		}
		if err := b.checkDistinct(leaf); err != nil {
			return err
		}
		if err := b.checkTypes(leaf); err != nil {
			return err
		}
	}
	return nil
}

// checkCounts checks the number of operands of the functions in n, the inner ones first, and of IN.
func checkCounts(n *node) error {
	for _, arg := range n.args {
		if err := checkCounts(arg); err != nil {
			return err
		}
	}
	switch {
	case n.op == opCall && len(n.args) != functions[n.fn].operands:
		return problemCount(n.name(), len(n.args))
	case n.op == opIn && len(n.args)-1 > maxIn:
		return problemIn(len(n.args) - 1)
	}
	return nil
}

// checkDistinct refuses an operator or function whose first operand, a path, occurs again among the
// others.
func (b *binding) checkDistinct(n *node) error {
	if len(n.args) == 0 {
		return nil
	}
	for _, arg := range n.args {
		if err := b.checkDistinct(arg); err != nil {
			return err
		}
	}
	first := n.args[0]
	for _, other := range n.args[1:] {
		if first.op == opPath && other.op == opPath && first.path.same(other.path, b.names) {
			return problemSame(n.name(), first.path.text(b.names))
		}
	}
	return nil
}

// checkTypes checks the operands whose types do not depend on the item. Inner functions come first.
func (b *binding) checkTypes(n *node) error {
	for _, arg := range n.args {
		if arg.op == opCall {
			if err := b.checkTypes(arg); err != nil {
				return err
			}
		}
	}
	switch {
	case n.op == opCall:
		return b.checkCallTypes(n)
	case n.op.isOrder():
		if err := b.checkKinds(n, scalarKinds...); err != nil {
			return err
		}
		if n.op == opBetween {
			return b.checkBounds(n.args[1], n.args[2])
		}
	}
	return nil
}

func (b *binding) checkCallTypes(n *node) error {
	switch n.fn {
	case fnExists, fnNotExists:
		if n.args[0].op != opPath {
			return problemPathNeeded.about(n.name())
		}
	case fnBeginsWith:
		return b.checkKinds(n, textKinds...)
	case fnSize:
		switch kind := b.typeOf(n.args[0]); kind {
		case dynamo.KindNumber, dynamo.KindBool, dynamo.KindNull:
			return problemType(n.name(), kind.String())
		}
	case fnType:
		return b.checkTypeName(n)
	}
	return nil
}

// checkKinds refuses an operand with a known type that is none of the kinds.
func (b *binding) checkKinds(n *node, kinds ...dynamo.Kind) error {
	for _, arg := range n.args {
		if kind := b.typeOf(arg); kind != 0 && !slices.Contains(kinds, kind) {
			return problemType(n.name(), kind.String())
		}
	}
	return nil
}

// checkTypeName checks the second operand of attribute_type: a value, of type S, that names a type.
func (b *binding) checkTypeName(n *node) error {
	switch kind := b.typeOf(n.args[1]); kind {
	case 0:
		return problemType(n.name(), "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}")
	case dynamo.KindString:
		if name := string(b.values[n.args[1].value].Bytes()); dynamo.KindOf(name) == 0 {
			return problemTypeName(name)
		}
	default:
		return problemType(n.name(), kind.String())
	}
	return nil
}

// checkBounds checks the order of BETWEEN's bounds if both are values.
func (b *binding) checkBounds(lower, upper *node) error {
	if lower.op != opValue || upper.op != opValue {
		return nil
	}
	low, high := b.values[lower.value], b.values[upper.value]
	switch {
	case low.Kind() != high.Kind():
		return problemBounds("same data type for lower and upper bounds", low, high)
	case dynamo.Compare(low, high) > 0:
		return problemBounds("upper bound to be greater than or equal to lower bound", low, high)
	}
	return nil
}
