package expr

import (
	"cmp"
	"slices"
	"strings"
)

// parser holds the state of one parse. All errors of its methods are problems.
//
// A problem of meaning does not end the parse, since a syntax error anywhere ranks before it. The
// parser records the first of each class, and worst picks the one to report.
type parser struct {
	placeholders
	text      string
	toks      []token
	at        int // index of the current token
	operators int // operators and functions seen
	depth     int // parentheses and calls around the current token
	deepest   int
	keywords  []string // words that cannot be names here
	// "a condition" or "an update": in the error for a function of the other kind
	article string
	update  bool

	// The problems of meaning, the first of each class; see worst.
	parens   bool  // redundant parentheses
	function error // unknown, or of another kind of expression
	misused  error // a function whose result is unused
	reserved error // a reserved word, or a list index out of range
	section  error // section used twice
}

// newParser makes the checks that precede every parse.
func newParser(text string) (*parser, error) {
	if len(text) > maxExpression {
		return nil, problemSize(len(text))
	}
	if strings.Trim(text, " \t\r\n") == "" {
		return nil, problemEmpty
	}
	return &parser{text: text, toks: lex(text)}, nil
}

// worst returns the problem to report of a complete parse: docs/spec/errors.md §11, "Order when
// several apply".
func (p *parser) worst() error {
	switch {
	case p.operators > maxOperators:
		return problemOperators
	case p.parens:
		return problemParens
	case p.update:
		return cmp.Or(p.reserved, p.function, p.misused, p.section)
	default:
		return cmp.Or(p.function, p.misused, p.reserved)
	}
}

// keep records the first problem of a class.
func keep(class *error, err problem) {
	if *class == nil {
		*class = err
	}
}

func (p *parser) peek() token { return p.toks[p.at] }

// word returns the text of the current token.
func (p *parser) word() string {
	t := p.toks[p.at]
	return p.text[t.start:t.end]
}

// take returns the text of the current token and advances to the next.
func (p *parser) take() string {
	text := p.word()
	if p.peek().kind != tokEOF {
		p.at++
	}
	return text
}

// isSymbol reports whether the current token is this punctuation.
func (p *parser) isSymbol(text string) bool { return p.peek().kind == tokSymbol && p.word() == text }

// isKeyword reports whether the current token is this word, in any case.
func (p *parser) isKeyword(text string) bool {
	return p.peek().kind == tokWord && strings.EqualFold(p.word(), text)
}

// atKeyword reports whether the current token is a word that cannot be a name here.
func (p *parser) atKeyword() bool { return slices.ContainsFunc(p.keywords, p.isKeyword) }

// accept takes this punctuation if it comes next, and reports whether it did.
func (p *parser) accept(text string) bool {
	if !p.isSymbol(text) {
		return false
	}
	p.at++
	return true
}

// expect takes this punctuation, which must come next.
func (p *parser) expect(text string) error {
	if !p.accept(text) {
		return p.syntax()
	}
	return nil
}

// end refuses further text.
func (p *parser) end() error {
	if p.peek().kind != tokEOF {
		return p.syntax()
	}
	return nil
}

// syntax returns the error at the current token. It quotes the text from the token before to the
// token after; at the end, the last token. If the text so far is nested more than maxNesting deep,
// it returns problemNesting instead.
func (p *parser) syntax() error {
	if p.deepest > maxNesting {
		return problemNesting
	}
	first, last := max(p.at-1, 0), min(p.at+1, len(p.toks)-1)
	token := p.word()
	if p.peek().kind == tokEOF {
		token = "<EOF>"
		last = first
	} else if p.toks[last].kind == tokEOF {
		last = p.at
	}
	near := p.text[p.toks[first].start:p.toks[last].end]
	return problem(`Syntax error; token: "` + token + `", near: "` + near + `"`)
}

// enter begins a level of nesting, and leave ends it. Nothing limits the depth here, since the
// length of the text bounds it.
func (p *parser) enter() {
	p.depth++
	p.deepest = max(p.deepest, p.depth)
}

func (p *parser) leave() { p.depth-- }

// parsePath reads a document path.
func (p *parser) parsePath() (path, error) {
	first, err := p.parseName()
	if err != nil {
		return nil, err
	}
	return p.parseSteps(path{first})
}

// parseName reads a name, bare or a placeholder.
func (p *parser) parseName() (step, error) {
	switch {
	case p.peek().kind == tokName:
		return step{ref: number(&p.names, p.take()), index: -1}, nil
	case p.peek().kind == tokWord && !p.atKeyword():
		word := p.take()
		if isReserved(word) {
			keep(&p.reserved, problemReserved.about(word))
		}
		return nameStep(word), nil
	}
	return step{}, p.syntax()
}

// parseSteps reads the continuation of a path.
func (p *parser) parseSteps(to path) (path, error) {
	for {
		switch {
		case p.accept("."):
			s, err := p.parseName()
			if err != nil {
				return nil, err
			}
			to = append(to, s)
		case p.accept("["):
			if p.peek().kind != tokIndex {
				return nil, p.syntax()
			}
			digits := p.take()
			index, fits := parseIndex(digits)
			if !fits {
				keep(&p.reserved, problemIndex.about("["+digits+"]"))
			}
			to = append(to, step{ref: -1, index: index})
			if err := p.expect("]"); err != nil {
				return nil, err
			}
		default:
			if len(to) > maxPath && p.tooDeep == nil {
				p.tooDeep = problemPathDepth(len(to))
			}
			return to, nil
		}
	}
}

// atCall reports whether a function call comes next.
func (p *parser) atCall() bool {
	next := p.toks[min(p.at+1, len(p.toks)-1)]
	return p.peek().kind == tokWord && !p.atKeyword() && next.kind == tokSymbol && p.text[next.start:next.end] == "("
}

// parseCall reads a function call. Its arguments are operands, not sums or conditions.
func (p *parser) parseCall() (*node, error) {
	name := p.take()
	p.at++ // the parenthesis
	p.operators++
	p.enter()
	defer p.leave()
	n := &node{op: opCall, fn: functionNamed(name)}
	var err error
	if n.args, err = p.parseOperands(); err != nil {
		return nil, err
	}
	p.checkCall(n, name)
	return n, nil
}

// parseOperands reads operands separated by commas, and the parenthesis that ends them.
func (p *parser) parseOperands() ([]*node, error) {
	var list []*node
	for {
		n, err := p.parseOperand()
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		if !p.accept(",") {
			return list, p.expect(")")
		}
	}
}

// parseOperand reads a path, a value, a call, or one of these in parentheses.
func (p *parser) parseOperand() (*node, error) {
	switch {
	case p.isSymbol("("):
		return p.parseGroup(p.parseOperand)
	case p.atCall():
		return p.parseCall()
	case p.peek().kind == tokValue:
		return &node{op: opValue, value: number(&p.values, p.take())}, nil
	default:
		to, err := p.parsePath()
		return &node{op: opPath, path: to}, err
	}
}

// parseGroup reads a group in parentheses, with inner for its contents. A path may continue after
// it.
func (p *parser) parseGroup(inner func() (*node, error)) (*node, error) {
	p.at++
	p.enter()
	defer p.leave()
	n, err := inner()
	if err != nil {
		return nil, err
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	if n.grouped {
		p.parens = true
	}
	n.grouped = true
	if n.op == opPath && (p.isSymbol(".") || p.isSymbol("[")) {
		n.grouped = false
		n.path, err = p.parseSteps(n.path)
	}
	return n, err
}

// checkCall records the problems of a call, except misuse in a condition.
func (p *parser) checkCall(n *node, name string) {
	switch {
	case n.fn == fnUnknown:
		keep(&p.function, problemFunction.about(name))
	case functions[n.fn].update != p.update:
		keep(&p.function, problemForeign(p.article, name))
	}
	p.checkOperands(n)
}

// checkOperands records the misuse of functions as operands: only size may be an operand in a
// condition, and list_append cannot be an argument in an update.
func (p *parser) checkOperands(n *node) {
	for _, arg := range n.args {
		if arg.op != opCall {
			continue
		}
		if !p.update && arg.fn != fnSize || p.update && n.op == opCall && arg.fn == fnListAppend {
			keep(&p.misused, problemMisused.about(arg.fn.String()))
		}
	}
}
