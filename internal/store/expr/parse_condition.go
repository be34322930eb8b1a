package expr

// The binding powers of the operators, weakest first. Comparisons do not associate.
const (
	powerOr = iota + 1
	powerAnd
	powerNot
	powerCompare
)

var conditionKeywords = []string{"AND", "OR", "NOT", "BETWEEN", "IN"}

// parseCondition parses a condition, filter or key condition expression. It is a Pratt parser,
// which distinguishes operands from conditions after it has read them.
func parseCondition(text string) (*conditionTree, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	p.article, p.keywords = "a condition", conditionKeywords
	root, err := p.parseExpression(powerOr)
	if err == nil {
		err = p.mustBeCondition(root)
	}
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, err
	}
	p.checkAlone(root)
	if err := p.worst(); err != nil {
		return nil, err
	}
	t := &conditionTree{placeholders: p.placeholders, root: root}
	t.collect(root)
	return t, nil
}

// parseExpression reads an operand or a condition whose operators bind at least as strongly as
// power.
func (p *parser) parseExpression(power int) (*node, error) {
	left, err := p.parsePrefix()
	for err == nil {
		o, binds := p.infix()
		if binds < power {
			return left, nil
		}
		left, err = p.parseInfix(left, o, binds)
	}
	return nil, err
}

// parsePrefix reads the beginning of an expression: NOT, a group, a call or an operand.
func (p *parser) parsePrefix() (*node, error) {
	switch {
	case p.isKeyword("NOT"):
		return p.parseNot()
	case p.isSymbol("("):
		return p.parseGroup(func() (*node, error) { return p.parseExpression(powerOr) })
	default:
		return p.parseOperand()
	}
}

func (p *parser) parseNot() (*node, error) {
	p.at++
	p.operators++
	p.enter()
	defer p.leave()
	operand, err := p.parseExpression(powerNot)
	if err == nil {
		err = p.mustBeCondition(operand)
	}
	if err != nil {
		return nil, err
	}
	p.checkAlone(operand)
	return &node{op: opNot, args: []*node{operand}}, nil
}

// infix returns the operator that comes next and its binding power, or 0.
func (p *parser) infix() (op, int) {
	switch p.peek().kind {
	case tokSymbol:
		for o := opEQ; o <= opGE; o++ {
			if p.word() == o.String() {
				return o, powerCompare
			}
		}
	case tokWord:
		switch {
		case p.isKeyword("AND"):
			return opAnd, powerAnd
		case p.isKeyword("OR"):
			return opOr, powerOr
		case p.isKeyword("BETWEEN"):
			return opBetween, powerCompare
		case p.isKeyword("IN"):
			return opIn, powerCompare
		}
	}
	return 0, 0
}

// parseInfix reads the operator o, which follows left, and its further operands.
func (p *parser) parseInfix(left *node, o op, binds int) (*node, error) {
	if binds != powerCompare {
		return p.parseConnective(left, o, binds)
	}
	if !left.isOperand() && left.op != opCall {
		return nil, p.syntax()
	}
	p.at++
	p.operators++
	n := &node{op: o, args: []*node{left}}
	var err error
	switch o {
	case opBetween:
		err = p.parseBounds(n)
	case opIn:
		err = p.parseList(n)
	default:
		err = p.parseArg(n)
	}
	if err != nil {
		return nil, err
	}
	p.checkOperands(n)
	return n, nil
}

func (p *parser) parseConnective(left *node, o op, binds int) (*node, error) {
	if err := p.mustBeCondition(left); err != nil {
		return nil, err
	}
	p.at++
	p.operators++
	right, err := p.parseExpression(binds + 1)
	if err == nil {
		err = p.mustBeCondition(right)
	}
	if err != nil {
		return nil, err
	}
	p.checkAlone(left)
	p.checkAlone(right)
	return &node{op: o, args: []*node{left, right}}, nil
}

// parseArg reads one more operand of n.
func (p *parser) parseArg(n *node) error {
	arg, err := p.parseOperand()
	n.args = append(n.args, arg)
	return err
}

// parseBounds reads the bounds after BETWEEN.
func (p *parser) parseBounds(n *node) error {
	if err := p.parseArg(n); err != nil {
		return err
	}
	if !p.isKeyword("AND") {
		return p.syntax()
	}
	p.at++
	return p.parseArg(n)
}

// parseList reads the list after IN.
func (p *parser) parseList(n *node) error {
	if err := p.expect("("); err != nil {
		return err
	}
	list, err := p.parseOperands()
	n.args = append(n.args, list...)
	return err
}

// mustBeCondition refuses an operand in place of a condition. The error is at the next token, where
// the operator is missing.
func (p *parser) mustBeCondition(n *node) error {
	if n.isOperand() {
		return p.syntax()
	}
	return nil
}

// checkAlone records the misuse of size as a condition.
func (p *parser) checkAlone(n *node) {
	if n.op == opCall && n.fn == fnSize {
		keep(&p.misused, problemMisused.about(n.fn.String()))
	}
}

// collect gathers the leaves and paths of the tree.
func (t *conditionTree) collect(n *node) {
	if n.isLeaf() {
		t.leaves = append(t.leaves, n)
		t.collectPaths(n)
		return
	}
	for _, arg := range n.args {
		t.collect(arg)
	}
}

func (t *conditionTree) collectPaths(n *node) {
	if n.op == opPath {
		t.paths = append(t.paths, n.path)
	}
	for _, arg := range n.args {
		t.collectPaths(arg)
	}
}
