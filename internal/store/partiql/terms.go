package partiql

// Conjuncts returns the conditions that AND joins in e: e itself if it is no AND, and none if it is nil.
func (e *Expr) Conjuncts() []*Expr { return e.joined(OpAnd) }

// Disjuncts returns the conditions that OR joins in e: e itself if it is no OR, and none if it is nil.
func (e *Expr) Disjuncts() []*Expr { return e.joined(OpOr) }

func (e *Expr) joined(by Op) []*Expr {
	switch {
	case e == nil:
		return nil
	case e.Op == by:
		return append(e.Args[0].joined(by), e.Args[1].joined(by)...)
	}
	return []*Expr{e}
}

// Attribute returns the name of the attribute that the expression is, or "".
func (e *Expr) Attribute() string {
	if e.Op != OpPath || len(e.Path) > 1 {
		return ""
	}
	return e.Path.Attribute()
}

// Equality returns the attribute and the value that a condition compares for equality, or "".
func (e *Expr) Equality() (attribute string, value *Expr) {
	if e.Op != OpEQ {
		return "", nil
	}
	left, right := e.Args[0], e.Args[1]
	if left.IsValue() {
		left, right = right, left
	}
	if !right.IsValue() {
		return "", nil
	}
	return left.Attribute(), right
}
