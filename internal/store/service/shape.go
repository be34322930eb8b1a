package service

import "github.com/mayflydb/mayfly/internal/constraint"

// shape collects the members of a request that violate constraints of the API's model. One message
// names all of them, at most ten, before any other check. The zero shape is ready for use, and
// allocates nothing for a valid request. Its own methods check optional members: an absent one is
// valid.
type shape struct{ constraint.Problems }

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

// enum checks a member against its enumeration, and reports whether it is valid.
func (s *shape) enum(path string, v Opt[string], set []string) bool {
	return !v.Set || s.Enum(path, v.V, set)
}

// length checks the length of a string in characters.
func (s *shape) length(path string, v Opt[string], least, most int) {
	if v.Set {
		s.Length(path, v.V, least, most)
	}
}

// least checks that a number is not below a bound.
func (s *shape) least(path string, v Opt[int64], bound int64) {
	if v.Set {
		s.Least(path, v.V, bound)
	}
}

// most checks that a number is not above a bound.
func (s *shape) most(path string, v Opt[int64], bound int64) {
	if v.Set {
		s.Most(path, v.V, bound)
	}
}

// limit checks the size of a page.
func (s *shape) limit(v Opt[int64], most int64) {
	s.least("limit", v, 1)
	s.most("limit", v, most)
}

// name checks the name of an index, or of a table to start after: pattern, then length.
func (s *shape) name(path string, v Opt[string]) {
	if v.Set && !constraint.NameLetters(v.V) {
		s.pattern(path, v.V)
	}
	s.length(path, v, nameLengthMin, nameLengthMax)
}

func (s *shape) pattern(path, value string) { s.Pattern(path, value, "[a-zA-Z0-9_.-]+") }

// err returns the ValidationException that names all recorded problems, or nil.
func (s *shape) err() error {
	if !s.Any() {
		return nil
	}
	return invalid(s.Message())
}

// printedList returns a list of strings as the API prints it in a message.
func printedList(elems []string) string { return constraint.List(elems) }
