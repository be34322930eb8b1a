package expr

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Condition is a compiled condition or filter. It is immutable.
type Condition struct {
	tree *conditionTree
	binding
}

// Attributes returns the top-level attributes that the condition names, each once, in order of
// first appearance. The nil condition names none.
func (c *Condition) Attributes() []string {
	if c == nil {
		return nil
	}
	var found nameList
	for _, p := range c.tree.paths {
		found.add(p[0].nameIn(c.names))
	}
	return found.list
}

// nameList is a list of different names. Expressions are short, but a legacy parameter can have
// 700,000 members, so a long list is not searched.
type nameList struct {
	list []string
	seen map[string]struct{} // the names of a long list
}

// add adds a name, unless the list has it.
func (l *nameList) add(name string) {
	const short = 16
	if len(l.list) < short {
		if !slices.Contains(l.list, name) {
			l.list = append(l.list, name)
		}
		return
	}
	if l.seen == nil {
		l.seen = make(map[string]struct{}, 2*short)
		for _, known := range l.list {
			l.seen[known] = struct{}{}
		}
	}
	if _, known := l.seen[name]; !known {
		l.seen[name] = struct{}{}
		l.list = append(l.list, name)
	}
}

// Eval reports whether the item satisfies the condition; nil is no item. It reads only the
// attributes that the condition names.
func (c *Condition) Eval(item dynamo.Item) bool {
	e := evaluation{&c.binding, item}
	// no root: a legacy parameter without conditions
	return c.tree.root == nil || e.test(c.tree.root)
}

// evaluation is a condition's placeholders together with an item.
type evaluation struct {
	*binding
	item dynamo.Item
}

// test reports whether the item satisfies the condition n.
func (e evaluation) test(n *node) bool {
	switch n.op {
	case opAnd:
		return e.test(n.args[0]) && e.test(n.args[1])
	case opOr:
		return e.test(n.args[0]) || e.test(n.args[1])
	case opNot:
		return !e.test(n.args[0])
	case opBetween:
		v := e.operand(n.args[0])
		return compare(opGE, v, e.operand(n.args[1])) && compare(opLE, v, e.operand(n.args[2]))
	case opIn:
		v := e.operand(n.args[0])
		return slices.ContainsFunc(n.args[1:], func(arg *node) bool { return compare(opEQ, v, e.operand(arg)) })
	case opCall:
		return e.call(n)
	default:
		return compare(n.op, e.operand(n.args[0]), e.operand(n.args[1]))
	}
}

// operand returns the value of an operand, or nil if there is none.
func (e evaluation) operand(n *node) dynamo.Value {
	switch n.op {
	case opPath:
		return n.path.find(e.item, e.names)
	case opValue:
		return e.values[n.value]
	default:
		return sizeOf(e.operand(n.args[0]))
	}
}

func (e evaluation) call(n *node) bool {
	first := e.operand(n.args[0])
	switch n.fn {
	case fnExists:
		return first != nil
	case fnNotExists:
		return first == nil
	}
	second := e.operand(n.args[1])
	switch {
	case first == nil || second == nil:
		return false
	case n.fn == fnType:
		return first.Kind().String() == string(second.Bytes())
	case n.fn == fnBeginsWith:
		return isText(first, second) && bytes.HasPrefix(first.Bytes(), second.Bytes())
	default:
		return contains(first, second)
	}
}

// isText reports whether both values are strings, or both binary.
func isText(a, b dynamo.Value) bool {
	return a.Kind() == b.Kind() && slices.Contains(textKinds, a.Kind())
}

// contains reports whether b is a part of the text a, or an element of the list or set a.
func contains(a, b dynamo.Value) bool {
	if isText(a, b) {
		return bytes.Contains(a.Bytes(), b.Bytes())
	}
	return a.Contains(b)
}

// compare applies one of the six comparisons; nil is a missing value. A missing value is unequal to
// every value, even to another missing one, and values of different types are unequal. An order
// holds only between two strings, two numbers or two binary values.
func compare(o op, a, b dynamo.Value) bool {
	switch o {
	case opEQ:
		return a != nil && bytes.Equal(a, b)
	case opNE:
		return a == nil || !bytes.Equal(a, b)
	}
	if a == nil || b == nil || a.Kind() != b.Kind() || !slices.Contains(scalarKinds, a.Kind()) {
		return false
	}
	order := dynamo.Compare(a, b)
	switch o {
	case opLT:
		return order < 0
	case opLE:
		return order <= 0
	case opGT:
		return order > 0
	default:
		return order >= 0
	}
}

// sizeOf returns size(v) as a number: the UTF-16 units of a string, the bytes of a binary value, or
// the elements of a list, map or set. It returns nil if v is missing or has a type without size.
func sizeOf(v dynamo.Value) dynamo.Value {
	var n int
	switch v.Kind() {
	case dynamo.KindString:
		n = utf16Len(v.Bytes())
	case dynamo.KindBinary:
		n = len(v.Bytes())
	case dynamo.KindList, dynamo.KindMap, dynamo.KindSS, dynamo.KindNS, dynamo.KindBS:
		n = v.Len()
	default:
		return nil
	}
	var digits [20]byte
	var number [32]byte
	// a length is always a valid number
	num, _ := dynamo.AppendNumber(number[:0], strconv.AppendInt(digits[:0], int64(n), 10))
	return dynamo.AppendN(nil, num)
}

// utf16Len returns the number of UTF-16 units of a string: AWS measures strings so.
func utf16Len(s []byte) int {
	n := 0
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		s = s[size:]
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}
