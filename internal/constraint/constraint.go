// Package constraint collects the members of a request that break the constraints of an API's model, in the words in which AWS names them. All of them are
// named in one message, the first ten at most, before anything else of the request is looked at:
//
//	1 validation error detected: Value '' at 'name' failed to satisfy constraint: Member must have length greater than or equal to 1
//
// It also says of what names of tables are made, and those of what users declare.
package constraint

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Max is how many problems one message names.
const Max = 10

// Problems are those found so far. The zero value is ready, and costs nothing as long as all is well.
type Problems struct{ found []string }

// Fail notes that value, at path, breaks a constraint.
func (p *Problems) Fail(value, path, constraint string) {
	p.Add("Value '" + value + "' at '" + path + "' failed to satisfy constraint: " + constraint)
}

// Add notes a problem in words of its own.
func (p *Problems) Add(problem string) {
	if len(p.found) < Max {
		p.found = append(p.found, problem)
	}
}

// Null notes that the member at path is required and absent.
func (p *Problems) Null(path string) {
	p.Add("Value null at '" + path + "' failed to satisfy constraint: Member must not be null")
}

// Required checks that a member is there.
func (p *Problems) Required(path string, present bool) {
	if !present {
		p.Null(path)
	}
}

// Enum checks a value against its enumeration, which is printed in the order given, and reports whether it is of it.
func (p *Problems) Enum(path, value string, set []string) bool {
	of := slices.Contains(set, value)
	if !of {
		p.Fail(value, path, "Member must satisfy enum value set: "+List(set))
	}
	return of
}

// Length checks the length of a string in characters.
func (p *Problems) Length(path, value string, least, most int) {
	p.Count(path, utf8.RuneCountInString(value), least, most, func() string { return value })
}

// Count checks the number of elements of a list or map; printed is the value as the API prints it.
func (p *Problems) Count(path string, n, least, most int, printed func() string) {
	switch {
	case n < least:
		p.Fail(printed(), path, "Member must have length greater than or equal to "+strconv.Itoa(least))
	case n > most:
		p.Fail(printed(), path, "Member must have length less than or equal to "+strconv.Itoa(most))
	}
}

// Least checks that a number is not below a bound.
func (p *Problems) Least(path string, v, bound int64) {
	if v < bound {
		p.Fail(strconv.FormatInt(v, 10), path, "Member must have value greater than or equal to "+strconv.FormatInt(bound, 10))
	}
}

// Most checks that a number is not above a bound.
func (p *Problems) Most(path string, v, bound int64) {
	if v > bound {
		p.Fail(strconv.FormatInt(v, 10), path, "Member must have value less than or equal to "+strconv.FormatInt(bound, 10))
	}
}

// Pattern notes that a value does not match a regular expression, which is printed as it is given.
func (p *Problems) Pattern(path, value, pattern string) {
	p.Fail(value, path, "Member must satisfy regular expression pattern: "+pattern)
}

// Any reports whether there is a problem.
func (p *Problems) Any() bool { return len(p.found) > 0 }

// Message names everything collected; it is empty where there is nothing.
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

// List is a list of strings as the API prints it in a message.
func List(elems []string) string { return "[" + strings.Join(elems, ", ") + "]" }
