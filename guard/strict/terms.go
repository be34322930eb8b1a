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

// compileOrder is AWS's order of checks of expressions.
var compileOrder = []string{memberUpdate, memberKey, memberCondition, memberFilter, memberProjection}

// terms are the expressions of a request, with their names and values. They are compiled as the
// endpoint would compile them, so that errors quote the caller's expressions, not the rewritten
// ones.
type terms struct {
	members   object // the members of the request, which include the expressions
	names     object
	values    object
	attribute string // the TTL attribute

	session    *expr.Session // of the unchanged request; nil if it has no expressions
	condition  *expr.Condition
	projection *expr.Projection
}

// readTerms returns the compiled expressions of a request, of these kinds. The error is a
// *dynamo.Error.
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

// checkPresence refuses placeholders if no expression could use them.
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

// newSession returns a session with the names and values of a request. An invalid value is the
// error only if all names and values have the right form, as in AWS's order of checks.
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

// inValues returns the error for a bad value with the text that internal/front/wire uses.
func inValues(err error, key string) error {
	var invalid *dynamo.Error
	if !errors.As(err, &invalid) {
		return err
	}
	return dynamo.Invalid(memberValues + " contains invalid value: " + invalid.Message + " for key " + key)
}

// extended is a copy of a request with additions.
type extended struct {
	members, names, values object
}

// extend returns a copy of the request for additions.
func (t *terms) extend() *extended {
	x := &extended{maps.Clone(t.members), object{}, object{}}
	maps.Copy(x.names, t.names)
	maps.Copy(x.values, t.values)
	return x
}

// name returns a new placeholder for an attribute. An existing one cannot be used: it may be spelt
// like one of the added ones.
func (x *extended) name(attribute string) string {
	return place(x.names, "#mayfly", quoted(attribute))
}

func (x *extended) value(v json.RawMessage) string { return place(x.values, ":mayfly", v) }

// place returns a new placeholder for a value, and adds it to in. A name is added only once.
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

// bytes returns the request with the additions.
func (x *extended) bytes() json.RawMessage {
	if len(x.names) > 0 {
		x.members[memberNames] = x.names.bytes()
	}
	if len(x.values) > 0 {
		x.members[memberValues] = x.values.bytes()
	}
	return x.members.bytes()
}

// expired returns a condition for expired items, in parentheses, and adds its names and values.
func (x *extended) expired(attribute string, m moment) string {
	ttl := x.name(attribute)
	return "(" + ttl + " <= " + x.value(m.now()) + " AND " + ttl + " > " + x.value(m.low()) + ")"
}

// connect puts a condition before the request's one of this kind, if it has one. It reports whether
// the result is short enough for the endpoint.
func (x *extended) connect(kind, condition, operator string) bool {
	if x.members.has(kind) {
		text := x.members.text(kind)
		// a second pair is refused; without any, an OR would include expired items again
		if !parenthesized(text) {
			text = "(" + text + ")"
		}
		condition += " " + operator + " " + text
	}
	x.members[kind] = quoted(condition)
	session, err := newSession(x.names, x.values)
	if err == nil {
		_, err = session.Condition(kind, condition)
	}
	return err == nil
}

// parenthesized reports whether one pair of parentheses encloses the whole expression. Expressions
// have no literals that could contain parentheses.
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

// projectOnly makes the request return these attributes, and each only once.
func (x *extended) projectOnly(attributes ...string) {
	var names []string
	for _, a := range attributes {
		if name := x.name(a); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	x.members[memberProjection] = quoted(strings.Join(names, ", "))
}

// project adds attributes to a projection, so that items can be judged. It returns the added ones,
// which must be removed from the answer. Without a projection, items come whole. If the projection
// takes only a part of one of the attributes, project returns an error.
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
