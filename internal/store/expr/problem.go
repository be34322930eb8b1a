package expr

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Limits of one expression (docs/spec/limits-and-capacity.md §3).
const (
	maxExpression  = 4096    // bytes of an expression's text
	maxOperators   = 300     // operators and functions
	maxIn          = 100     // values in the list of an IN
	maxPlaceholder = 255     // bytes of a placeholder, its # or : included
	maxSubstituted = 2 << 20 // bytes of all placeholders with their names and values
	maxNesting     = maxOperators + 1
)

// problem is the message of an error in an expression, without its prefix "Invalid …Expression: ".
type problem string

func (p problem) Error() string { return string(p) }

// in returns the error for a problem in an expression of this kind.
func (p problem) in(kind string) *dynamo.Error {
	return dynamo.Invalid("Invalid " + kind + ": " + string(p))
}

// Texts of docs/spec/errors.md §11.
const (
	problemEmpty     problem = "The expression can not be empty;"
	problemParens    problem = "The expression has redundant parentheses;"
	problemOperators problem = "The expression contains too many operators; operator count: 301"
	problemNesting   problem = "Syntax error; expression nested too deeply"

	// These end with their subject: see about.
	problemReserved   problem = "Attribute name is a reserved keyword; reserved keyword: "
	problemName       problem = "An expression attribute name used in the document path is not defined; attribute name: "
	problemValue      problem = "An expression attribute value used in expression is not defined; attribute value: "
	problemFunction   problem = "Invalid function name; function: "
	problemMisused    problem = "The function is not allowed to be used this way in an expression; function: "
	problemIndex      problem = "List index is not within the allowable range; index: "
	problemPathNeeded problem = "Operator or function requires a document path; operator or function: "

	// msgInvalid begins messages about a parameter, as opposed to an expression.
	msgInvalid = "One or more parameter values were invalid: "
)

// about returns the problem with its subject.
func (p problem) about(subject string) problem { return p + problem(subject) }

func problemSize(n int) problem {
	return problem("Expression size has exceeded the maximum allowed size; expression size: " + strconv.Itoa(n))
}

func problemPathDepth(n int) problem {
	return problem("The document path has too many nesting levels; nesting levels: " + strconv.Itoa(n))
}

func problemForeign(article, name string) problem {
	return problem("The function is not allowed in " + article + " expression; function: " + name)
}

func problemCount(name string, n int) problem {
	return problem("Incorrect number of operands for operator or function; operator or function: " + name +
		", number of operands: " + strconv.Itoa(n))
}

func problemIn(n int) problem {
	return problem("The IN operator is provided with too many operands; number of operands: " + strconv.Itoa(n))
}

func problemType(name, kind string) problem {
	return problem("Incorrect operand type for operator or function; operator or function: " + name +
		", operand type: " + kind)
}

func problemSame(name, path string) problem {
	return problem("The first operand must be distinct from the remaining operands for this operator or function; operator: " +
		name + ", first operand: " + path)
}

func problemTypeName(name string) problem {
	return problem("Invalid attribute type name found; type: " + name + ", valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}")
}

func problemBounds(rule string, low, high dynamo.Value) problem {
	return problem("The BETWEEN operator requires " + rule +
		"; lower bound operand: " + describe(low) + ", upper bound operand: " + describe(high))
}

func problemPaths(relation, one, two string) problem {
	return problem("Two document paths " + relation + " with each other; must remove or rewrite one of these paths; path one: " +
		one + ", path two: " + two)
}

func problemSection(section string) problem {
	return problem(`The "` + section + `" section can only be used once in an update expression;`)
}

func problemOperand(section, kind string) problem {
	return problem("Incorrect operand type for operator or function; operator: " + section + ", operand type: " + kind)
}

// describe returns a scalar in the form of AWS's messages about BETWEEN: AttributeValue: {N:1}.
func describe(v dynamo.Value) string {
	var b strings.Builder
	b.WriteString("AttributeValue: {" + v.Kind().String() + ":")
	switch v.Kind() {
	case dynamo.KindString:
		b.Write(v.Bytes())
	case dynamo.KindNumber:
		b.WriteString(v.Number().String())
	case dynamo.KindBinary:
		b.WriteString(base64.StdEncoding.EncodeToString(v.Bytes()))
	}
	b.WriteByte('}')
	return b.String()
}
