// Package constraint collects the members of a request that break the constraints of an API's
// model, in AWS's words. One message names all of them, at most ten, before the request is
// processed further:
//
//	1 validation error detected: Value '' at 'name' failed to satisfy constraint: Member must have length greater than or equal to 1
//
// It also validates names of tables, and names of declarations.
package constraint

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Max is the most problems in a message.
const Max = 10

// Problems collects problems. The zero value is ready, and costs nothing while there are none.
type Problems struct{ found []string }

// Fail records that the value at path breaks a constraint.
func (p *Problems) Fail(value, path, constraint string) {
	p.Add("Value '" + value + "' at '" + path + "' failed to satisfy constraint: " + constraint)
}

// Add records a problem in other words.
func (p *Problems) Add(problem string) {
	if len(p.found) < Max {
		p.found = append(p.found, problem)
	}
}

// Null records that the required member at path is absent.
func (p *Problems) Null(path string) {
	p.Add("Value null at '" + path + "' failed to satisfy constraint: Member must not be null")
}

// Required checks that a member is present.
func (p *Problems) Required(path string, present bool) {
	if !present {
		p.Null(path)
	}
}

// Enum checks a value against its enumeration, and reports whether the enumeration contains it. The
// message lists set in the given order.
func (p *Problems) Enum(path, value string, set []string) bool {
	found := slices.Contains(set, value)
	if !found {
		p.Fail(value, path, "Member must satisfy enum value set: "+List(set))
	}
	return found
}

// Length checks the length of a string in characters.
func (p *Problems) Length(path, value string, least, most int) {
	p.Count(path, utf8.RuneCountInString(value), least, most, func() string { return value })
}

// Count checks the number of elements of a list or map; printed returns the value in the API's
// format.
func (p *Problems) Count(path string, n, least, most int, printed func() string) {
	switch {
	case n < least:
		p.Fail(printed(), path, "Member must have length greater than or equal to "+strconv.Itoa(least))
	case n > most:
		p.Fail(printed(), path, "Member must have length less than or equal to "+strconv.Itoa(most))
	}
}

// Least checks that a number is at least a bound.
func (p *Problems) Least(path string, v, bound int64) {
	if v < bound {
		p.Fail(strconv.FormatInt(v, 10), path, "Member must have value greater than or equal to "+strconv.FormatInt(bound, 10))
	}
}

// Most checks that a number is at most a bound.
func (p *Problems) Most(path string, v, bound int64) {
	if v > bound {
		p.Fail(strconv.FormatInt(v, 10), path, "Member must have value less than or equal to "+strconv.FormatInt(bound, 10))
	}
}

// Pattern records that a value does not match a regular expression, which the message quotes.
func (p *Problems) Pattern(path, value, pattern string) {
	p.Fail(value, path, "Member must satisfy regular expression pattern: "+pattern)
}

// Any reports whether there is a problem.
func (p *Problems) Any() bool { return len(p.found) > 0 }

// Message returns the message for all problems, or an empty text if there are none.
func (p *Problems) Message() string {
	switch n := len(p.found); n {
	case 0:
		return ""
	case 1:
		return "1 validation error detected: " + p.found[0]
	default:
		return strconv.Itoa(n) + " validation errors detected: " + strings.Join(p.found, "; ")
	}
}

// List returns a list of strings in the API's format.
func List(elems []string) string { return "[" + strings.Join(elems, ", ") + "]" }
