package expr

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Builder makes expressions from parts instead of text, for languages with another syntax. Its results
// are evaluated like those of a Session. The zero Builder is ready for use, for one request.
//
// Parts may be used in one expression only. The caller bounds the depth of parts; a condition
// or an update is refused if it has more operators and functions, or longer paths, than one of text.
type Builder struct{ values []dynamo.Value }

// Part is an operand, or a condition.
type Part struct{ n *node }

// PathStep is an element of a document path. The first one is a name.
type PathStep struct {
	Name  string // of an attribute or map member
	Index int    // of a list element; -1: Name counts
}

func newPath(steps []PathStep) path {
	p := make(path, len(steps))
	for i, s := range steps {
		p[i] = step{name: s.Name, ref: -1, index: int32(s.Index)}
	}
	return p
}

// Path returns the value at a document path.
func (b *Builder) Path(steps ...PathStep) Part { return Part{&node{op: opPath, path: newPath(steps)}} }

// Value returns a constant.
func (b *Builder) Value(v dynamo.Value) Part {
	b.values = append(b.values, v)
	return Part{&node{op: opValue, value: int32(len(b.values) - 1)}}
}

// Operation returns an operation by the name of its operator: AND, OR, NOT, =, <>, <, <=, >, >=,
// BETWEEN, IN, + or -. The caller gives as many operands as it takes.
func (b *Builder) Operation(operator string, operands ...Part) Part {
	n := &node{args: nodes(operands)}
	for o, text := range opTexts {
		if text == operator {
			n.op = op(o)
		}
	}
	return Part{n}
}

// Call returns a call of a function of expressions.
func (b *Builder) Call(function string, operands ...Part) Part {
	return Part{&node{op: opCall, fn: functionNamed(function), args: nodes(operands)}}
}

func nodes(parts []Part) []*node {
	list := make([]*node, len(parts))
	for i, p := range parts {
		list[i] = p.n
	}
	return list
}

// Condition returns the condition that the part is, or the *dynamo.Error for a part that is too large,
// or for its first bad operand.
func (b *Builder) Condition(p Part) (*Condition, error) {
	if err := checkBuilt(p.n); err != nil {
		return nil, err
	}
	t := &conditionTree{root: p.n}
	t.collect(p.n)
	c := &Condition{tree: t, binding: binding{values: b.values}}
	if err := c.check(t); err != nil {
		return nil, dynamo.Invalid(err.Error())
	}
	return c, nil
}

// checkBuilt applies the limits of an expression's text that are not about its length: first the number
// of operators, then the lengths of paths.
func checkBuilt(list ...*node) error {
	operators, longest := 0, 0
	for _, n := range list {
		if operators += n.operators(); operators > maxOperators {
			return dynamo.Invalid(problemOperators.Error())
		}
		n.eachPath(func(p path) { longest = max(longest, len(p)) })
	}
	return checkPathLength(longest)
}

func checkPathLength(n int) error {
	if n > maxPath {
		return dynamo.Invalid(problemPathDepth(n).Error())
	}
	return nil
}

// operators returns the number of operators and functions in the node, which may be nil.
func (n *node) operators() int {
	if n == nil || n.op == opPath || n.op == opValue {
		return 0
	}
	sum := 1
	for _, arg := range n.args {
		sum += arg.operators()
	}
	return sum
}

// Assignment is one change of an update.
type Assignment struct {
	Section string // SET, REMOVE, ADD or DELETE
	Path    []PathStep
	Value   Part // for ADD and DELETE one of Value; none for REMOVE
}

// Update returns an update with these changes, or the *dynamo.Error for the first bad one.
func (b *Builder) Update(changes []Assignment) (*Update, error) {
	t := &updateTree{actions: make([]action, len(changes))}
	var built []*node
	for i, c := range changes {
		a := &t.actions[i]
		a.section, _ = sectionNamed(c.Section)
		a.path, a.value = newPath(c.Path), c.Value.n
		t.paths = append(t.paths, a.path)
		built = append(built, &node{op: opPath, path: a.path}, a.value)
	}
	if err := checkBuilt(built...); err != nil {
		return nil, err
	}
	u := &Update{actions: t.actions, binding: binding{values: b.values}}
	if err := u.check(t); err != nil {
		return nil, dynamo.Invalid(err.Error())
	}
	return u, nil
}

// Column is a value of a projection and its name in the result.
type Column struct {
	Path []PathStep
	Name string
}

// Columns returns a projection that names the values at paths, unlike a ProjectionExpression, which
// keeps them in the lists and maps around them. The names are different. The error is the *dynamo.Error
// for a path that is too long.
func Columns(list []Column) (*Projection, error) {
	p := &Projection{columns: make([]column, len(list))}
	for i, c := range list {
		if err := checkPathLength(len(c.Path)); err != nil {
			return nil, err
		}
		p.columns[i] = column{newPath(c.Path), c.Name}
	}
	return p, nil
}

// column is a Column with a path for evaluation.
type column struct {
	path path
	name string
}

// applyColumns appends an item of the values that the columns find.
func (p *Projection) applyColumns(dst []byte, item dynamo.Item) []byte {
	b := builders.Get().(*dynamo.Builder)
	defer builders.Put(b)
	b.Reset()
	for i := range p.columns {
		b.Set(p.columns[i].name, p.columns[i].path.find(item, nil))
	}
	return b.AppendItem(dst)
}
