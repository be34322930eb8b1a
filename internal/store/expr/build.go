package expr

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Builder makes expressions from parts instead of text, for languages with another syntax. Its results
// are evaluated like those of a Session. The zero Builder is ready for use, for one request.
//
// Parts may be used in one expression only. The caller bounds the depth of what it builds.
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

// Condition returns the condition that the part is, or the *dynamo.Error for its first bad operand.
func (b *Builder) Condition(p Part) (*Condition, error) {
	t := &conditionTree{root: p.n}
	t.collect(p.n)
	c := &Condition{tree: t, binding: binding{values: b.values}}
	if err := c.check(t); err != nil {
		return nil, dynamo.Invalid(err.Error())
	}
	return c, nil
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
	for i, c := range changes {
		a := &t.actions[i]
		a.section, _ = sectionNamed(c.Section)
		a.path, a.value = newPath(c.Path), c.Value.n
		t.paths = append(t.paths, a.path)
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
// keeps them in the lists and maps around them. The names are different.
func Columns(list []Column) *Projection {
	p := &Projection{columns: make([]column, len(list))}
	for i, c := range list {
		p.columns[i] = column{newPath(c.Path), c.Name}
	}
	return p
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
