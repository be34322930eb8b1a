package expr

import (
	"bytes"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Update is a compiled update expression, or AttributeUpdates. It is immutable; Apply may run more
// than once.
type Update struct {
	actions []action
	binding
	// made by AttributeUpdates: the error for a type mismatch has another text
	legacy bool
}

// UpdatePath is a document path that an update writes.
type UpdatePath struct {
	Attribute string // top level
	Nested    bool   // the path continues inside the attribute
}

// Paths returns the paths that the update writes, in the order of the expression.
func (u *Update) Paths() []UpdatePath {
	list := make([]UpdatePath, len(u.actions))
	for i := range u.actions {
		p := u.actions[i].path
		list[i] = UpdatePath{p[0].nameIn(u.names), len(p) > 1}
	}
	return list
}

// Attributes returns the top-level attributes that the update writes or reads, each once, in order of
// first appearance. The nil update names none.
func (u *Update) Attributes() []string {
	if u == nil {
		return nil
	}
	var found nameList
	add := func(p path) { found.add(p[0].nameIn(u.names)) }
	for i := range u.actions {
		add(u.actions[i].path)
		u.actions[i].value.eachPath(add)
	}
	return found.list
}

// Texts of the errors of Apply (docs/spec/errors.md §11, §9).
const (
	msgOperandType = "An operand in the update expression has an incorrect data type"
	msgPath        = "The document path provided in the update expression is invalid for update"
	msgMissing     = "The provided expression refers to an attribute that does not exist in the item"
	msgMismatch    = "Type mismatch for attribute to update"
	msgDepth       = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
)

// edit is the effect of an action on one item: it stores the value at the path, or with nil removes
// it.
type edit struct {
	path  path
	value dynamo.Value
}

// Apply returns the item after the update, in its own memory. Every operand is read from old,
// independent of the order of the actions. If there is no item (old is nil), the result begins as
// key; an update that only removes returns nil then. Attributes without changes are copied unread.
//
// Errors are *dynamo.Error. The caller checks the size of the result and its index keys.
func (u *Update) Apply(old, key dynamo.Item) (dynamo.Item, error) {
	if old == nil {
		if u.onlyRemoves() && len(u.actions) > 0 {
			return nil, nil
		}
		old = key
	}
	var buf [4]edit
	edits, err := u.edits(buf[:0], old)
	if err != nil {
		return nil, err
	}
	if len(edits) == 1 && len(edits[0].path) == 1 {
		return old.With(edits[0].path[0].nameIn(u.names), edits[0].value), nil
	}
	return u.rewrite(old, edits), nil
}

// onlyRemoves reports whether no action of the update can create an attribute.
func (u *Update) onlyRemoves() bool {
	return !slices.ContainsFunc(u.actions, func(a action) bool { return a.section == sectionSet || a.section == sectionAdd })
}

// edits returns the update's effects on the item. Errors come in AWS's order: the right sides of
// all assignments, then path by path.
func (u *Update) edits(list []edit, item dynamo.Item) ([]edit, error) {
	e := evaluation{&u.binding, item}
	var buf [4]dynamo.Value
	sets := buf[:0]
	for i := range u.actions {
		if u.actions[i].section == sectionSet {
			v, err := e.result(u.actions[i].value)
			if err != nil {
				return nil, err
			}
			sets = append(sets, v)
		}
	}
	for i := range u.actions {
		a := &u.actions[i]
		if !e.canUpdate(a.path) {
			return nil, dynamo.Invalid(msgPath)
		}
		var (
			v    dynamo.Value
			err  error
			keep bool
		)
		switch a.section {
		case sectionSet:
			v, sets = sets[0], sets[1:]
		case sectionAdd:
			v, err = u.add(a.path.find(item, u.names), u.values[a.value.value])
		case sectionDelete:
			v, keep, err = u.subtract(a.path.find(item, u.names), u.values[a.value.value])
		}
		if err == nil && len(a.path) > 1 && v != nil && len(a.path)-1+v.Depth() > dynamo.MaxDepth {
			err = dynamo.Invalid(msgDepth)
		}
		if err != nil {
			return nil, err
		}
		if !keep {
			list = append(list, edit{a.path, v})
		}
	}
	return list, nil
}

// canUpdate reports whether the parent of the path's last step exists and is of the right kind.
func (e evaluation) canUpdate(p path) bool {
	if len(p) == 1 {
		return true
	}
	parent := p[:len(p)-1].find(e.item, e.names)
	if p[len(p)-1].isIndex() {
		return parent.Kind() == dynamo.KindList
	}
	return parent.Kind() == dynamo.KindMap
}

// result returns the value of the right side of an assignment.
func (e evaluation) result(n *node) (dynamo.Value, error) {
	switch n.op {
	case opPath:
		if v := n.path.find(e.item, e.names); v != nil {
			return v, nil
		}
		return nil, dynamo.Invalid(msgMissing)
	case opValue:
		return e.values[n.value], nil
	case opCall:
		if n.fn == fnListAppend {
			return e.listAppend(n)
		}
		if v := n.args[0].path.find(e.item, e.names); v != nil {
			return v, nil
		}
		return e.result(n.args[1])
	default:
		return e.sum(n)
	}
}

// both returns the values of the two operands of n, which must be of this kind.
func (e evaluation) both(n *node, kind dynamo.Kind) (a, b dynamo.Value, err error) {
	var values [2]dynamo.Value
	for i, arg := range n.args {
		if values[i], err = e.result(arg); err != nil {
			return nil, nil, err
		}
		if values[i].Kind() != kind {
			return nil, nil, dynamo.Invalid(msgOperandType)
		}
	}
	return values[0], values[1], nil
}

func (e evaluation) sum(n *node) (dynamo.Value, error) {
	a, b, err := e.both(n, dynamo.KindNumber)
	if err != nil {
		return nil, err
	}
	if n.op == opMinus {
		return arithmetic(dynamo.SubNumbers, a, b)
	}
	return arithmetic(dynamo.AddNumbers, a, b)
}

func arithmetic(do func(dst []byte, a, b dynamo.Number) ([]byte, error), a, b dynamo.Value) (dynamo.Value, error) {
	var buf [32]byte
	number, err := do(buf[:0], a.Number(), b.Number())
	if err != nil {
		return nil, err
	}
	return dynamo.AppendN(nil, number), nil
}

func (e evaluation) listAppend(n *node) (dynamo.Value, error) {
	a, b, err := e.both(n, dynamo.KindList)
	if err != nil {
		return nil, err
	}
	return concat(a, b), nil
}

// concat returns a list of the elements of a, then those in b.
func concat(a, b dynamo.Value) dynamo.Value {
	elems := slices.Grow([]dynamo.Value(nil), a.Len()+b.Len())
	elems = slices.AppendSeq(elems, a.Elements())
	elems = slices.AppendSeq(elems, b.Elements())
	return dynamo.AppendList(nil, elems)
}

// mismatch returns the error of ADD and DELETE for an attribute of another type than the operand.
func (u *Update) mismatch() error {
	if u.legacy {
		return dynamo.Invalid(msgMismatch)
	}
	return dynamo.Invalid(msgOperandType)
}

// add returns the result of ADD for the present value, which may be nil.
func (u *Update) add(have, operand dynamo.Value) (dynamo.Value, error) {
	switch {
	case have == nil:
		return operand, nil
	case have.Kind() != operand.Kind():
		return nil, u.mismatch()
	case operand.Kind() == dynamo.KindNumber:
		return arithmetic(dynamo.AddNumbers, have, operand)
	case operand.Kind() == dynamo.KindList:
		return concat(have, operand), nil
	}
	elems := slices.Grow([][]byte(nil), have.Len()+operand.Len())
	elems = slices.AppendSeq(elems, have.Payloads())
	elems = slices.AppendSeq(elems, operand.Payloads())
	return dynamo.AppendSet(nil, have.Kind(), elems), nil
}

// subtract returns the present set without the elements in operand, or nil if none is left. keep
// reports that there is nothing to do.
func (u *Update) subtract(have, operand dynamo.Value) (remainder dynamo.Value, keep bool, err error) {
	switch {
	case have == nil:
		return nil, true, nil
	case have.Kind() != operand.Kind():
		return nil, false, u.mismatch()
	}
	elems := difference(slices.Collect(have.Payloads()), slices.Collect(operand.Payloads()))
	if len(elems) == 0 {
		return nil, false, nil
	}
	return dynamo.AppendSet(nil, have.Kind(), elems), false, nil
}

// difference returns a without the elements of b, in place of a. Both ascend.
func difference(a, b [][]byte) [][]byte {
	return slices.DeleteFunc(a, func(e []byte) bool {
		for len(b) > 0 && bytes.Compare(b[0], e) < 0 {
			b = b[1:]
		}
		return len(b) > 0 && bytes.Equal(b[0], e)
	})
}

// UpdatedOld returns the attributes for ReturnValues UPDATED_OLD: the parts of the old item at the
// paths that the update writes, or nil if there are none.
func (u *Update) UpdatedOld(old dynamo.Item) dynamo.Item {
	return u.parts(old, func(section) bool { return true })
}

// UpdatedNew returns the attributes for ReturnValues UPDATED_NEW: the parts of the updated item at
// the paths that the update has written and not removed, or nil if there are none. An element
// appended to a list is omitted if its index was beyond the end.
func (u *Update) UpdatedNew(updated dynamo.Item) dynamo.Item {
	return u.parts(updated, func(s section) bool { return s != sectionRemove })
}

func (u *Update) parts(item dynamo.Item, written func(section) bool) dynamo.Item {
	var paths []path
	for i := range u.actions {
		if written(u.actions[i].section) {
			paths = append(paths, u.actions[i].path)
		}
	}
	part, found := newSelector(paths, u.names).item(nil, item)
	if !found {
		return nil
	}
	return part
}
