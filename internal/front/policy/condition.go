package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// condition is one key of one operator of a Condition element, with the policy's values for it.
type condition struct {
	written  string // the whole operator: "ForAllValues:StringEquals"
	operator operator
	set      set
	ifExists bool
	key      Key
	values   []value
}

// holds reports whether a request meets the condition of an Allow or a Deny statement.
//
// A missing key makes the condition false, except with a negated operator, IfExists or ForAllValues.
// Values of the policy are alternatives: one of them must match, or none for a negated operator.
func (c *condition) holds(r *Request, allow bool) bool {
	n := r.count(c.key)
	switch {
	case c.operator.family == nullFamily:
		return c.values[0].truth == (n == 0)
	case n == 0:
		return c.ifExists || c.set == forAllValues || c.operator.negated && c.set == noSet
	}
	for i := range n {
		if c.accepts(r, i, allow) != (c.set == forAllValues) {
			return c.set != forAllValues
		}
	}
	return c.set == forAllValues
}

// accepts reports whether one value of the request meets the condition. In an Allow statement, a
// negated operator does not accept it if a variable has no value.
func (c *condition) accepts(r *Request, i int, allow bool) bool {
	unresolved := false
	for j := range c.values {
		v := &c.values[j]
		if c.equals(v, r, i) {
			return !c.operator.negated
		}
		unresolved = unresolved || c.operator.negated && allow && v.unresolved(r)
	}
	return c.operator.negated && !unresolved
}

// equals reports whether a value of the request matches one of the policy, before negation.
func (c *condition) equals(v *value, r *Request, i int) bool {
	switch c.operator.family {
	case textFamily:
		if c.operator.fold {
			t, ok := v.pattern.expand(r)
			return ok && strings.EqualFold(t, r.text(c.key, i))
		}
		m := matcher{r: r}
		return m.match(&v.pattern, r.text(c.key, i))
	case arnFamily:
		return matchARN(v.arn, r, r.text(c.key, i))
	case boolFamily:
		return r.truth(c.key) == v.truth
	case addressFamily:
		return v.prefix.Contains(r.SourceIP.Unmap())
	default:
		return c.operator.relation.holds(float64(r.Time.Unix()), v.number)
	}
}

func (rel relation) holds(a, b float64) bool {
	switch rel {
	case less:
		return a < b
	case lessOrEqual:
		return a <= b
	case greater:
		return a > b
	case greaterOrEqual:
		return a >= b
	default:
		return a == b
	}
}

// parseCondition reads a Condition element.
func (p *parser) parseCondition(raw json.RawMessage) (all []condition, err error) {
	blocks, ok := members(raw)
	if !ok {
		return nil, p.fail("Condition", "%s is not an object; write {\"StringEquals\": {\"aws:username\": \"alice\"}}", excerpt(raw))
	}
	if err := p.unique("Condition.", blocks); err != nil {
		return nil, err
	}
	for _, block := range blocks {
		in := "Condition." + block.name
		op, s, ifExists, err := parseOperator(block.name)
		if err != nil {
			return nil, p.fail("Condition", "%w", err)
		}
		entries, ok := members(block.value)
		if !ok || len(entries) == 0 {
			return nil, p.fail(in, "%s is not an object with condition keys; write {\"aws:username\": \"alice\"}", excerpt(block.value))
		}
		if err := p.unique(in+".", entries); err != nil {
			return nil, err
		}
		for _, entry := range entries {
			c := condition{written: block.name, operator: op, set: s, ifExists: ifExists}
			if c.key, err = conditionKey(block.name, op, s, entry.name); err != nil {
				return nil, p.fail(in, "%w", err)
			}
			p.policy.keys |= 1 << c.key
			if c.values, err = p.parseValues(in+"."+entry.name, op, entry.value); err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// conditionKey returns the key with a name, if the operator can compare it.
func conditionKey(written string, op operator, s set, name string) (Key, error) {
	k, known := keyNamed(name)
	switch {
	case !known:
		return k, fmt.Errorf("the condition key %q is not supported; use one of %s", name, keyNames(false))
	case op.family != nullFamily && !slices.Contains(keys[k].families, op.family):
		return k, fmt.Errorf("%s does not compare the type of %s; use %s", written, name, operatorsFor(k))
	case keys[k].many && s == noSet && op.family != nullFamily:
		return k, fmt.Errorf("%s can have several values in a request, so %s needs a set operator; write ForAllValues:%[2]s or ForAnyValue:%[2]s", name, written)
	}
	return k, nil
}

// parseValues reads the values of a condition key.
func (p *parser) parseValues(in string, op operator, raw json.RawMessage) (values []value, err error) {
	list, err := p.elements(in, raw)
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		v, err := p.parseValue(op, one)
		if err != nil {
			return nil, p.fail(in, "%w", err)
		}
		values = append(values, v)
	}
	if (op.family == boolFamily || op.family == nullFamily) && len(values) > 1 {
		return nil, p.fail(in, "it has %d values; write true or false", len(values))
	}
	return values, nil
}
