package when

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Moment is an instant with the form of its text.
type Moment struct {
	At       time.Time // in UTC, whole milliseconds
	Wall     string    // a local time as yyyy-mm-ddThh:mm:ss, with or without .fff; "": the text has a zone or is relative
	Relative bool      // to now
}

var wallForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(\.[0-9]{1,3})?)?$`)
})

// Instant parses an instant: a date, which is midnight, or a local time, such as
// 2030-01-01T12:00:00.250 or "2030-01-01 12:00", both in the zone; RFC 3339, such as
// 2030-01-01T12:00:00+01:00; now; or a distance from now, such as "in 5m" or +5m. If now is nil,
// instants relative to now are errors. Instant rounds up to milliseconds and returns UTC.
//
// If a clock change skips a local time, Instant returns the instant without the change. If the clocks
// show it twice, Instant returns the first one.
func Instant(text string, zone *time.Location, now func() time.Time) (time.Time, error) {
	m, err := Parse(text, zone, now)
	return m.At, err
}

// Parse parses an instant as Instant does, and returns it with the form of the text.
func Parse(text string, zone *time.Location, now func() time.Time) (Moment, error) {
	if wall := wallForm().FindStringSubmatch(text); wall != nil {
		return parseWall(text, wall, zone)
	}
	if t, err := time.Parse(time.RFC3339Nano, strings.Replace(text, " ", "T", 1)); err == nil {
		return Moment{At: Ceil(t, time.Millisecond)}, nil
	}
	distance, relative, err := parseDistance(text)
	switch {
	case now == nil:
		return Moment{}, fmt.Errorf("invalid time %q; use 2030-01-01, 2030-01-01T12:00:00Z or 2030-01-01T12:00:00+01:00", text)
	case !relative:
		return Moment{}, fmt.Errorf(`invalid time %q; use 2030-01-01, 2030-01-01T12:00:00, 2030-01-01T12:00:00Z, 2030-01-01T12:00:00+01:00, "in 5m" or now`, text)
	case err != nil:
		return Moment{}, err
	}
	return Moment{At: Ceil(now().Add(distance), time.Millisecond), Relative: true}, nil
}

// parseDistance parses now, "in 5m" or +5m. It reports whether the text has one of these forms.
func parseDistance(text string) (distance time.Duration, relative bool, err error) {
	if text == "now" {
		return 0, true, nil
	}
	after, relative := strings.CutPrefix(text, "+")
	if !relative {
		after, relative = strings.CutPrefix(text, "in ")
	}
	switch distance, err = Duration(after); {
	case err != nil:
		return 0, relative, err
	case strings.ContainsAny(after, "+-"):
		return 0, relative, fmt.Errorf("%q is not a duration from now on; use 250ms, 90s, 1h30m, 2d or 2w, without a sign", after)
	}
	return distance, relative, nil
}

// parseWall parses a local time of the zone from the parts of wallForm.
func parseWall(text string, part []string, zone *time.Location) (Moment, error) {
	if part[4] != "" && part[3] == "" {
		return Moment{}, fmt.Errorf("invalid time %q: it has a fraction but no seconds", text)
	}
	wall := part[1] + "T" + cmp.Or(part[2], "00:00") + cmp.Or(part[3], ":00") + part[4]
	t, err := time.Parse("2006-01-02T15:04:05.999", wall)
	if err == nil && t.Year() < 1970 {
		err = errors.New("too early")
	}
	at := firstShown(zone, t)
	if err != nil || at.Year() > 9999 {
		return Moment{}, fmt.Errorf("invalid time %q: no such date or time from 1970 to 9999", text)
	}
	return Moment{At: at, Wall: wall}, nil
}

// firstShown returns the first instant at which the clocks of the zone show what t shows in UTC. If a
// clock change skips that time, it returns the instant without the change. It assumes that clocks do
// not change twice within 32 hours; no zone has done so since 1970.
func firstShown(zone *time.Location, t time.Time) time.Time {
	const farthest = 16 * time.Hour // exceeds every offset from UTC
	offset := func(t time.Time) time.Duration {
		_, seconds := t.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := offset(t.Add(-farthest)), offset(t.Add(farthest))
	if at := t.Add(-after); offset(t.Add(-before)) != before && offset(at) == after {
		return at
	}
	return t.Add(-before)
}

// Ceil returns t in UTC, rounded up to a multiple of the unit since the zero time.
func Ceil(t time.Time, unit time.Duration) time.Time {
	if down := t.Truncate(unit); !down.Equal(t) {
		return down.Add(unit).UTC()
	}
	return t.UTC()
}
