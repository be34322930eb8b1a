package pattern

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Numbers are compared in millionths, in the range of AWS's matcher.
const (
	fixedDigits = 6
	maxFixed    = 5_000_000_000 * 1_000_000
	minFixed    = -maxFixed
)

// parseFixed parses a JSON number as millionths. ok is false unless the number is from -5e9 to 5e9
// with at most six decimals.
func parseFixed(s string) (n int64, ok bool) {
	s, negative := strings.CutPrefix(s, "-")
	digits, exponent, ok := split(s)
	if !ok {
		return 0, false
	}
	digits = strings.TrimLeft(digits, "0")
	for strings.HasSuffix(digits, "0") {
		digits, exponent = digits[:len(digits)-1], exponent+1
	}
	if digits == "" {
		return 0, true
	}
	shift := exponent + fixedDigits
	if shift < 0 || len(digits)+shift > 16 { // 5e15 has 16 digits
		return 0, false
	}
	for _, c := range []byte(digits) {
		n = n*10 + int64(c-'0')
	}
	for range shift {
		n *= 10
	}
	if n > maxFixed {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

// split returns the digits of an unsigned number, and the power of ten of the last digit.
func split(s string) (digits string, exponent int, ok bool) {
	mantissa := s
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		// an exponent of more than four digits exceeds every number that can be compared
		var err error
		if exponent, err = strconv.Atoi(s[i+1:]); err != nil || exponent < -9999 || exponent > 9999 {
			return "", 0, false
		}
		mantissa = s[:i]
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	if !allDigits(whole) || point && !allDigits(fraction) || len(whole)+len(fraction) > 400 {
		return "", 0, false
	}
	return whole + fraction, exponent - len(fraction), true
}

func allDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

func outOfRange(value json.RawMessage) string {
	return fmt.Sprintf("%s is not a number from -5e9 to 5e9 with at most six digits after the point", value)
}
