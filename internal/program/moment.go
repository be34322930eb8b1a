package program

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

// moment is an instant of the command line, to the millisecond.
type moment struct {
	at time.Time // in UTC
	// local time of a zone: yyyy-mm-ddThh:mm:ss, with or without .fff. Empty: an instant
	wall     string
	relative bool // relative to now
}

var wallForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(\.[0-9]{1,3})?)?$`)
})

// readMoment parses a time: 2030-01-01T12:00:00[.250] in the zone (also without seconds, or as a
// date), RFC 3339 (2030-01-01T12:00:00+01:00), now, "in 5m" or +5m. It rounds up to milliseconds.
func readMoment(text string, zone *time.Location, now func() time.Time) (moment, error) {
	if wall := wallForm().FindStringSubmatch(text); wall != nil {
		return readWall(text, wall, zone)
	}
	if t, err := time.Parse(time.RFC3339Nano, strings.Replace(text, " ", "T", 1)); err == nil {
		return moment{at: ceil(t, time.Millisecond)}, nil
	}
	after, relative := strings.CutPrefix(text, "+")
	if !relative {
		after, relative = strings.CutPrefix(text, "in ")
	}
	var distance span
	switch {
	case text == "now":
	case !relative:
		return moment{}, fmt.Errorf(`invalid time %q; use 2030-01-01T12:00:00, 2030-01-01T12:00:00Z, 2030-01-01T12:00:00+01:00, "in 5m" or now`, text)
	default:
		if err := distance.UnmarshalText([]byte(after)); err != nil {
			return moment{}, err
		}
	}
	return moment{at: ceil(now().Add(time.Duration(distance)), time.Millisecond), relative: true}, nil
}

// readWall parses a local time of the zone, as schedule expressions do.
func readWall(text string, part []string, zone *time.Location) (moment, error) {
	if part[4] != "" && part[3] == "" {
		return moment{}, fmt.Errorf("invalid time %q: it has a fraction but no seconds", text)
	}
	wall := part[1] + "T" + cmp.Or(part[2], "00:00") + cmp.Or(part[3], ":00") + part[4]
	expression, err := cron.Parse("instant("+wall+")", zone)
	if err != nil {
		return moment{}, fmt.Errorf("invalid time %q: no such date or time", text)
	}
	at, _ := expression.Next(time.Time{}, time.Time{})
	return moment{at: at, wall: wall}, nil
}

// readZone returns the time zone of --zone.
func readZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, misused(fmt.Errorf("--zone: unknown time zone %q", name), "for example --zone Europe/Berlin")
	}
	return zone, nil
}

// ceil returns t, rounded up.
func ceil(t time.Time, unit time.Duration) time.Time {
	if down := t.Truncate(unit); !down.Equal(t) {
		return down.Add(unit).UTC()
	}
	return t.UTC()
}

const wallLayout = "2006-01-02T15:04:05.000"

// wallText returns the local time in t's zone, with a fraction unless it is zero.
func wallText(t time.Time) string { return strings.TrimSuffix(t.Format(wallLayout), ".000") }

// utcText returns the time in UTC, with a fraction unless it is zero.
func utcText(t time.Time) string { return strings.Replace(wallText(t.UTC()), "T", " ", 1) + "Z" }
