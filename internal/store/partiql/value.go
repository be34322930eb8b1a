package partiql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// value reads a literal or a parameter. under is its place in the literal around it, for messages:
// "root", "root.name", "root[1]"; it is empty for the item of an INSERT, whose attributes are roots.
func (p *parser) value(under string) *Expr {
	t := p.peek()
	n := &Expr{Op: OpValue, At: span(t)}
	switch {
	case t.isSymbol("?"):
		n.Op, n.Parameter = OpParameter, p.s.Parameters
		p.s.Parameters++
	case t.kind == tokenString:
		n.Value = dynamo.AppendString(nil, t.text)
	case t.kind == tokenNumber, t.isSymbol("-") && p.tokens[p.at+1].kind == tokenNumber:
		return p.number(under)
	case t.isWord("TRUE", "FALSE"):
		n.Value = dynamo.AppendBool(nil, t.isWord("TRUE"))
	case t.isWord("NULL"):
		n.Value = dynamo.AppendNull(nil)
	case t.isWord("MISSING"):
		n.Op = OpMissing
	case t.isSymbol("["):
		return p.container(OpList, "]", under)
	case t.isSymbol("{"):
		return p.container(OpMap, "}", under)
	case t.isSymbol("<<"):
		return p.container(OpSet, ">>", under)
	case t.kind == tokenWord && p.tokens[p.at+1].isSymbol("("), t.isName():
		// inside of a literal only: operand has read paths and calls
		p.unsupportedAt("Unsupported data type: "+strings.ToLower(t.text)+" under key "+rootOf(under), span(t))
		return n
	default:
		p.operandFault()
		return n
	}
	p.next()
	return n
}

func rootOf(under string) string {
	if under == "" {
		return "root"
	}
	return under
}

func (p *parser) number(under string) *Expr {
	from := p.peek().from
	text := ""
	if p.symbol("-") {
		text = "-"
	}
	t := p.next()
	text += t.text
	number, err := dynamo.AppendNumber(nil, []byte(text))
	if err != nil {
		p.unsupported(err.(*dynamo.Error).Message + " under " + rootOf(under))
		return &Expr{Op: OpMissing}
	}
	return &Expr{Op: OpValue, Value: dynamo.AppendN(nil, number), At: Span{from, t.to}}
}

// container reads a list, a map or a set. Without parameters in it, the result is an OpValue.
func (p *parser) container(op Op, closing, under string) *Expr {
	p.enter()
	defer p.leave()
	n := &Expr{Op: op}
	from := p.next().from
	constant := true
	for p.err == nil && !p.symbol(closing) {
		if len(n.Args) > 0 {
			p.expect(",", "comma or closing bracket")
		}
		inner := rootOf(under)
		switch op {
		case OpMap:
			key := p.key(n, under)
			if under != "" {
				inner += "." + key
			}
		case OpList:
			inner += "[" + strconv.Itoa(len(n.Args)) + "]"
		}
		arg := p.value(inner)
		n.Args = append(n.Args, arg)
		constant = constant && (arg.Op == OpValue || arg.Op == OpMissing)
	}
	n.At = Span{from, p.last().to}
	if op == OpSet && len(n.Args) == 0 {
		p.unsupported(msgEmptySet)
	}
	if !constant || p.err != nil {
		return n
	}
	v, err := n.evaluate(nil)
	deepest := dynamo.MaxDepth
	if under == "" {
		deepest++ // the item is no value itself
	}
	switch {
	case err != nil:
		p.fail(err)
	case v.Depth() > deepest:
		p.unsupported(msgDeepValue)
	}
	return &Expr{Op: OpValue, Value: v, At: n.At}
}

// key reads the name of a map's member and the colon, and adds the name to the map.
func (p *parser) key(n *Expr, under string) string {
	t := p.next()
	if t.kind != tokenString {
		if t.kind == tokenEnd {
			p.malformed(badTerm)
		}
		p.unsupported("Tuple keys must be of type String. Actual type: " + t.text + " under " + rootOf(under))
	}
	if slices.Contains(n.Keys, t.text) {
		p.unsupported("Duplicate keys in tuple. Key: " + t.text + " under " + rootOf(under))
	}
	if t.text == "" {
		p.unsupported(msgInvalid + "Empty attribute name")
	}
	n.Keys = append(n.Keys, t.text)
	p.expect(":", "COLON")
	return t.text
}

// Evaluate returns the value of an expression for which IsValue holds. The value may share memory with
// the parameters, which must be as many as the statement has. The error is a *dynamo.Error.
func (e *Expr) Evaluate(parameters []dynamo.Value) (dynamo.Value, error) {
	v, err := e.evaluate(parameters)
	if err == nil && v.Depth() > dynamo.MaxDepth {
		return nil, dynamo.Invalid(msgDeepValue)
	}
	return v, err
}

func (e *Expr) evaluate(parameters []dynamo.Value) (dynamo.Value, error) {
	switch e.Op {
	case OpValue:
		return e.Value, nil
	case OpParameter:
		return parameters[e.Parameter], nil
	case OpMissing:
		return nil, dynamo.Invalid(msgMissing)
	case OpMap:
		it, err := e.Members(parameters)
		if err != nil {
			return nil, err
		}
		return dynamo.AppendMap(nil, it), nil
	}
	elems := make([]dynamo.Value, len(e.Args))
	for i, arg := range e.Args {
		var err error
		if elems[i], err = arg.evaluate(parameters); err != nil {
			return nil, err
		}
	}
	if e.Op == OpSet {
		return newSet(elems)
	}
	return dynamo.AppendList(nil, elems), nil
}

// Members returns the members of a map: of an OpMap, or of an OpValue that is one. A MISSING one is
// left out.
func (e *Expr) Members(parameters []dynamo.Value) (dynamo.Item, error) {
	if e.Op == OpValue {
		return e.Value.Map(), nil
	}
	var b dynamo.Builder
	for i, arg := range e.Args {
		if arg.Op == OpMissing {
			continue
		}
		v, err := arg.evaluate(parameters)
		if err != nil {
			return nil, err
		}
		b.Set(e.Keys[i], v)
	}
	it := b.Item()
	if it.Depth() > dynamo.MaxDepth {
		return nil, dynamo.Invalid(msgDeepValue)
	}
	return it, nil
}

var setKinds = map[dynamo.Kind]dynamo.Kind{
	dynamo.KindString: dynamo.KindSS, dynamo.KindNumber: dynamo.KindNS, dynamo.KindBinary: dynamo.KindBS,
}

// newSet returns a set of at least one element.
func newSet(elems []dynamo.Value) (dynamo.Value, error) {
	kind := elems[0].Kind()
	payloads := make([][]byte, len(elems))
	names := make([]string, len(elems))
	seen := map[string]bool{}
	repeated := false
	for i, e := range elems {
		if setKinds[kind] == 0 || e.Kind() != kind {
			return nil, dynamo.Invalid(msgSetKinds)
		}
		if kind == dynamo.KindNumber {
			payloads[i], names[i] = e.Number(), e.Number().String()
		} else {
			payloads[i], names[i] = e.Bytes(), string(e.Bytes())
		}
		repeated = repeated || seen[string(e)]
		seen[string(e)] = true
	}
	if repeated {
		return nil, dynamo.Invalid(msgInvalid + "Input collection [" + strings.Join(names, ", ") + "] contains duplicates.")
	}
	return dynamo.AppendSet(nil, setKinds[kind], payloads), nil
}
