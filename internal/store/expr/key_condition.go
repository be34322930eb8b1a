package expr

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// KeyAttr is one attribute of a key. Kind is S, N or B.
type KeyAttr struct {
	Name string
	Kind dynamo.Kind
}

// KeySchema is the key of a table or an index: at least one partition key attribute, and sort key
// attributes in order.
type KeySchema struct {
	Partition []KeyAttr
	Sort      []KeyAttr
}

// KeyRange is the part of a table or index that a Query reads: a value for each attribute of the
// partition key, and conditions on the leading attributes of the sort key, both in the order of the
// schema. Every condition of Sort except the last is dynamo.SortEQ.
type KeyRange struct {
	Partition []dynamo.Value
	Sort      []dynamo.SortCondition
}

// KeyCondition is a compiled key condition. It is immutable.
type KeyCondition struct {
	conditions []keyTerm // at most one for each attribute
	problem    error
}

// keyTerm is the condition on one attribute.
type keyTerm struct {
	name  string
	op    string // by its legacy name: EQ, BEGINS_WITH, …
	value []dynamo.Value
}

// maxKeyAttributes is the number of attributes in the widest key: four each of the partition key
// and the sort key.
const maxKeyAttributes = 8

// newKeyCondition returns a condition in the form of conditions on attributes. If that is
// impossible, it records the error for Check.
func newKeyCondition(c *Condition) *KeyCondition {
	k := &KeyCondition{}
	if k.problem = k.read(&c.binding, c.tree.root); k.problem == nil {
		k.problem = k.checkTerms()
	}
	return k
}

// checkTerms checks each condition by itself, and that there is at least one. Their number depends
// on the schema, but no key has more than maxKeyAttributes.
func (k *KeyCondition) checkTerms() error {
	for i := range k.conditions {
		if err := checkArguments(k.conditions[i].op, k.conditions[i].value); err != nil {
			return err
		}
	}
	if n := len(k.conditions); n == 0 || n > maxKeyAttributes {
		return dynamo.Invalid(msgKeyCount)
	}
	return nil
}

// Check returns the errors that need neither a table nor the request's other expressions. They rank
// after Session.Unused.
func (k *KeyCondition) Check() error { return k.problem }

// Texts of docs/spec/errors.md §11, "Key conditions".
const (
	msgKeyCount     = "Conditions can be of length 1 or 2 only"
	msgKeyOperator  = "Invalid operator used in KeyConditionExpression: "
	msgKeyOperands  = "Invalid condition in KeyConditionExpression: "
	msgKeySize      = "KeyConditionExpressions cannot contain nested operations"
	msgKeyNested    = "Invalid KeyConditionExpression: KeyConditionExpressions cannot have conditions on nested attributes"
	msgKeyTwice     = "KeyConditionExpressions must only contain one condition per key"
	msgKeyMissing   = "Query condition missed key schema element: "
	msgKeyPartition = "Query key condition not supported"
	msgKeyIndexable = "Attempted conditional constraint is not an indexable operation"
	msgKeyType      = msgInvalid + "Condition parameter type does not match schema type"
)

// read adds the conditions below n, which are joined by AND.
func (k *KeyCondition) read(b *binding, n *node) error {
	switch {
	case n.op == opAnd:
		if err := k.read(b, n.args[0]); err != nil {
			return err
		}
		return k.read(b, n.args[1])
	case n.op == opOr, n.op == opNot, n.op == opIn, n.op == opNE:
		return dynamo.Invalid(msgKeyOperator + n.op.String())
	case n.op == opCall && n.fn != fnBeginsWith:
		return dynamo.Invalid(msgKeyOperator + n.fn.String())
	case (n.op == opBetween || n.op == opCall) && n.args[0].op != opPath && n.args[0].op != opCall:
		return dynamo.Invalid(msgKeyOperands + n.name() + " operator must have the key attribute as its first operand")
	}
	return k.readTerm(b, n)
}

// readTerm adds one condition: an operator, the name of an attribute, and values.
func (k *KeyCondition) readTerm(b *binding, n *node) error {
	term := keyTerm{op: keyOps[n.op]}
	at := -1 // the operand that is the name
	for i, arg := range n.args {
		switch {
		case arg.op == opCall:
			return dynamo.Invalid(msgKeySize)
		case arg.op == opValue:
			term.value = append(term.value, b.values[arg.value])
		case at >= 0:
			return dynamo.Invalid(msgKeyOperands + "Multiple attribute names used in one condition")
		case len(arg.path) > 1:
			return dynamo.Invalid(msgKeyNested)
		default:
			at, term.name = i, arg.path[0].nameIn(b.names)
		}
	}
	switch {
	case at < 0:
		return dynamo.Invalid(msgKeyOperands + "No key attribute specified")
	case at > 0:
		term.op = mirrored[term.op]
	}
	if k.find(term.name) != nil {
		return dynamo.Invalid(msgKeyTwice)
	}
	k.conditions = append(k.conditions, term)
	return nil
}

var keyOps = map[op]string{
	opEQ: "EQ", opLT: "LT", opLE: "LE", opGT: "GT", opGE: "GE", opBetween: "BETWEEN", opCall: "BEGINS_WITH",
}

// mirrored maps an operator to its equivalent for exchanged operands.
var mirrored = map[string]string{"EQ": "EQ", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}

var sortOps = map[string]dynamo.SortOp{
	"EQ": dynamo.SortEQ, "LT": dynamo.SortLT, "LE": dynamo.SortLE, "GT": dynamo.SortGT, "GE": dynamo.SortGE, "BETWEEN": dynamo.SortBetween, "BEGINS_WITH": dynamo.SortBegins,
}

// find returns the condition on an attribute, or nil.
func (k *KeyCondition) find(name string) *keyTerm {
	for i := range k.conditions {
		if k.conditions[i].name == name {
			return &k.conditions[i]
		}
	}
	return nil
}

// Range returns the range for the key of the queried table or index. It returns the error of Check
// if there is one, and otherwise errors about the schema. The caller checks the sizes of the
// values.
func (k *KeyCondition) Range(schema KeySchema) (KeyRange, error) {
	if k.problem != nil {
		return KeyRange{}, k.problem
	}
	if n := len(k.conditions); n > max(2, len(schema.Partition)+len(schema.Sort)) {
		return KeyRange{}, dynamo.Invalid(msgKeyCount)
	}
	if err := k.checkSchema(schema); err != nil {
		return KeyRange{}, err
	}
	r := KeyRange{Partition: make([]dynamo.Value, 0, len(schema.Partition))}
	for _, attr := range schema.Partition {
		r.Partition = append(r.Partition, k.find(attr.Name).value[0])
	}
	for _, attr := range schema.Sort {
		if term := k.find(attr.Name); term != nil {
			r.Sort = append(r.Sort, term.sort())
		}
	}
	return r, nil
}

func (t *keyTerm) sort() dynamo.SortCondition {
	c := dynamo.SortCondition{Op: sortOps[t.op], Low: t.value[0]}
	if len(t.value) > 1 {
		c.High = t.value[1]
	}
	return c
}

// checkSchema checks in AWS's order: missing conditions, combinations that no index can answer,
// operators, types.
func (k *KeyCondition) checkSchema(schema KeySchema) error {
	attrs := slices.Concat(schema.Partition, schema.Sort)
	for i, attr := range attrs {
		if i >= max(len(k.conditions), len(schema.Partition)) {
			break
		}
		if k.find(attr.Name) == nil {
			return dynamo.Invalid(msgKeyMissing + attr.Name)
		}
	}
	for i := range k.conditions {
		if sortOps[k.conditions[i].op] == dynamo.SortAny {
			return dynamo.Invalid(msgKeyIndexable)
		}
	}
	if len(k.conditions) > len(attrs) {
		return dynamo.Invalid(msgKeyPartition)
	}
	for i, attr := range attrs[:len(k.conditions)] {
		// Only the last condition may be a range, and only on a sort key attribute.
		if last := i == len(k.conditions)-1; k.find(attr.Name).op != "EQ" && (i < len(schema.Partition) || !last) {
			return dynamo.Invalid(msgKeyPartition)
		}
	}
	for _, attr := range attrs[:len(k.conditions)] {
		if err := k.find(attr.Name).checkValues(attr); err != nil {
			return err
		}
	}
	return nil
}

// checkValues checks the values of a condition against the attribute's type, and for equality also
// that they are not empty. It does not check their sizes.
func (t *keyTerm) checkValues(attr KeyAttr) error {
	for _, v := range t.value {
		if v.Kind() != attr.Kind {
			return dynamo.Invalid(msgKeyType)
		}
		if t.op == "EQ" && v.Kind() != dynamo.KindNumber && len(v.Bytes()) == 0 {
			return dynamo.Invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty " +
				emptyKinds[v.Kind()] + " value. Key: " + attr.Name)
		}
	}
	return nil
}

var emptyKinds = map[dynamo.Kind]string{dynamo.KindString: "string", dynamo.KindBinary: "binary"}
