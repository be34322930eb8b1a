package expr

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// The kinds of value that comparisons take: those with an order, and those with a prefix.
var (
	scalarKinds = []dynamo.Kind{dynamo.KindString, dynamo.KindNumber, dynamo.KindBinary}
	textKinds   = []dynamo.Kind{dynamo.KindString, dynamo.KindBinary}
)

// comparison is one of the thirteen values of ComparisonOperator. AWS checks key condition
// expressions by the same rules, because it turns them into the legacy form.
type comparison struct {
	least, most int           // number of arguments; most < 0: any number
	kinds       []dynamo.Kind // the allowed kinds of the arguments; nil: all
}

var comparisons = map[string]comparison{
	"EQ":           {1, 1, nil},
	"NE":           {1, 1, nil},
	"LE":           {1, 1, scalarKinds},
	"LT":           {1, 1, scalarKinds},
	"GE":           {1, 1, scalarKinds},
	"GT":           {1, 1, scalarKinds},
	"BETWEEN":      {2, 2, scalarKinds},
	"BEGINS_WITH":  {1, 1, textKinds},
	"CONTAINS":     {1, 1, scalarKinds},
	"NOT_CONTAINS": {1, 1, scalarKinds},
	"IN":           {1, -1, scalarKinds},
	"NULL":         {0, 0, nil},
	"NOT_NULL":     {0, 0, nil},
}

// checkArguments checks the number and the types of the arguments of a comparison, and that the
// lower bound of BETWEEN is not above the upper one (docs/spec/errors.md §12). operator is a key of
// comparisons.
func checkArguments(operator string, values []dynamo.Value) error {
	c := comparisons[operator]
	if len(values) < c.least || c.most >= 0 && len(values) > c.most {
		return dynamo.Invalid(msgInvalid + "Invalid number of argument(s) for the " + operator + " ComparisonOperator")
	}
	for _, v := range values {
		if v.Kind() != values[0].Kind() {
			return dynamo.Invalid(msgInvalid + "AttributeValues inside AttributeValueList must be of same type")
		}
	}
	for _, v := range values {
		if c.kinds != nil && !slices.Contains(c.kinds, v.Kind()) {
			return dynamo.Invalid(msgInvalid + "ComparisonOperator " + operator + " is not valid for " + v.Kind().String() +
				" AttributeValue type")
		}
	}
	if operator == "BETWEEN" && dynamo.Compare(values[0], values[1]) > 0 {
		return dynamo.Invalid("The BETWEEN condition was provided a range where the lower bound is greater than the upper bound")
	}
	return nil
}
