package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// family is the type of the values that an operator compares.
type family uint8

const (
	textFamily family = iota
	arnFamily
	numberFamily
	dateFamily
	boolFamily
	addressFamily
	nullFamily
)

// relation is the relation of a request's number or instant to the policy's.
type relation uint8

const (
	equal relation = iota
	less
	lessOrEqual
	greater
	greaterOrEqual
)

// operator is a condition operator without its set operator and IfExists.
type operator struct {
	family   family
	relation relation
	negated  bool
	wildcard bool // * and ? in the value are wildcards
	fold     bool // ignores case
}

// operators are the condition operators. BinaryEquals is not among them, since no key is binary.
var operators = map[string]operator{
	"StringEquals":              {},
	"StringNotEquals":           {negated: true},
	"StringEqualsIgnoreCase":    {fold: true},
	"StringNotEqualsIgnoreCase": {fold: true, negated: true},
	"StringLike":                {wildcard: true},
	"StringNotLike":             {wildcard: true, negated: true},

	"NumericEquals":            {family: numberFamily},
	"NumericNotEquals":         {family: numberFamily, negated: true},
	"NumericLessThan":          {family: numberFamily, relation: less},
	"NumericLessThanEquals":    {family: numberFamily, relation: lessOrEqual},
	"NumericGreaterThan":       {family: numberFamily, relation: greater},
	"NumericGreaterThanEquals": {family: numberFamily, relation: greaterOrEqual},

	"DateEquals":            {family: dateFamily},
	"DateNotEquals":         {family: dateFamily, negated: true},
	"DateLessThan":          {family: dateFamily, relation: less},
	"DateLessThanEquals":    {family: dateFamily, relation: lessOrEqual},
	"DateGreaterThan":       {family: dateFamily, relation: greater},
	"DateGreaterThanEquals": {family: dateFamily, relation: greaterOrEqual},

	"Bool":         {family: boolFamily},
	"IpAddress":    {family: addressFamily},
	"NotIpAddress": {family: addressFamily, negated: true},

	"ArnEquals":    {family: arnFamily, wildcard: true},
	"ArnLike":      {family: arnFamily, wildcard: true},
	"ArnNotEquals": {family: arnFamily, wildcard: true, negated: true},
	"ArnNotLike":   {family: arnFamily, wildcard: true, negated: true},

	"Null": {family: nullFamily},
}

// set is a set operator: how many values of the request must match.
type set uint8

const (
	noSet set = iota
	forAllValues
	forAnyValue
)

// parseOperator returns the parts of an operator such as "ForAllValues:StringLikeIfExists".
func parseOperator(written string) (op operator, s set, ifExists bool, err error) {
	name := written
	if rest, ok := strings.CutPrefix(name, "ForAllValues:"); ok {
		s, name = forAllValues, rest
	} else if rest, ok := strings.CutPrefix(name, "ForAnyValue:"); ok {
		s, name = forAnyValue, rest
	}
	name, ifExists = strings.CutSuffix(name, "IfExists")
	op, known := operators[name]
	switch {
	case name == "BinaryEquals":
		return op, s, ifExists, fmt.Errorf("%s compares binary keys, and mayfly has none; remove the statement, or use another operator", written)
	case !known:
		return op, s, ifExists, fmt.Errorf("unknown operator %q; use one of %s", written, operatorNames())
	case op.family == nullFamily && (ifExists || s != noSet):
		return op, s, ifExists, fmt.Errorf("%s: Null takes no set operator and no IfExists; write Null", written)
	}
	return op, s, ifExists, nil
}

func operatorNames() string {
	return strings.Join(slices.Sorted(maps.Keys(operators)), ", ") +
		", with ForAllValues: or ForAnyValue: before it and IfExists after it"
}

// operatorsFor returns the beginnings of the operators that compare a key, for messages.
func operatorsFor(k Key) string {
	names := map[family]string{
		textFamily: "String…", arnFamily: "Arn…", numberFamily: "Numeric…", dateFamily: "Date…", boolFamily: "Bool", addressFamily: "IpAddress or NotIpAddress",
	}
	var all []string
	for _, f := range keys[k].families {
		all = append(all, names[f])
	}
	return strings.Join(append(all, "Null"), ", ")
}
