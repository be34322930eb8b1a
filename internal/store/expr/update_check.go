package expr

import (
	"cmp"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// check returns the error for an update expression with bound placeholders, in the order of
// docs/spec/errors.md §11.
func (u *Update) check(t *updateTree) error {
	if err := cmp.Or(u.undefinedName, u.undefinedValue, t.tooDeep, checkPaths(t.paths, u.names)); err != nil {
		return err
	}
	if err := u.checkSets(t); err != nil {
		return err
	}
	for i := range t.actions {
		if v := t.actions[i].value; v != nil {
			if err := u.checkFunctions(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// operandNames are the types that ADD and DELETE refuse, by their names in messages. ADD takes
// numbers.
var operandNames = map[dynamo.Kind]string{
	dynamo.KindString: "STRING", dynamo.KindNumber: "NUMBER", dynamo.KindBinary: "BINARY", dynamo.KindNull: "NULL",
	dynamo.KindBool: "BOOLEAN", dynamo.KindList: "LIST", dynamo.KindMap: "MAP",
}

// checkSets checks the operands of ADD and DELETE.
func (u *Update) checkSets(t *updateTree) error {
	for i := range t.actions {
		a := &t.actions[i]
		if a.section != sectionAdd && a.section != sectionDelete {
			continue
		}
		kind := u.typeOf(a.value)
		if name, refused := operandNames[kind]; refused && (a.section != sectionAdd || kind != dynamo.KindNumber) {
			return problemOperand(a.section.String(), name)
		}
	}
	return nil
}

// checkFunctions checks the operands of the functions and sums in n, inner ones first.
func (u *Update) checkFunctions(n *node) error {
	for _, arg := range n.args {
		if err := u.checkFunctions(arg); err != nil {
			return err
		}
	}
	switch {
	case n.op == opPlus || n.op == opMinus:
		return u.checkKinds(n, dynamo.KindNumber)
	case n.op != opCall:
		return nil
	case len(n.args) != functions[n.fn].operands:
		return problemCount(n.name(), len(n.args))
	case n.fn == fnListAppend:
		return u.checkKinds(n, dynamo.KindList)
	case n.args[0].op != opPath:
		return problemPathNeeded.about(n.name())
	}
	return nil
}
