package expr

import "github.com/mayflydb/mayfly/internal/store/dynamo"

// The legacy parameters become the same trees as expressions. Their attributes come in the order of
// the checks; the first bad one is reported. Errors are *dynamo.Error of the request
// (docs/spec/errors.md §12).

// LegacyCondition is one member of KeyConditions, QueryFilter or ScanFilter.
type LegacyCondition struct {
	Attribute string
	Operator  string         // ComparisonOperator, one of the thirteen
	Values    []dynamo.Value // AttributeValueList
}

// LegacyFilter returns the compiled QueryFilter or ScanFilter. The ConditionalOperator "OR" means
// any of the conditions, every other operator all of them. Without conditions, every item passes.
func LegacyFilter(list []LegacyCondition, conditionalOperator string) (*Condition, error) {
	b := newLegacyBuilder(conditionalOperator)
	for _, c := range list {
		if err := checkArguments(c.Operator, c.Values); err != nil {
			return nil, err
		}
		b.add(c)
	}
	return b.c, nil
}

// LegacyKeyCondition returns the compiled KeyConditions. The error is about the arguments of a
// comparison. KeyCondition.Check returns the others, as for a key condition expression.
func LegacyKeyCondition(list []LegacyCondition) (*KeyCondition, error) {
	k := &KeyCondition{}
	for _, c := range list {
		if err := checkArguments(c.Operator, c.Values); err != nil {
			return nil, err
		}
		k.conditions = append(k.conditions, keyTerm{c.Attribute, c.Operator, c.Values})
	}
	k.problem = k.checkTerms()
	return k, nil
}

// ExpectedValue is one member of Expected.
type ExpectedValue struct {
	Attribute string
	Value     dynamo.Value   // nil: absent
	Operator  string         // ComparisonOperator; "": absent
	List      []dynamo.Value // AttributeValueList; nil: absent
	Exists    *bool          // nil: absent
}

// Expected returns the compiled condition of a write. Without members it is always true.
func Expected(list []ExpectedValue, conditionalOperator string) (*Condition, error) {
	b := newLegacyBuilder(conditionalOperator)
	for i := range list {
		c, err := list[i].condition()
		if err != nil {
			return nil, err
		}
		b.add(c)
	}
	return b.c, nil
}

// condition returns the member as a comparison.
func (e *ExpectedValue) condition() (LegacyCondition, error) {
	c := LegacyCondition{Attribute: e.Attribute, Operator: e.Operator, Values: e.List}
	if e.Value != nil {
		c.Values = []dynamo.Value{e.Value}
	}
	invalid := func(text string) (LegacyCondition, error) {
		return c, dynamo.Invalid(msgInvalid + text + " for Attribute: " + e.Attribute)
	}
	switch {
	case e.Value != nil && e.List != nil:
		return invalid("Value and AttributeValueList cannot be used together")
	case e.Operator != "":
		if e.Exists != nil {
			return invalid("Exists and ComparisonOperator cannot be used together")
		}
		if c.Values == nil && comparisons[e.Operator].least > 0 {
			return invalid("Value or AttributeValueList must be used with ComparisonOperator: " + e.Operator)
		}
		return c, checkArguments(e.Operator, c.Values)
	case e.List != nil:
		return invalid("AttributeValueList can only be used with a ComparisonOperator")
	case e.Exists != nil && !*e.Exists:
		if e.Value != nil {
			return invalid("Value cannot be used when Exists is false")
		}
		c.Operator = "NULL"
		return c, nil
	case e.Value == nil && e.Exists == nil:
		return invalid("Value must be provided when Exists is null")
	case e.Value == nil:
		return invalid("Value must be provided when Exists is true")
	}
	c.Operator = "EQ"
	return c, nil
}

// legacyBuilder joins comparisons to a condition.
type legacyBuilder struct {
	c       *Condition
	connect op
}

func newLegacyBuilder(conditionalOperator string) legacyBuilder {
	b := legacyBuilder{&Condition{tree: &conditionTree{}}, opAnd}
	if conditionalOperator == opOr.String() {
		b.connect = opOr
	}
	return b
}

// add adds a comparison with valid arguments.
func (b legacyBuilder) add(c LegacyCondition) {
	t := b.c.tree
	at := path{nameStep(c.Attribute)}
	t.paths = append(t.paths, at)
	n := b.compare(c, &node{op: opPath, path: at})
	if t.root != nil {
		n = &node{op: b.connect, args: []*node{t.root, n}}
	}
	t.root = n
}

// legacyOps are the legacy operators that are operators in expressions; legacyFunctions are
// functions there.
var (
	legacyOps = map[string]op{
		"EQ": opEQ, "NE": opNE, "LE": opLE, "LT": opLT, "GE": opGE, "GT": opGT, "BETWEEN": opBetween, "IN": opIn,
	}
	legacyFunctions = map[string]function{
		"NULL": fnNotExists, "NOT_NULL": fnExists, "CONTAINS": fnContains, "BEGINS_WITH": fnBeginsWith,
	}
)

// compare returns the condition for a comparison of the attribute with its arguments.
func (b legacyBuilder) compare(c LegacyCondition, attribute *node) *node {
	args := []*node{attribute}
	for _, v := range c.Values {
		args = append(args, &node{op: opValue, value: int32(len(b.c.values))})
		b.c.values = append(b.c.values, v)
	}
	if o, ok := legacyOps[c.Operator]; ok {
		return &node{op: o, args: args}
	}
	if fn, ok := legacyFunctions[c.Operator]; ok {
		return &node{op: opCall, fn: fn, args: args}
	}
	// NOT_CONTAINS is false if the attribute is missing, like CONTAINS.
	notContains := &node{op: opNot, args: []*node{{op: opCall, fn: fnContains, args: args}}}
	return &node{op: opAnd, args: []*node{{op: opCall, fn: fnExists, args: []*node{attribute}}, notContains}}
}

// AttributeUpdate is one member of AttributeUpdates.
type AttributeUpdate struct {
	Attribute string
	Action    string       // PUT, ADD or DELETE; "": PUT
	Value     dynamo.Value // nil: absent
}

// AttributeUpdates returns the compiled legacy form of an update. Without members it changes
// nothing, but creates a missing item.
func AttributeUpdates(list []AttributeUpdate) (*Update, error) {
	u := &Update{legacy: true}
	for i := range list {
		a, err := list[i].action(len(u.values))
		if err != nil {
			return nil, err
		}
		u.actions = append(u.actions, a)
		u.values = append(u.values, list[i].Value)
	}
	return u, nil
}

// action returns the member as an action whose value has this number.
func (u *AttributeUpdate) action(number int) (action, error) {
	a := action{path: path{nameStep(u.Attribute)}, value: &node{op: opValue, value: int32(number)}}
	kind := u.Value.Kind()
	switch {
	case u.Value == nil && u.Action != "DELETE":
		return a, dynamo.Invalid(msgInvalid + "Only DELETE action is allowed when no attribute value is specified")
	case u.Value == nil:
		a.section = sectionRemove
	case u.Action == "DELETE":
		if !kind.IsSet() {
			return a, dynamo.Invalid(msgInvalid + "DELETE action with value is not supported for the type " + kind.String())
		}
		a.section = sectionDelete
	case u.Action == "ADD":
		if !kind.IsSet() && kind != dynamo.KindNumber && kind != dynamo.KindList {
			return a, dynamo.Invalid(msgInvalid + "ADD action is not supported for the type " + kind.String())
		}
		a.section = sectionAdd
	}
	return a, nil
}

// AttributesToGet returns the compiled legacy form of a projection: whole attributes, with any
// names. A name that occurs twice is an error, and so is a text that cannot be a name.
func AttributesToGet(names []string) (*Projection, error) {
	root := &selector{index: -1, children: make([]*selector, 0, len(names))}
	seen := make(map[string]struct{}, len(names))
	for _, name := range names {
		if message := dynamo.CheckName(name); message != "" {
			return nil, dynamo.Invalid(msgInvalid + message)
		}
		if _, twice := seen[name]; twice {
			return nil, dynamo.Invalid(msgInvalid + "Duplicate value in attribute name: " + name)
		}
		seen[name] = struct{}{}
		// Not newSelector, which searches the children for each name: 16 MB of names would take it an
		// hour, and they are counted only after the policies of a key have seen them.
		root.children = append(root.children, &selector{name: name, index: nameStep(name).index})
	}
	root.sort()
	return &Projection{selector: root}, nil
}
