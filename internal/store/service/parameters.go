package service

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

// parameter is one of a request's parameters and whether it is present.
type parameter struct {
	name    string
	present bool
}

// parameters are a request's expressions and its legacy parameters, which must not be mixed. Their
// order is the order in messages.
type parameters struct {
	names       Names
	values      Values
	legacy      []parameter
	expressions []parameter
	// the kinds of expression that can use values, in the order of the message that lists them if
	// none is present
	valued []string
}

// session checks the parameters against each other and returns the session that compiles the
// expressions. It returns nil for a request without expressions.
func (p *parameters) session() (*expr.Session, error) {
	expressions := anyPresent(p.expressions)
	if expressions && anyPresent(p.legacy) {
		return nil, expr.MixedParameters(presentNames(p.legacy), presentNames(p.expressions))
	}
	if p.names != nil && !expressions {
		return nil, expr.NamesWithoutExpression()
	}
	if p.values.present() && !p.usesValues() {
		return nil, expr.ValuesWithoutExpression(p.valued...)
	}
	if !expressions {
		return nil, nil
	}
	return newSession(p.names, p.values)
}

func newSession(names Names, values Values) (*expr.Session, error) {
	sess, err := expr.NewSession(names, values.V)
	if err != nil {
		return nil, err
	}
	return sess, values.Err
}

// conditionSession returns the session of a request whose only expression is a condition. It
// allocates nothing if there is none.
func conditionSession(names Names, values Values, condition Opt[string], legacy *Legacy) (*expr.Session, error) {
	if !condition.Set && names == nil && !values.present() {
		return nil, nil
	}
	p := parameters{
		names: names, values: values,
		legacy:      []parameter{{"Expected", legacy.Expected != nil}},
		expressions: []parameter{{expr.ConditionExpression, condition.Set}},
		valued:      []string{expr.ConditionExpression},
	}
	return p.session()
}

// projectionSession returns the session of a request whose only expression is a projection. It
// allocates nothing if there is none.
func projectionSession(names Names, projection Opt[string], legacy *Legacy) (*expr.Session, error) {
	if !projection.Set && names == nil {
		return nil, nil
	}
	p := parameters{
		names:       names,
		legacy:      []parameter{{"AttributesToGet", legacy.AttributesToGet != nil}},
		expressions: []parameter{{expr.ProjectionExpression, projection.Set}},
	}
	return p.session()
}

// usesValues reports whether an expression is present that can use values.
func (p *parameters) usesValues() bool {
	return slices.ContainsFunc(p.expressions, func(e parameter) bool { return e.present && slices.Contains(p.valued, e.name) })
}

func (v Values) present() bool { return v.V != nil || v.Err != nil }

func anyPresent(ps []parameter) bool {
	return slices.ContainsFunc(ps, func(p parameter) bool { return p.present })
}

func presentNames(ps []parameter) []string {
	var names []string
	for _, p := range ps {
		if p.present {
			names = append(names, p.name)
		}
	}
	return names
}

// itemTooLarge reports whether an item counts more than 400 KB. The encoded form is never much
// shorter than the counted size, so short ones are not counted.
func itemTooLarge(item dynamo.Item) bool {
	return len(item) > itemBytesMax/2 && item.Size() > itemBytesMax
}

// itemBytesMax is the largest item, in DynamoDB bytes.
const itemBytesMax = 400 * 1024
