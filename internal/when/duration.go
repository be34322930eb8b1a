package when

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration parses a duration: whole numbers with units, such as 250ms, 90s, 1h30m, 2d, 2w,
// "5 minutes" or "1 day 12 hours", or any text that time.ParseDuration accepts, such as 1.5h, 100us
// or -5s. A day is 24 hours. The range is that of time.Duration, 292 years.
func Duration(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	tail, sum := strings.TrimSpace(text), time.Duration(0)
	wrong := fmt.Errorf("%q is not a duration; use 250ms, 90s, 1h30m, 2d or 2w", text)
	if tail == "" {
		return 0, wrong
	}
	for tail != "" {
		var digits, name string
		digits, tail = cutPrefixOf(tail, '0', '9')
		name, tail = cutPrefixOf(tail, 'a', 'z')
		unit := unitOf(name)
		n, err := strconv.ParseInt(digits, 10, 64)
		if unit == 0 || err != nil || n > (math.MaxInt64-int64(sum))/int64(unit) {
			return 0, wrong
		}
		sum += time.Duration(n) * unit
	}
	return sum, nil
}

// unitOf returns the length of a unit of time by its name, or 0.
func unitOf(name string) time.Duration {
	if len(name) > 1 && name != "ms" {
		name = strings.TrimSuffix(name, "s")
	}
	switch name {
	case "ms", "millisecond":
		return time.Millisecond
	case "s", "sec", "second":
		return time.Second
	case "m", "min", "minute":
		return time.Minute
	case "h", "hour":
		return time.Hour
	case "d", "day":
		return 24 * time.Hour
	case "w", "week":
		return 7 * 24 * time.Hour
	}
	return 0
}

// cutPrefixOf returns the characters from first to last at the beginning of a text, after blanks, and
// the rest of it.
func cutPrefixOf(text string, first, last byte) (prefix, rest string) {
	text = strings.TrimLeft(text, " \t\r\n\f")
	n := 0
	for n < len(text) && first <= text[n] && text[n] <= last {
		n++
	}
	return text[:n], text[n:]
}
