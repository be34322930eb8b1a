package program

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// span is a duration such as 250ms, 90s, 5m, 1h30m, 2d, "5 minutes" or "1 day 12 hours". A day is
// 24 hours.
type span time.Duration

// spanMax is the limit: 100 years of 365 days, as for the interval of a schedule.
const spanMax = 100 * 365 * 24 * time.Hour

var (
	spanPart  = regexp.MustCompile(`^\s*([0-9]{1,15})\s*([a-z]+)`)
	spanUnits = map[string]time.Duration{
		"ms": time.Millisecond, "millisecond": time.Millisecond, "s": time.Second, "sec": time.Second, "second": time.Second,
		"m": time.Minute, "min": time.Minute, "minute": time.Minute, "h": time.Hour, "hour": time.Hour,
		"d": 24 * time.Hour, "day": 24 * time.Hour, "w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour,
	}
)

// UnmarshalText implements encoding.TextUnmarshaler, for the command line.
func (s *span) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf("%q is not a duration; use 250ms, 90s, 5m, 1h30m or 2d, up to 100 years", text)
	tail, sum := strings.TrimSpace(string(text)), time.Duration(0)
	if tail == "" {
		return wrong
	}
	for tail != "" {
		part := spanPart.FindStringSubmatch(tail)
		if part == nil {
			return wrong
		}
		unit, known := spanUnits[part[2]]
		if !known {
			unit, known = spanUnits[strings.TrimSuffix(part[2], "s")]
		}
		n, err := strconv.ParseInt(part[1], 10, 64)
		if !known || err != nil || n > int64(spanMax/unit) {
			return wrong
		}
		if sum += time.Duration(n) * unit; sum > spanMax {
			return wrong
		}
		tail = tail[len(part[0]):]
	}
	*s = span(sum)
	return nil
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
