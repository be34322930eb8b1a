package strict

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

const (
	memberNames      = "ExpressionAttributeNames"
	memberValues     = "ExpressionAttributeValues"
	memberCondition  = "ConditionExpression"
	memberUpdate     = "UpdateExpression"
	memberFilter     = "FilterExpression"
	memberKey        = "KeyConditionExpression"
	memberProjection = "ProjectionExpression"
)

// compileOrder is the order in which the service reports what is wrong with expressions.
var compileOrder = []string{memberUpdate, memberKey, memberCondition, memberFilter, memberProjection}

// terms are the expressions of a request and what their placeholders stand for. Expressions are compiled as the endpoint would, so that what is wrong with
// them is answered in its words and not in those of what they are rewritten to.
type terms struct {
	members   object // of the request, which holds the expressions
	names     object
	values    object
	attribute string // the TTL attribute

	session    *expr.Session // of the request as it came; nil where it has no expressions
	condition  *expr.Condition
	projection *expr.Projection
}

// readTerms compiles the expressions of a request, of those kinds that its operation has. The error is a *dynamo.Error.
func readTerms(members object, attribute string, kinds ...string) (*terms, error) {
	t := &terms{members: members, attribute: attribute}
	var ok bool
	if t.names, ok = members.member(memberNames); !ok {
		return nil, wrongType(memberNames)
	}
	if t.values, ok = members.member(memberValues); !ok {
		return nil, wrongType(memberValues)
	}
	for _, kind := range kinds {
		if members.has(kind) && json.Unmarshal(members[kind], new(string)) != nil {
			return nil, wrongType(kind)
		}
	}
	if err := t.checkPresence(kinds); err != nil || !members.hasAny(kinds...) {
		return t, err
	}
	var err error
	if t.session, err = newSession(t.names, t.values); err != nil {
		return nil, err
	}
	for _, kind := range compileOrder {
		if !slices.Contains(kinds, kind) {
			continue
		}
		if err := t.compile(kind); err != nil {
			return nil, err
		}
	}
	return t, t.session.Unused()
}

// checkPresence refuses placeholders without expressions that could use them.
func (t *terms) checkPresence(kinds []string) error {
	if t.names != nil && !t.members.hasAny(kinds...) {
		return expr.NamesWithoutExpression()
	}
	valued := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == memberProjection })
	if t.values != nil && len(valued) > 0 && !t.members.hasAny(valued...) {
		return expr.ValuesWithoutExpression(valued...)
	}
	return nil
}

// compile compiles the expression of a kind, if there is one.
func (t *terms) compile(kind string) (err error) {
	if !t.members.has(kind) {
		return nil
	}
	text := t.members.text(kind)
	switch kind {
	case memberCondition, memberFilter:
		t.condition, err = t.session.Condition(kind, text)
	case memberKey:
		_, err = t.session.KeyCondition(text)
	case memberUpdate:
		_, err = t.session.Update(text)
	case memberProjection:
		t.projection, err = t.session.Projection(text)
	}
	return err
}

// newSession reads what placeholders stand for.
func newSession(names, values object) (*expr.Session, error) {
	var plainNames map[string]string
	if names != nil {
		plainNames = make(map[string]string, len(names))
	}
	for key, raw := range names {
		var name string
		if json.Unmarshal(raw, &name) != nil {
			return nil, wrongType(memberNames)
		}
		plainNames[key] = name
	}
	var plainValues map[string]dynamo.Value
	if values != nil {
		plainValues = make(map[string]dynamo.Value, len(values))
	}
	var bad error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		v, invalid, fatal := dynamo.NewJSON(values[key]).AppendValue(nil)
		if fatal != nil {
			return nil, fatal
		}
		if invalid != nil && bad == nil {
			bad = inValues(invalid, key)
		}
		plainValues[key] = v
	}
	session, err := expr.NewSession(plainNames, plainValues)
	if err != nil {
		return nil, err
	}
	return session, bad
}

// inValues words what is wrong with a value, as internal/front/wire does.
func inValues(err error, key string) error {
	var invalid *dynamo.Error
	if !errors.As(err, &invalid) {
		return err
	}
	return dynamo.Invalid(memberValues + " contains invalid value: " + invalid.Message + " for key " + key)
}

// extended is a request that is being added to.
type extended struct {
	members, names, values object
}

// extend begins to add to the request, and leaves it as it is itself.
func (t *terms) extend() *extended {
	x := &extended{maps.Clone(t.members), object{}, object{}}
	maps.Copy(x.names, t.names)
	maps.Copy(x.values, t.values)
	return x
}

// name gives a placeholder for an attribute: a new one, since one that is there may be spelt like a name of ours.
func (x *extended) name(attribute string) string {
	return place(x.names, "#mayfly", quoted(attribute))
}

func (x *extended) value(v json.RawMessage) string { return place(x.values, ":mayfly", v) }

func place(in object, prefix string, v json.RawMessage) string {
	for i := 0; ; i++ {
		key := prefix + strconv.Itoa(i)
		have, taken := in[key]
		if !taken || string(have) == string(v) && prefix[0] == '#' {
			in[key] = v
			return key
		}
	}
}

// bytes writes the request with what was added.
func (x *extended) bytes() json.RawMessage {
	if len(x.names) > 0 {
		x.members[memberNames] = x.names.bytes()
	}
	if len(x.values) > 0 {
		x.members[memberValues] = x.values.bytes()
	}
	return x.members.bytes()
}

// expired adds what an expression needs to tell an expired item, and gives that condition in parentheses.
func (x *extended) expired(attribute string, m moment) string {
	ttl := x.name(attribute)
	return "(" + ttl + " <= " + x.value(m.now()) + " AND " + ttl + " > " + x.value(m.low()) + ")"
}

// connect puts a condition before the one of a kind that the request has, if it has one. It reports whether what comes out is one that the endpoint takes.
func (x *extended) connect(kind, condition, operator string) bool {
	if x.members.has(kind) {
		text := x.members.text(kind)
		if !parenthesized(text) { // a second pair is refused; and without any an OR in it would take the expired in again
			text = "(" + text + ")"
		}
		condition += " " + operator + " " + text
	}
	x.members[kind] = quoted(condition)
	return x.compiles(kind, condition)
}

// parenthesized reports whether one pair of parentheses is around the whole of an expression. Expressions have no literals, in which parentheses could be.
func parenthesized(text string) bool {
	text = strings.Trim(text, " \t\r\n")
	if !strings.HasPrefix(text, "(") {
		return false
	}
	depth := 0
	for i, c := range []byte(text) {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i == len(text)-1
			}
		}
	}
	return false
}

func (x *extended) compiles(kind, text string) bool {
	session, err := newSession(x.names, x.values)
	if err != nil {
		return false
	}
	_, err = session.Condition(kind, text)
	return err == nil
}

// project adds attributes to a projection, so that the answer tells what is needed to judge. It gives those that were not asked for, which have to be taken out of
// the answer again. Without a projection items come whole.
func (x *extended) project(p *expr.Projection, attributes ...string) (added []string, err error) {
	if p == nil {
		return nil, nil
	}
	text := x.members.text(memberProjection)
	for _, a := range attributes {
		switch named, whole := p.Takes(a); {
		case named && !whole:
			return nil, dynamo.Invalid("strict reads: a projection takes attribute " + a + " whole or not at all, since it tells whether the item has expired")
		case !named:
			text += ", " + x.name(a)
			added = append(added, a)
		}
	}
	x.members[memberProjection] = quoted(text)
	return added, nil
}
