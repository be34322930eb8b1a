// Package ttl judges the values of TTL attributes: which of them are deadlines, and which are
// mistakes.
//
// A mistake is a value that was meant as a deadline, and by which no item expires when it should: a
// number of milliseconds, a string of digits, or a deadline in a nested map. The package knows
// neither the database's values nor the SDK's, so that the server and the programs at any endpoint
// share it. Instants are milliseconds since 1970, and the caller passes the present one.
package ttl

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

const (
	// SecondsMax is the largest number of seconds that counts as plausible: 5138-11-16. Every number
	// of milliseconds since March 1973 is larger.
	SecondsMax = 100_000_000_000
	// TooOld is the age in milliseconds from which a deadline counts as a mistake: 5 × 365 days, as
	// at Amazon (docs/spec/ttl.md §9). Items with such a value never expire.
	TooOld = 5 * 365 * 24 * 60 * 60 * 1000
)

// Reason is why a value is taken for a mistake.
type Reason int

// The reasons. Good is the zero value: the value is a deadline, or deliberately absent.
const (
	Good         Reason = iota
	Milliseconds        // a number of milliseconds since 1970
	Microseconds
	Nanoseconds
	TooFar   // a number beyond all of these
	Negative // zero or less
	Past     // more than TooOld in the past
	String   // a string, even of digits
	Type     // another type that is not a number
	Nested   // the attribute is in a map; TTL reads top-level attributes only
	Case     // an attribute has the name in other letters, such as Expires for expires
	Absent   // the item has no such attribute; never a mistake
	reasons
)

// Reasons is the number of reasons, for arrays with an element for each.
const Reasons = int(reasons)

// texts has the name of each reason in metrics and reports, the fault, and the remedy.
var texts = [Reasons]struct{ name, why, fix string }{
	Good:         {"good", "is a deadline", ""},
	Milliseconds: {"milliseconds", "looks like milliseconds", "divide it by 1,000: TTL is in seconds"},
	Microseconds: {"microseconds", "looks like microseconds", "divide it by 1,000,000: TTL is in seconds"},
	Nanoseconds:  {"nanoseconds", "looks like nanoseconds", "divide it by 1,000,000,000: TTL is in seconds"},
	TooFar:       {"too_far", "is after the year 5138", "write seconds since 1970, or leave the attribute out if the item is to stay"},
	Negative:     {"not_positive", "is not after 1970", "write seconds since 1970, or leave the attribute out if the item is to stay"},
	Past:         {"five_years_past", "is more than five years in the past, so it never counts", "write seconds since 1970, which is now plus the lifetime, and not the lifetime alone"},
	String:       {"string", "is a string", "write a number: {\"N\":\"…\"}"},
	Type:         {"type", "is not a number", "write a number: {\"N\":\"…\"}"},
	Nested:       {"nested", "is inside a map, where TTL does not look", "write it as an attribute of the item itself"},
	Case:         {"name_case", "has a name that differs in upper and lower case", "write the name exactly as the table's TTL has it"},
	Absent:       {"absent", "is absent", ""},
}

// String returns the reason's name, such as "milliseconds".
func (r Reason) String() string { return texts[r].name }

// Why returns the fault as a predicate of the value: "looks like milliseconds".
func (r Reason) Why() string { return texts[r].why }

// Fix returns the remedy in the imperative, or "" if there is no mistake.
func (r Reason) Fix() string { return texts[r].fix }

// Mistake reports whether the reason is a mistake: the value was meant as a deadline and is none.
func (r Reason) Mistake() bool { return r != Good && r != Absent }

// Plausible reports whether a deadline in milliseconds is none of the mistakes. It is the test that
// each write makes.
func Plausible(at, now int64) bool { return at > 0 && at > now-TooOld && at <= SecondsMax*1000 }

// OfNumber returns the reason for a TTL value of so many seconds.
func OfNumber(seconds float64, now int64) Reason {
	switch {
	case !(seconds > 0):
		return Negative
	case seconds <= float64(now-TooOld)/1000:
		return Past
	case seconds <= SecondsMax:
		return Good
	}
	for i, unit := range []float64{1e3, 1e6, 1e9} { // the advice to divide must lead to a deadline
		if s := seconds / unit; s > float64(now-TooOld)/1000 && s < SecondsMax {
			return Milliseconds + Reason(i)
		}
	}
	return TooFar
}

// Deadline returns the instant that a number's text names, rounded up to the millisecond, or the
// reason why it is no deadline. A text that is no number is of another Type.
func Deadline(number string, now int64) (at int64, reason Reason) {
	seconds, err := strconv.ParseFloat(number, 64)
	if math.IsNaN(seconds) || err != nil && !math.IsInf(seconds, 0) {
		return 0, Type
	}
	if reason = OfNumber(seconds, now); reason != Good {
		return 0, reason
	}
	exact, ok := new(big.Rat).SetString(number) // small: the float is within the plausible range
	if !ok {
		return 0, Type
	}
	exact.Mul(exact, big.NewRat(1000, 1))
	whole, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
	at = whole.Int64()
	if rest.Sign() > 0 {
		at++
	}
	switch { // the float was rounded to the limit
	case at <= now-TooOld:
		return 0, Past
	case at > SecondsMax*1000:
		return 0, TooFar
	}
	return at, Good
}

// SameButCase reports whether two different names are equal except for upper and lower case.
func SameButCase(a, b string) bool {
	return len(a) == len(b) && a != b && strings.EqualFold(a, b)
}

// IsDigits reports whether a text has only digits, so that it may be meant as a number of seconds.
func IsDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// Path splits an attribute's name that looks like a path into a map, such as "meta.expires". ok is
// false for other names.
func Path(attribute string) (outer, inner string, ok bool) {
	outer, inner, ok = strings.Cut(attribute, ".")
	return outer, inner, ok && outer != "" && inner != ""
}
