package service

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// shape collects the members of a request that break the API model's constraints. All of them are named in one
// message, the first ten at most, before anything else of the request is looked at. The zero shape is ready, and costs
// nothing as long as all is well.
type shape struct{ problems []string }

// shapeProblemsMax is how many problems one message names.
const shapeProblemsMax = 10

// The enumerations, in the order in which the API prints them.
var (
	enumCapacity       = []string{"INDEXES", "TOTAL", "NONE"}
	enumCollection     = []string{"SIZE", "NONE"}
	enumReturnValues   = []string{"ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"}
	enumReturnOnFail   = []string{"ALL_OLD", "NONE"}
	enumSelect         = []string{"SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"}
	enumOperator       = []string{"OR", "AND"}
	enumComparison     = []string{"IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT", "NOT_NULL", "NE", "LE", "BEGINS_WITH", "GE", "CONTAINS"}
	enumAction         = []string{"ADD", "PUT", "DELETE"}
	enumAttributeType  = []string{"B", "N", "S"}
	enumKeyType        = []string{"HASH", "RANGE"}
	enumProjection     = []string{"ALL", "INCLUDE", "KEYS_ONLY"}
	enumBilling        = []string{"PROVISIONED", "PAY_PER_REQUEST"}
	enumTableClass     = []string{"STANDARD", "STANDARD_INFREQUENT_ACCESS"}
	enumIteratorType   = []string{"AFTER_SEQUENCE_NUMBER", "LATEST", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON"}
	enumStreamViewType = []string{"NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"}
)

// fail notes that value, at path, breaks a constraint.
func (s *shape) fail(value, path, constraint string) {
	s.add("Value '" + value + "' at '" + path + "' failed to satisfy constraint: " + constraint)
}

func (s *shape) add(problem string) {
	if len(s.problems) < shapeProblemsMax {
		s.problems = append(s.problems, problem)
	}
}

// null notes that the member at path is required and absent.
func (s *shape) null(path string) {
	s.add("Value null at '" + path + "' failed to satisfy constraint: Member must not be null")
}

// required checks that a member is there.
func (s *shape) required(path string, present bool) {
	if !present {
		s.null(path)
	}
}

// enum checks a member against its enumeration; absent is fine.
func (s *shape) enum(path string, v Opt[string], set []string) {
	if !v.Set {
		return
	}
	for _, allowed := range set {
		if v.V == allowed {
			return
		}
	}
	s.fail(v.V, path, "Member must satisfy enum value set: ["+strings.Join(set, ", ")+"]")
}

// length checks the length of a string in characters; absent is fine.
func (s *shape) length(path string, v Opt[string], least, most int) {
	if !v.Set {
		return
	}
	switch n := utf8.RuneCountInString(v.V); {
	case n < least:
		s.fail(v.V, path, "Member must have length greater than or equal to "+strconv.Itoa(least))
	case n > most:
		s.fail(v.V, path, "Member must have length less than or equal to "+strconv.Itoa(most))
	}
}

// count checks the number of elements of a list or map; printed is the value as the API prints it.
func (s *shape) count(path string, n, least, most int, printed func() string) {
	switch {
	case n < least:
		s.fail(printed(), path, "Member must have length greater than or equal to "+strconv.Itoa(least))
	case n > most:
		s.fail(printed(), path, "Member must have length less than or equal to "+strconv.Itoa(most))
	}
}

// least checks that a number is not below a bound; absent is fine.
func (s *shape) least(path string, v Opt[int64], bound int64) {
	if v.Set && v.V < bound {
		s.fail(strconv.FormatInt(v.V, 10), path, "Member must have value greater than or equal to "+strconv.FormatInt(bound, 10))
	}
}

// most checks that a number is not above a bound; absent is fine.
func (s *shape) most(path string, v Opt[int64], bound int64) {
	if v.Set && v.V > bound {
		s.fail(strconv.FormatInt(v.V, 10), path, "Member must have value less than or equal to "+strconv.FormatInt(bound, 10))
	}
}

// name checks an index name: pattern, then length. Absent is fine.
func (s *shape) name(path string, v Opt[string]) {
	if v.Set && !isName(v.V) {
		s.pattern(path, v.V)
	}
	s.length(path, v, nameLengthMin, nameLengthMax)
}

func (s *shape) pattern(path, value string) {
	s.fail(value, path, "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
}

// err is nil, or the ValidationException that names everything collected.
func (s *shape) err() error {
	switch n := len(s.problems); n {
	case 0:
		return nil
	case 1:
		return invalid(envelope + s.problems[0])
	default:
		return invalid(strconv.Itoa(n) + " validation errors detected: " + strings.Join(s.problems, "; "))
	}
}

// printedList is a list of strings as the API prints it in a message.
func printedList(elems []string) string { return "[" + strings.Join(elems, ", ") + "]" }
