package service

import (
	"github.com/mayflydb/mayfly/internal/constraint"
)

// shape collects the members of a request that violate constraints of the API's model. One message
// names all of them, at most ten, before any other check. The zero shape is ready for use, and
// allocates nothing for a valid request.
type shape struct{ problems constraint.Problems }

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

// fail records that value, at path, violates a constraint.
func (s *shape) fail(value, path, constraint string) { s.problems.Fail(value, path, constraint) }

// add records a problem with a text of its own.
func (s *shape) add(problem string) { s.problems.Add(problem) }

// null records that the required member at path is absent.
func (s *shape) null(path string) { s.problems.Null(path) }

// required checks that a member is present.
func (s *shape) required(path string, present bool) { s.problems.Required(path, present) }

// enum checks a member against its enumeration and reports whether it is valid. An absent member
// is.
func (s *shape) enum(path string, v Opt[string], set []string) bool {
	return !v.Set || s.problems.Enum(path, v.V, set)
}

// length checks the length of a string in characters. An absent string is valid.
func (s *shape) length(path string, v Opt[string], least, most int) {
	if v.Set {
		s.problems.Length(path, v.V, least, most)
	}
}

// count checks the number of elements of a list or map. printed returns the value as the API prints
// it.
func (s *shape) count(path string, n, least, most int, printed func() string) {
	s.problems.Count(path, n, least, most, printed)
}

// least checks that a number is not below a bound. An absent number is valid.
func (s *shape) least(path string, v Opt[int64], bound int64) {
	if v.Set {
		s.problems.Least(path, v.V, bound)
	}
}

// most checks that a number is not above a bound. An absent number is valid.
func (s *shape) most(path string, v Opt[int64], bound int64) {
	if v.Set {
		s.problems.Most(path, v.V, bound)
	}
}

// name checks an index name: pattern, then length. An absent name is valid.
func (s *shape) name(path string, v Opt[string]) {
	if v.Set && !constraint.NameLetters(v.V) {
		s.pattern(path, v.V)
	}
	s.length(path, v, nameLengthMin, nameLengthMax)
}

func (s *shape) pattern(path, value string) { s.problems.Pattern(path, value, "[a-zA-Z0-9_.-]+") }

// err returns the ValidationException that names all recorded problems, or nil.
func (s *shape) err() error {
	if !s.problems.Any() {
		return nil
	}
	return invalid(s.problems.Message())
}

// printedList returns a list of strings as the API prints it in a message.
func printedList(elems []string) string { return constraint.List(elems) }
