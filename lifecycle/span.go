package lifecycle

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/when"
)

// span is a length of time, in real time and in the calendar.
type span struct {
	months, days               int // of the calendar
	businessDays               int
	businessTime, exact        time.Duration
	negative, hasDays, hasTime bool
}

const (
	spanText  = 64
	yearsMost = 100
	daysMost  = yearsMost * 366
	exactMost = yearsMost * 366 * 24 * time.Hour
)

var spanPart = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]{1,12})\s*(business\s+)?([a-z]+)[\s,]*`)
})

var exactUnits = map[string]time.Duration{
	"ms": time.Millisecond, "millisecond": time.Millisecond, "s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "h": time.Hour, "hour": time.Hour,
}

// parseSpan parses "36h", "1d 12h", "-48h", "3 business days".
func parseSpan(text string) (s span, err error) {
	wrong := fmt.Errorf(`invalid length of time %q; use 90s, 36h, "1d 12h", "2 weeks", "1 month", "3 business days" or "4 business hours", up to %d years`, text[:min(len(text), spanText)], yearsMost)
	left := strings.ToLower(strings.TrimSpace(text))
	left, s.negative = strings.CutPrefix(left, "-")
	if left == "" || len(text) > spanText {
		return s, wrong
	}
	for left != "" {
		part := spanPart().FindStringSubmatch(left)
		if part == nil || !s.add(part[1], part[2] != "", part[3]) {
			if exact, ok := parseExact(text); ok {
				return exact, nil
			}
			return s, wrong
		}
		left = left[len(part[0]):]
	}
	return s, nil
}

// parseExact parses the other forms of durations that flags accept, such as 1.5h. It reports whether
// the text is one, within the limits and in whole milliseconds.
func parseExact(text string) (s span, ok bool) {
	d, err := when.Duration(text)
	s = span{exact: d.Abs(), negative: d < 0, hasTime: true}
	return s, err == nil && s.exact <= exactMost && d%time.Millisecond == 0
}

// add adds one part, and reports whether it is valid and within the limits.
func (s *span) add(digits string, business bool, unit string) bool {
	n, err := strconv.Atoi(digits)
	if err != nil || n > int(exactMost/time.Millisecond) {
		return false
	}
	exact, known := exactUnits[unit]
	if !known {
		exact, known = exactUnits[strings.TrimSuffix(unit, "s")]
	}
	if known {
		if int64(n) > int64(exactMost/exact) {
			return false
		}
		s.hasTime = true
		into := &s.exact
		if business {
			into = &s.businessTime
		}
		*into += time.Duration(n) * exact
		return *into <= exactMost
	}
	if n > daysMost {
		return false
	}
	s.hasDays = true
	switch strings.TrimSuffix(unit, "s") {
	case "d", "day":
		if business {
			s.businessDays += n
		} else {
			s.days += n
		}
	case "w", "week":
		s.days += 7 * n
	case "mo", "month":
		s.months += n
	case "y", "year":
		s.months += 12 * n
	default:
		return false
	}
	if business && unit != "d" && unit != "day" && unit != "days" {
		return false
	}
	return s.days <= daysMost && s.months <= 12*yearsMost && s.businessDays <= daysMost
}

// zero reports whether the span is empty.
func (s *span) zero() bool {
	return s.months == 0 && s.days == 0 && s.businessDays == 0 && s.businessTime == 0 && s.exact == 0
}

// business reports whether the span needs a calendar.
func (s *span) business() bool { return s.businessDays > 0 || s.businessTime > 0 }

// fixed parses a setting's duration, in which a day has 24 hours. An empty text returns the
// default.
func fixed(text string, otherwise, least, most time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	s, err := parseSpan(text)
	if err != nil {
		return 0, err
	}
	d := s.exact + time.Duration(s.days)*24*time.Hour
	if s.negative || s.business() || s.months > 0 || d < least || d > most {
		return 0, fmt.Errorf("%q is not between %s and %s", text, shortSpan(least), shortSpan(most))
	}
	return d, nil
}

// shortSpan returns a duration as text for messages.
func shortSpan(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	text := d.String()
	for _, tail := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, tail) {
			text = strings.TrimSuffix(text, tail[1:])
		}
	}
	return text
}
