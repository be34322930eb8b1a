package timeseries

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// TimeFormat is the form of instants: "auto"; "s", "ms", "us" or "ns" for numbers since 1970; or a
// layout of package time.
type TimeFormat string

// FormatAuto accepts RFC 3339 and numbers. RFC 3339 may lack the zone, the seconds or the time, and
// may have a space for the T. The size of a number distinguishes seconds, milliseconds,
// microseconds and nanoseconds.
const FormatAuto TimeFormat = "auto"

var epochUnits = map[TimeFormat]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond}

func (f TimeFormat) validate() error {
	if _, known := epochUnits[f]; known || f == FormatAuto || f == "" {
		return nil
	}
	sample := time.Date(2031, 11, 22, 13, 44, 55, 0, time.UTC)
	if back, err := time.Parse(string(f), sample.Format(string(f))); err != nil || back.Year() != 2031 || back.YearDay() != sample.YearDay() {
		return fmt.Errorf("invalid time format %q; use auto, s, ms, us, ns, or a layout with a date such as 2006-01-02 15:04:05", string(f))
	}
	return nil
}

// read returns the instant of a text. The zone applies to texts without one.
func (f TimeFormat) read(text string, zone *time.Location) (time.Time, error) {
	if unit, ok := epochUnits[f]; ok {
		return readNumber(text, unit)
	}
	if f == FormatAuto || f == "" {
		return readAuto(text, zone)
	}
	t, err := time.ParseInLocation(string(f), text, zone)
	if err != nil {
		return t, fmt.Errorf("%q is not a time of the form %q", text, string(f))
	}
	return inGap(t, text, zone)
}

// withoutZone are the layouts that auto accepts besides RFC 3339. package time reads fractions
// after seconds in each.
var withoutZone = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"}

func readAuto(text string, zone *time.Location) (time.Time, error) {
	if len(text) > 64 {
		return time.Time{}, fmt.Errorf("%q… is not a time", text[:32])
	}
	if text != "" && strings.Trim(text, "+-.0123456789") == "" && strings.Count(text, "-") < 2 {
		return readNumber(text, 0)
	}
	form := text
	if len(form) > len(time.DateOnly) && (form[len(time.DateOnly)] == ' ' || form[len(time.DateOnly)] == 't') {
		form = form[:len(time.DateOnly)] + "T" + form[len(time.DateOnly)+1:]
	}
	if t, err := time.Parse(time.RFC3339Nano, form); err == nil {
		return t.UTC(), nil
	}
	for _, layout := range withoutZone {
		if t, err := time.ParseInLocation(layout, form, zone); err == nil {
			return inGap(t, form, zone)
		}
	}
	return time.Time{}, fmt.Errorf("invalid time %q; use 2030-01-01T12:00:00Z, 2030-01-01 12:00:00.250 or 1893499200", text)
}

// inGap refuses a wall time that a zone skips when its clock moves forward: the instant formatted
// again must read as the text. It can check only texts that begin like 2006-01-02T15:04. For an
// hour that occurs twice it returns the first.
func inGap(t time.Time, text string, zone *time.Location) (time.Time, error) {
	if zone == time.UTC {
		return t, nil
	}
	if wall := t.Format("2006-01-02T15:04:05"); len(text) >= 16 && text[10] == 'T' && !strings.HasPrefix(wall, text[:16]) {
		return t, fmt.Errorf("%q does not exist in %s: the clocks were put forward", text, zone)
	}
	// ParseInLocation may return either of two instants; the earlier one is at most two hours
	// before.
	for _, by := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour} {
		if before := t.Add(-by); before.Format(timeLayout[:19]) == t.Format(timeLayout[:19]) {
			return before.UTC(), nil
		}
	}
	return t.UTC(), nil
}

var errNumber = errors.New("out of range")

// readNumber returns the instant of a number of units since 1970. With unit 0 the size of the
// number decides.
func readNumber(text string, unit time.Duration) (time.Time, error) {
	wrong := func(err error) (time.Time, error) { return time.Time{}, fmt.Errorf("%q is not a time: %w", text, err) }
	whole, fraction, isFraction := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return wrong(errNumber)
	}
	if unit == 0 {
		switch a := math.Abs(float64(n)); {
		case a < 1e11: // until the year 5138
			unit = time.Second
		case a < 1e14:
			unit = time.Millisecond
		case a < 1e17:
			unit = time.Microsecond
		default:
			unit = time.Nanosecond
		}
	}
	var nanos int64
	if isFraction {
		if n < 0 || fraction == "" || len(fraction) > 9 || strings.Trim(fraction, "0123456789") != "" {
			return wrong(errors.New("invalid fraction"))
		}
		f, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
		nanos = f / (int64(time.Second) / int64(unit))
	}
	perSecond := int64(time.Second / unit)
	return time.Unix(n/perSecond, n%perSecond*int64(unit)+nanos).UTC(), nil
}
