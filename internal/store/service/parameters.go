package service

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

// parameter is one of a request's parameters of which only its presence counts.
type parameter struct {
	name    string
	present bool
}

// parameters are what a request may say with expressions, and what it may say without: the two do not mix. The order is
// the one in which messages list them.
type parameters struct {
	names       Names
	values      Values
	legacy      []parameter
	expressions []parameter
	valued      []string // the kinds of expression that can use values, as the message about none of them lists them
}

// session checks the parameters against each other and opens the session that compiles the expressions. It is nil
// where the request has no expressions.
func (p *parameters) session() (*expr.Session, error) {
	some := anyPresent(p.expressions)
	if some && anyPresent(p.legacy) {
		return nil, expr.MixedParameters(presentNames(p.legacy), presentNames(p.expressions))
	}
	if p.names != nil && !some {
		return nil, expr.NamesWithoutExpression()
	}
	if p.values.present() && !p.usesValues() {
		return nil, expr.ValuesWithoutExpression(p.valued...)
	}
	if !some {
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

// conditionSession is the session of a request whose one expression is a condition. It costs nothing where there is none.
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

// projectionSession is the session of a request whose one expression is a projection. It costs nothing where there is none.
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

// usesValues tells whether some expression is there that can use values.
func (p *parameters) usesValues() bool {
	for _, e := range p.expressions {
		for _, kind := range p.valued {
			if e.present && e.name == kind {
				return true
			}
		}
	}
	return false
}

func (v Values) present() bool { return v.V != nil || v.Err != nil }

func anyPresent(ps []parameter) bool {
	for _, p := range ps {
		if p.present {
			return true
		}
	}
	return false
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

// unused is the session's complaint about placeholders that no expression used.
func unused(sess *expr.Session) error {
	if sess == nil {
		return nil
	}
	return sess.Unused()
}

// itemTooLarge tells whether an item counts more than 400 KB. An item's bytes are never fewer than what it counts by
// more than a little, so short ones need no counting.
func itemTooLarge(item dynamo.Item) bool {
	return len(item) > itemBytesMax/2 && item.Size() > itemBytesMax
}

// itemBytesMax is the largest item, in DynamoDB bytes.
const itemBytesMax = 400 * 1024
