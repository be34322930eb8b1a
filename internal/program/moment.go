package program

import (
	"fmt"
	"strings"
	"time"
)

// readZone returns the time zone of --zone.
func readZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, misused(fmt.Errorf("--zone: unknown time zone %q", name), "for example --zone Europe/Berlin")
	}
	return zone, nil
}

const wallLayout = "2006-01-02T15:04:05.000"

// wallText returns the local time in t's zone, with a fraction unless it is zero.
func wallText(t time.Time) string { return strings.TrimSuffix(t.Format(wallLayout), ".000") }

// utcText returns the time in UTC, with a fraction unless it is zero.
func utcText(t time.Time) string { return strings.Replace(wallText(t.UTC()), "T", " ", 1) + "Z" }
