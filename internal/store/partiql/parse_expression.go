package partiql

import (
	"strconv"
	"strings"
)

// condition reads an expression of conditions, from OR downward.
func (p *parser) condition() *Expr {
	p.enter()
	defer p.leave()
	return p.connected("OR", OpOr, func() *Expr { return p.connected("AND", OpAnd, p.negation) })
}

// connected reads operands of one connective, which groups from the left.
func (p *parser) connected(word string, op Op, operand func() *Expr) *Expr {
	left := operand()
	for p.peek().isWord(word) {
		p.infix()
		right := operand()
		if p.err == nil && (!left.IsCondition() || !right.IsCondition()) {
			p.unsupported(msgAndOr)
		}
		left = &Expr{Op: op, Args: []*Expr{left, right}, At: Span{left.At.From, right.At.To}}
	}
	return left
}

// infix takes an operator, after which something must follow.
func (p *parser) infix() token {
	t := p.next()
	if p.peek().kind == tokenEnd {
		p.malformed(badOperand)
	}
	return t
}

func (p *parser) negation() *Expr {
	if !p.peek().isWord("NOT") {
		return p.comparison()
	}
	p.enter()
	defer p.leave()
	from := p.next().from
	return p.not(from, p.negation())
}

func (p *parser) not(from int, n *Expr) *Expr {
	if p.err == nil && !n.IsCondition() {
		p.unsupported(msgNot)
	}
	return &Expr{Op: OpNot, Args: []*Expr{n}, At: Span{from, n.At.To}}
}

var comparisons = map[string]Op{"=": OpEQ, "<>": OpNE, "!=": OpNE, "<": OpLT, "<=": OpLE, ">": OpGT, ">=": OpGE}

// comparison reads an operand, and what compares it.
func (p *parser) comparison() *Expr {
	left := p.sum()
	t := p.peek()
	if op, ok := comparisons[t.text]; ok && t.kind == tokenSymbol {
		p.infix()
		right := p.sum()
		return &Expr{Op: op, Args: []*Expr{left, right}, At: Span{left.At.From, right.At.To}}
	}
	negative := t.isWord("NOT") && p.tokens[p.at+1].isWord("IN", "BETWEEN", "LIKE")
	if negative {
		p.next()
	}
	var n *Expr
	switch t := p.peek(); {
	case t.isWord("IN"):
		n = p.in(left)
	case t.isWord("BETWEEN"):
		n = p.between(left)
	case t.isWord("IS"):
		return p.is(left)
	case t.isWord("LIKE"):
		p.unsupported("Unsupported operation: Like")
		return left
	default:
		return left
	}
	if negative {
		return p.not(left.At.From, n)
	}
	return n
}

func (p *parser) in(left *Expr) *Expr {
	p.infix()
	n := &Expr{Op: OpIn, Args: []*Expr{left}}
	closing := map[string]string{"[": "]", "(": ")", "<<": ">>"}[p.peek().text]
	if p.peek().kind != tokenSymbol || closing == "" {
		p.unsupported(msgIn)
		return n
	}
	p.next()
	for !p.symbol(closing) {
		if len(n.Args) > 1 {
			p.expect(",", "comma or closing bracket")
		}
		n.Args = append(n.Args, p.sum())
		if p.err != nil {
			return n
		}
	}
	if left.Op != OpPath || len(n.Args) == 1 {
		p.unsupported(msgIn)
	}
	n.At = Span{left.At.From, p.last().to}
	return n
}

func (p *parser) between(left *Expr) *Expr {
	p.infix()
	low := p.sum()
	if !p.peek().isWord("AND") {
		p.malformed("Expected AND after BETWEEN")
		return left
	}
	p.infix()
	high := p.sum()
	return &Expr{Op: OpBetween, Args: []*Expr{left, low, high}, At: Span{left.At.From, high.At.To}}
}

// is reads IS [NOT] and a type.
func (p *parser) is(left *Expr) *Expr {
	p.infix()
	negative := p.word("NOT")
	t := p.next()
	name := strings.ToUpper(t.text)
	if second := map[string]string{"DOUBLE": "PRECISION", "CHARACTER": "VARYING"}[name]; second != "" && p.word(second) {
		name += " " + second
	}
	kind, known := types()[name]
	switch {
	case t.kind != tokenWord || !known:
		p.malformed(badType)
	case left.Op != OpPath && !left.IsValue():
		p.unsupported(msgIs)
	case kind == "":
		p.unsupported("Unsupported data type for IS operator: " + name +
			". Supported data types are [MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST]")
	}
	n := &Expr{Op: OpIs, Name: kind, Args: []*Expr{left}, At: Span{left.At.From, p.last().to}}
	if negative {
		return p.not(left.At.From, n)
	}
	return n
}

// sum reads operands joined by + and -, which group from the left.
func (p *parser) sum() *Expr {
	left := p.operand()
	for p.err == nil {
		op := OpPlus
		switch t := p.peek(); {
		case t.isSymbol("+"):
		case t.isSymbol("-"):
			op = OpMinus
		case t.isSymbol("*"), t.isSymbol("/"), t.isSymbol("%"), t.isSymbol("||"):
			p.infix()
			p.unsupportedAt("Unsupported token in expression: "+t.text, span(t))
			return left
		default:
			return left
		}
		t := p.infix()
		if !p.inSet {
			p.unsupportedAt("Unsupported operator in Condition Expression. Operator: "+t.text, span(t))
		}
		right := p.operand()
		left = &Expr{Op: op, Args: []*Expr{left, right}, At: Span{left.At.From, right.At.To}}
	}
	return left
}

// operand reads a value, a path, a call or a group.
func (p *parser) operand() *Expr {
	t := p.peek()
	called := t.kind == tokenWord && p.tokens[p.at+1].isSymbol("(")
	switch {
	case called && (!t.isKeyword() || t.isWord("SIZE", "EXISTS", "COUNT", "SUM", "AVG", "MIN", "MAX", "UPPER", "LOWER", "TRIM")):
		return p.call()
	case t.isName():
		from := t.from
		to := p.path()
		return &Expr{Op: OpPath, Path: to, At: Span{from, p.last().to}}
	case t.isSymbol("(") && p.inSet:
		p.next()
		n := p.group(p.sum)
		return n
	case t.isSymbol("("):
		p.next()
		return p.group(p.condition)
	}
	return p.value("root")
}

// group reads an expression and the closing parenthesis. The opening one has been taken.
func (p *parser) group(inner func() *Expr) *Expr {
	from := p.last().from
	p.enter()
	defer p.leave()
	n := inner()
	p.expect(")", "RIGHT_PAREN")
	n.At = Span{from, p.last().to}
	return n
}

// updateFunctions are the functions of SET. size is no condition, and stands for a number.
var updateFunctions = map[string]bool{"list_append": true, "set_add": true, "set_delete": true}

// call reads a function with its arguments.
func (p *parser) call() *Expr {
	t := p.next()
	n := &Expr{Op: OpCall, Name: strings.ToLower(t.text), At: span(t)}
	known := conditionFunctions[n.Name] || n.Name == "size"
	if p.inSet {
		known = updateFunctions[n.Name]
	}
	if !known {
		p.unsupportedAt("Unrecognized function: "+n.Name, n.At)
		return n
	}
	p.enter()
	defer p.leave()
	p.next() // the parenthesis
	for !p.symbol(")") {
		if len(n.Args) > 0 {
			p.expect(",", "comma or closing parenthesis")
		}
		n.Args = append(n.Args, p.sum())
		if p.err != nil {
			return n
		}
	}
	return n
}

// operandFault refuses the token that stands where an operand should begin.
func (p *parser) operandFault() {
	switch t := p.peek(); {
	case t.kind == tokenWord && operatorWords()[strings.ToLower(t.text)]:
		p.malformed(badOperator)
	case t.isKeyword():
		p.malformed(badKeyword)
	case t.kind == tokenSymbol && comparisons[t.text] != 0:
		p.malformed(badOperator)
	default:
		p.malformed(badTerm)
	}
}

// pathHere reads a path that must be next.
func (p *parser) pathHere() Path {
	if !p.peek().isName() {
		p.operandFault()
	}
	return p.path()
}

// path reads a path that begins with the next token.
func (p *parser) path() Path {
	to := Path{{Name: p.next().text, Index: -1}}
	if to[0].Name == "" {
		p.unsupported(msgEmptyStep)
	}
	for p.err == nil {
		switch {
		case p.symbol("."):
			t := p.next()
			switch {
			case t.isSymbol("*"):
				p.unsupported(msgUnpivot)
			case !t.isName():
				p.malformed(badDot)
			case t.text == "":
				p.unsupported(msgEmptyStep)
			}
			to = append(to, Step{Name: t.text, Index: -1})
		case p.symbol("["):
			to = append(to, p.bracket())
			p.expect("]", "RIGHT_BRACKET")
		default:
			return to
		}
	}
	return to
}

// maxIndex is the greatest index of a list. Larger ones in a statement are beyond every end too.
const maxIndex = 1<<31 - 1

// bracket reads a list index, or the name of a map member as a string.
func (p *parser) bracket() Step {
	t := p.next()
	switch {
	case t.isSymbol("*"):
		p.unsupported(msgWildcard)
	case t.isSymbol("-") && p.peek().kind == tokenNumber:
		p.unsupported("List index is not within the allowable range; index: [-" + p.peek().text + "]")
	case t.kind == tokenString && t.text != "":
		return Step{Name: t.text, Index: -1}
	case t.kind == tokenString:
		p.unsupported(msgEmptyStep)
	case t.kind == tokenNumber:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil && !strings.ContainsAny(t.text, ".eE") {
			n, err = maxIndex, nil
		}
		if err != nil {
			p.unsupportedAt("Unexpected path component", span(t))
		}
		return Step{Index: int(min(n, maxIndex))}
	default:
		p.unsupportedAt("Unexpected path component", span(t))
	}
	return Step{Name: t.text, Index: -1}
}
