package service

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/expr"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// compile returns the condition that all of the list hold, or nil for an empty list.
func (s *statement) compile(list ...*partiql.Expr) (*expr.Condition, error) {
	if len(list) == 0 {
		return nil, nil
	}
	all, err := s.all(list)
	if err != nil {
		return nil, err
	}
	return s.b.Condition(all)
}

// all joins at least one condition by AND.
func (s *statement) all(list []*partiql.Expr) (all expr.Part, err error) {
	for i, e := range list {
		p, err := s.condition(e)
		if err != nil {
			return p, err
		}
		if i > 0 {
			p = s.b.Operation("AND", all, p)
		}
		all = p
	}
	return all, nil
}

// condition returns a condition in the terms of package expr.
func (s *statement) condition(e *partiql.Expr) (expr.Part, error) {
	switch e.Op {
	case partiql.OpAnd, partiql.OpOr, partiql.OpNot:
		return s.operation(e, s.condition)
	case partiql.OpIs:
		return s.is(e)
	case partiql.OpCall:
		return s.call(e)
	case partiql.OpEQ, partiql.OpNE:
		if e.Args[0].IsCondition() {
			return s.truth(e, e.Args[0], e.Args[1])
		}
		if e.Args[1].IsCondition() {
			return s.truth(e, e.Args[1], e.Args[0])
		}
	}
	return s.operation(e, s.operand)
}

// operation returns an operation whose operands the function compiles.
func (s *statement) operation(e *partiql.Expr, compile func(*partiql.Expr) (expr.Part, error)) (expr.Part, error) {
	operands, err := s.parts(e.Args, compile)
	return s.b.Operation(e.Op.String(), operands...), err
}

func (s *statement) parts(args []*partiql.Expr, compile func(*partiql.Expr) (expr.Part, error)) ([]expr.Part, error) {
	list := make([]expr.Part, len(args))
	for i, arg := range args {
		var err error
		if list[i], err = compile(arg); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// truth returns the comparison of a condition with a value, which must be true or false.
func (s *statement) truth(e, condition, value *partiql.Expr) (expr.Part, error) {
	p, err := s.condition(condition)
	if err != nil {
		return p, err
	}
	if !value.IsValue() {
		return p, s.unsupportedOperator(e)
	}
	v, err := value.Evaluate(s.parameters)
	if err != nil {
		return p, err
	}
	if v.Kind() != dynamo.KindBool {
		return p, s.unsupportedOperator(e)
	}
	if v.Bool() != (e.Op == partiql.OpEQ) {
		p = s.b.Operation("NOT", p)
	}
	return p, nil
}

func (s *statement) unsupportedOperator(e *partiql.Expr) error {
	return invalid("Unsupported operator in Condition Expression. Operator: " + e.Op.String())
}

// is returns IS MISSING, or a test of a type.
func (s *statement) is(e *partiql.Expr) (expr.Part, error) {
	p, err := s.operand(e.Args[0])
	if err != nil || e.Name == "MISSING" {
		return s.b.Call("attribute_not_exists", p), err
	}
	return s.b.Call("attribute_type", p, s.b.Value(dynamo.AppendString(nil, e.Name))), nil
}

func (s *statement) call(e *partiql.Expr) (expr.Part, error) {
	operands, err := s.parts(e.Args, s.operand)
	return s.b.Call(e.Name, operands...), err
}

// operand returns a path, a value or a size.
func (s *statement) operand(e *partiql.Expr) (expr.Part, error) {
	switch {
	case e.Op == partiql.OpPath:
		return s.b.Path(steps(e.Path)...), nil
	case e.IsValue():
		v, err := e.Evaluate(s.parameters)
		return s.b.Value(v), err
	case e.Op == partiql.OpCall && !e.IsCondition():
		return s.call(e)
	}
	return expr.Part{}, s.unsupportedOperator(e)
}
