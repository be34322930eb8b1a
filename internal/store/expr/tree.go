package expr

import (
	"slices"
	"strings"
)

// op is the kind of a node.
type op uint8

const (
	opPath  op = iota // path
	opValue           // value placeholder
	opCall            // function: fn
	opAnd
	opOr
	opNot
	opEQ
	opNE
	opLT
	opLE
	opGT
	opGE
	opBetween
	opIn
	opPlus
	opMinus
)

// opTexts are the operators' names in messages.
var opTexts = [...]string{
	opAnd: "AND", opOr: "OR", opNot: "NOT", opEQ: "=", opNE: "<>", opLT: "<", opLE: "<=", opGT: ">", opGE: ">=",
	opBetween: "BETWEEN", opIn: "IN", opPlus: "+", opMinus: "-",
}

func (o op) String() string { return opTexts[o] }

// isOrder reports whether the operator compares by order, which only S, N and B have.
func (o op) isOrder() bool { return o >= opLT && o <= opGE || o == opBetween }

// function is one of the functions of all kinds of expression.
type function uint8

const (
	fnUnknown function = iota
	fnExists
	fnNotExists
	fnType
	fnBeginsWith
	fnContains
	fnSize
	fnIfNotExists
	fnListAppend
)

// functions has the name and the number of operands of each function. Names are case-sensitive.
var functions = [...]struct {
	name     string
	operands int
	update   bool // allowed in update expressions only; the others in conditions only
}{
	fnExists:      {"attribute_exists", 1, false},
	fnNotExists:   {"attribute_not_exists", 1, false},
	fnType:        {"attribute_type", 2, false},
	fnBeginsWith:  {"begins_with", 2, false},
	fnContains:    {"contains", 2, false},
	fnSize:        {"size", 1, false},
	fnIfNotExists: {"if_not_exists", 2, true},
	fnListAppend:  {"list_append", 2, true},
}

func functionNamed(name string) function {
	for fn := fnExists; int(fn) < len(functions); fn++ {
		if functions[fn].name == name {
			return fn
		}
	}
	return fnUnknown
}

func (fn function) String() string { return functions[fn].name }

// node is a part of an expression: an operand, or an operation on operands.
type node struct {
	op      op
	fn      function // of opCall
	grouped bool     // was in parentheses
	value   int32    // of opValue: number of the placeholder in the tree
	path    path     // of opPath
	args    []*node
}

// eachPath calls yield for every path in the tree below the node, which may be nil.
func (n *node) eachPath(yield func(path)) {
	if n == nil {
		return
	}
	if n.op == opPath {
		yield(n.path)
	}
	for _, arg := range n.args {
		arg.eachPath(yield)
	}
}

// isOperand reports whether the node can only be an operand, and not a condition. A call can be
// either.
func (n *node) isOperand() bool {
	return n.op == opPath || n.op == opValue || n.op == opPlus || n.op == opMinus
}

// isLeaf reports whether the node is a condition that is not made of conditions.
func (n *node) isLeaf() bool { return n.op != opAnd && n.op != opOr && n.op != opNot }

// name returns the name of the node's operator or function in messages.
func (n *node) name() string {
	if n.op == opCall {
		return n.fn.String()
	}
	return n.op.String()
}

// placeholders are the #names and :values of a tree, each once, numbered in order of appearance, and
// what else each request is checked for.
type placeholders struct {
	names  []string
	values []string
	// the first path with too many elements; nil: none. An undefined name ranks before it
	tooDeep error
}

// number returns the position of text in list, after adding it if it is missing.
func number(list *[]string, text string) int32 {
	at := slices.Index(*list, text)
	if at < 0 {
		at = len(*list)
		*list = append(*list, text)
	}
	return int32(at)
}

// conditionTree is a parsed condition, filter or key condition expression. It is immutable and has
// no static problems. The tree of a legacy parameter has no leaves, since its arguments are checked
// before they enter it, and no root if the parameter has no conditions.
type conditionTree struct {
	placeholders
	root   *node
	leaves []*node // the conditions that AND, OR and NOT join, in order
	paths  []path  // in order
}

// projectionTree is a parsed projection expression.
type projectionTree struct {
	placeholders
	paths    []path
	selector *selector // ready for use; nil if it depends on placeholders
	// overlapping paths; nil, and not checked yet, if that depends on placeholders
	problem error
}

// section is one of the four parts of an update expression.
type section uint8

const (
	sectionSet section = iota
	sectionRemove
	sectionAdd
	sectionDelete
)

var sectionNames = [...]string{sectionSet: "SET", sectionRemove: "REMOVE", sectionAdd: "ADD", sectionDelete: "DELETE"}

func (s section) String() string { return sectionNames[s] }

// sectionNamed returns the section that a word begins, in any case.
func sectionNamed(word string) (section, bool) {
	for s, name := range sectionNames {
		if strings.EqualFold(name, word) {
			return section(s), true
		}
	}
	return 0, false
}

// action is one assignment, removal, addition or deletion of an update.
type action struct {
	section section
	path    path
	value   *node // nil for REMOVE
}

// updateTree is a parsed update expression.
type updateTree struct {
	placeholders
	actions []action
	paths   []path // of the actions
}
