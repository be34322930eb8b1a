package program

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// span is a duration such as 250ms, 90s, 5m, 1h30m, 2d, "5 minutes" or "1 day 12 hours". A day is
// 24 hours.
type span time.Duration

// spanMax is the limit: 100 years of 365 days, as for the interval of a schedule.
const spanMax = 100 * 365 * 24 * time.Hour

var spanUnits = map[string]time.Duration{
	"ms": time.Millisecond, "millisecond": time.Millisecond, "s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour,
}

// UnmarshalText implements encoding.TextUnmarshaler, for the command line.
func (s *span) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf("%q is not a duration; use 250ms, 90s, 5m, 1h30m or 2d, up to 100 years", text)
	tail, sum := strings.TrimSpace(string(text)), time.Duration(0)
	if tail == "" {
		return wrong
	}
	for tail != "" {
		var digits, name string
		digits, tail = cutPrefixOf(tail, '0', '9')
		name, tail = cutPrefixOf(tail, 'a', 'z')
		unit, known := spanUnits[name]
		if !known {
			unit, known = spanUnits[strings.TrimSuffix(name, "s")]
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if !known || err != nil || n > int64(spanMax/unit) {
			return wrong
		}
		if sum += time.Duration(n) * unit; sum > spanMax {
			return wrong
		}
	}
	*s = span(sum)
	return nil
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

// String returns the two largest units: "2d 3h", "4m", "250ms".
func (s span) String() string {
	d := time.Duration(s)
	if d < 0 {
		return "-" + span(-d).String()
	}
	units := []struct {
		name   string
		length time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}
	for i, u := range units {
		if d < u.length {
			continue
		}
		text := strconv.FormatInt(int64(d/u.length), 10) + u.name
		if i+1 < len(units) && d%u.length >= units[i+1].length {
			text += " " + strconv.FormatInt(int64(d%u.length/units[i+1].length), 10) + units[i+1].name
		}
		return text
	}
	return "0ms"
}
