package scheduler

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// Timestamp is an instant as the API writes it: a JSON number of seconds since 1970, with a fraction. It is kept to the millisecond; the zero
// Timestamp is none.
type Timestamp struct{ time.Time }

// at is the instant t, cut to the millisecond.
func at(t time.Time) Timestamp { return Timestamp{time.UnixMilli(t.UnixMilli()).UTC()} }

// time is the instant of a member that may be missing.
func (t *Timestamp) time() time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// MarshalJSON writes the number, with up to three digits behind the point.
func (t Timestamp) MarshalJSON() ([]byte, error) { return appendSeconds(nil, t.Time), nil }

// errTimestamp is what is wrong with a timestamp that cannot be read. It is part of a SerializationException's text.
var errTimestamp = errors.New("a timestamp is a number of seconds since 1970-01-01T00:00:00Z, not after the year 9999")

// UnmarshalJSON reads the number.
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

// isWritable reports whether an instant's year has up to four digits, as formats of time demand.
func isWritable(t time.Time) bool { return 1 <= t.Year() && t.Year() <= 9999 }

// appendSeconds writes an instant as a decimal number of seconds, cut to the millisecond.
func appendSeconds(dst []byte, t time.Time) []byte {
	millis := t.UnixMilli()
	if millis < 0 {
		dst, millis = append(dst, '-'), -millis
	}
	dst = strconv.AppendInt(dst, millis/1000, 10)
	if fraction := millis % 1000; fraction != 0 {
		digits := strconv.AppendInt(nil, 1000+fraction, 10)[1:]
		for digits[len(digits)-1] == '0' {
			digits = digits[:len(digits)-1]
		}
		dst = append(append(dst, '.'), digits...)
	}
	return dst
}

// secondsText is appendSeconds as a string.
func secondsText(t time.Time) string { return string(appendSeconds(nil, t)) }

// parseSeconds reads a decimal number of seconds, to the nearest millisecond.
func parseSeconds(text string) (time.Time, bool) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(math.Abs(seconds) <= 1e12) { // so far, its milliseconds are exact in a float64
		return time.Time{}, false
	}
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC(), true
}
