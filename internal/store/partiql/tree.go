package partiql

import (
	"strconv"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Verb is the kind of a statement.
type Verb uint8

// The kinds of statements. Exists is EXISTS(SELECT …), which has the parts of a SELECT.
const (
	Select Verb = iota
	Insert
	Update
	Delete
	Exists
)

// Statement is a parsed statement. It is immutable.
type Statement struct {
	Verb       Verb
	Text       string
	Table      string
	Index      string    // of a SELECT; "": the table
	Columns    []Path    // of a SELECT; nil: *
	Where      *Expr     // nil: none
	Order      []Order   // of a SELECT
	Item       *Expr     // of an INSERT: an OpMap, or an OpValue that is a map
	Changes    []Change  // of an UPDATE, in the order of the text
	Returning  Returning // of an UPDATE or DELETE
	Parameters int       // the number of ? in the text

	// A comment ends at a carriage return without a line feed: a reader that knows only line feeds as
	// the ends of comments finds another statement in the text.
	EndsAtReturn bool

	// The places of parts in Text. ColumnsAt is empty for other statements than SELECT. WhereAt is the
	// condition without its keyword; if there is none, it is empty and lies where a clause could stand.
	ColumnsAt, TableAt, WhereAt, ReturningAt Span
}

// Span is a part of a statement's text.
type Span struct{ From, To int }

// Order is a key of ORDER BY.
type Order struct {
	Attribute  string
	Descending bool
}

// Change is a SET or a REMOVE of an UPDATE. Value is nil for a REMOVE.
type Change struct {
	Path  Path
	Value *Expr
}

// Returning is a RETURNING clause, by the ReturnValues that it means: "ALL_OLD", "ALL_NEW",
// "UPDATED_OLD" or "UPDATED_NEW"; "" is none.
type Returning string

// Path is a document path: the name of an attribute, then names of map members and list indices.
type Path []Step

// Step is an element of a path.
type Step struct {
	Name  string // of an attribute or map member
	Index int    // of a list element; -1: Name counts
}

// Attribute returns the name of the attribute at the beginning of the path.
func (p Path) Attribute() string { return p[0].Name }

// Column returns the name of the path's value in the answer to a SELECT: the last name of the path,
// with the indices after it.
func (p Path) Column() string {
	last := len(p) - 1
	for p[last].Index >= 0 {
		last--
	}
	name := p[last].Name
	for _, s := range p[last+1:] {
		name += "[" + strconv.Itoa(s.Index) + "]"
	}
	return name
}

// Op is the kind of an expression.
type Op uint8

// The kinds of expressions. Values are OpValue, OpParameter, OpMissing and the three containers, in
// which at least one value is not known before the parameters are.
const (
	OpPath Op = iota
	OpValue
	OpParameter
	OpMissing
	OpList
	OpMap
	OpSet
	OpCall
	OpAnd
	OpOr
	OpNot
	OpEQ
	OpNE
	OpLT
	OpLE
	OpGT
	OpGE
	OpBetween
	OpIn
	OpIs // Args[0] IS Name
	OpPlus
	OpMinus
)

// Texts are the operators' names in messages.
var opTexts = [...]string{
	OpAnd: "AND", OpOr: "OR", OpNot: "NOT", OpEQ: "=", OpNE: "<>", OpLT: "<", OpLE: "<=", OpGT: ">", OpGE: ">=",
	OpBetween: "BETWEEN", OpIn: "IN", OpPlus: "+", OpMinus: "-",
}

// String returns an operator as expressions write it; "" for an expression that is no operation.
func (o Op) String() string {
	if int(o) < len(opTexts) {
		return opTexts[o]
	}
	return ""
}

// Expr is a value, a path, or an operation on expressions.
type Expr struct {
	Op        Op
	Path      Path         // of OpPath
	Value     dynamo.Value // of OpValue
	Parameter int          // of OpParameter: its number, from 0
	// of OpCall: the function, in lower case; of OpIs: MISSING, or the name of a kind of values
	Name string
	Keys []string // of OpMap: the names of Args
	Args []*Expr
	At   Span // in the text; of OpCall: the function's name
}

// IsValue reports whether the expression depends on parameters alone.
func (e *Expr) IsValue() bool { return e.Op >= OpValue && e.Op <= OpSet }

// IsCondition reports whether the expression is true or false.
func (e *Expr) IsCondition() bool {
	return e.Op >= OpAnd && e.Op <= OpIs || e.Op == OpCall && conditionFunctions[e.Name]
}

// conditionFunctions are the functions that are conditions. The service has size besides, and
// list_append, set_add and set_delete in SET.
var conditionFunctions = map[string]bool{
	"attribute_exists": true, "attribute_not_exists": true, "attribute_type": true, "begins_with": true, "contains": true,
}

// EachPath calls yield for every path in the expression, which may be nil.
func (e *Expr) EachPath(yield func(Path)) {
	if e == nil {
		return
	}
	if e.Op == OpPath {
		yield(e.Path)
	}
	for _, arg := range e.Args {
		arg.EachPath(yield)
	}
}

// Place returns the place of a part of the text in messages: "line:column:length".
func (s *Statement) Place(at Span) string { return place(s.Text, at.From, at.To) }
