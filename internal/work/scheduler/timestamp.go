package scheduler

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Timestamp is an instant in the API: a JSON number of seconds since 1970, with a fraction of up to
// three digits. The zero Timestamp stands for a missing one.
type Timestamp struct{ time.Time }

// at returns the instant t, truncated to the millisecond.
func at(t time.Time) Timestamp { return Timestamp{time.UnixMilli(t.UnixMilli()).UTC()} }

// time returns the instant of an optional member.
func (t *Timestamp) time() time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// MarshalJSON returns the number, with up to three decimals.
func (t Timestamp) MarshalJSON() ([]byte, error) { return []byte(attr.SecondsText(t.Time)), nil }

// errTimestamp is the error for an invalid timestamp. It is part of the text of a
// SerializationException.
var errTimestamp = errors.New("a timestamp is a number of seconds since 1970-01-01T00:00:00Z, not after the year 9999")

// UnmarshalJSON parses the number.
func (t *Timestamp) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	read, ok := parseSeconds(string(text))
	if !ok || !isWritable(read) {
		return errTimestamp
	}
	t.Time = read
	return nil
}

// isWritable reports whether the year has at most four digits, as time formats require.
func isWritable(t time.Time) bool { return 1 <= t.Year() && t.Year() <= 9999 }

// parseSeconds parses a decimal number of seconds, to the nearest millisecond.
func parseSeconds(text string) (time.Time, bool) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(math.Abs(seconds) <= 1e12) { // up to here a float64 has exact milliseconds
		return time.Time{}, false
	}
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC(), true
}
