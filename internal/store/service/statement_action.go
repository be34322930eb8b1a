package service

import (
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// action returns the action of a statement that writes or checks one item: an INSERT puts if there is
// no item, an UPDATE updates if there is one, a DELETE deletes, and EXISTS checks. item and others are
// from subject.
func (s *statement) action(d *engine.TableDesc, item dynamo.Item, others []*partiql.Expr) (a *action, err error) {
	a = &action{ref: s.ref, item: item}
	a.returnOnFail = s.in.ReturnValuesOnConditionFail.V == returnAllOld
	exists := func() expr.Part { return s.b.Call("attribute_exists", s.partitionKey(d)) }
	var condition expr.Part
	if len(others) > 0 {
		if condition, err = s.all(others); err != nil {
			return nil, err
		}
	}
	switch s.Verb {
	case partiql.Insert:
		if itemTooLarge(item) {
			return nil, invalid(msgItemTooLarge)
		}
		a.kind, a.inserts = actionPut, true
		condition = s.b.Call("attribute_not_exists", s.partitionKey(d))
	case partiql.Update:
		a.kind = actionUpdate
		if a.update, err = s.update(); err != nil {
			return nil, err
		}
		if len(others) == 0 {
			condition = exists()
		} else {
			condition = s.b.Operation("AND", exists(), condition)
		}
	case partiql.Delete:
		a.kind = actionDelete
		if len(others) == 0 {
			return a, nil
		}
		condition = s.b.Operation("OR", s.b.Operation("NOT", exists()), condition)
	case partiql.Exists:
		a.kind = actionCheck
	}
	a.condition, err = s.b.Condition(condition)
	return a, err
}

// partitionKey returns the path of the first key attribute, which every item has.
func (s *statement) partitionKey(d *engine.TableDesc) expr.Part {
	return s.b.Path(expr.PathStep{Name: d.Key.Partition[0].Name, Index: -1})
}

// update returns the update of the statement's SET and REMOVE clauses.
func (s *statement) update() (*expr.Update, error) {
	changes := make([]expr.Assignment, len(s.Changes))
	for i, c := range s.Changes {
		to := &changes[i]
		to.Path, to.Section = steps(c.Path), "SET"
		var err error
		switch {
		case c.Value == nil:
			to.Section = "REMOVE"
		case isSetFunction(c.Value):
			to.Section = setFunctions[c.Value.Name]
			to.Value, err = s.setOperand(c)
		default:
			to.Value, err = s.newValue(c.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.b.Update(changes)
}

// setFunctions are the functions that change a set, with the sections of an update that do the same.
var setFunctions = map[string]string{"set_add": "ADD", "set_delete": "DELETE"}

func isSetFunction(e *partiql.Expr) bool { return e.Op == partiql.OpCall && setFunctions[e.Name] != "" }

// setOperand returns the set that set_add adds or set_delete removes. Their first argument must be the
// path that the change assigns to.
func (s *statement) setOperand(c partiql.Change) (expr.Part, error) {
	call := c.Value
	name := strings.ToUpper(call.Name)
	switch {
	case len(call.Args) != 2:
		return expr.Part{}, invalid(name + " must have exactly two arguments at " + s.Place(call.At))
	case call.Args[0].Op != partiql.OpPath || !slices.Equal(call.Args[0].Path, c.Path):
		return expr.Part{}, invalid("The first argument to " + name + " must equal the assignment value at " + s.Place(call.At))
	}
	if call.Args[1].IsValue() {
		v, err := call.Args[1].Evaluate(s.parameters)
		if err != nil || v.Kind().IsSet() {
			return s.b.Value(v), err
		}
	}
	return expr.Part{}, invalid("The second argument to " + name + " must be a value with type SET at " + s.Place(call.Args[0].At))
}

// newValue returns the right side of a SET.
func (s *statement) newValue(e *partiql.Expr) (expr.Part, error) {
	switch {
	case e.Op == partiql.OpPlus || e.Op == partiql.OpMinus:
		return s.operation(e, s.newValue)
	case e.Op == partiql.OpPath || e.IsValue():
		return s.operand(e)
	case e.Op == partiql.OpCall && !isSetFunction(e):
		operands, err := s.parts(e.Args, s.newValue)
		return s.b.Call(e.Name, operands...), err
	case e.Op == partiql.OpCall:
		return expr.Part{}, invalid("The first argument to " + strings.ToUpper(e.Name) + " must equal the assignment value at " + s.Place(e.At))
	}
	return expr.Part{}, invalid("Unsupported operator in Update Expression. Operator: " + e.Op.String())
}
