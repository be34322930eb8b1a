package cron

import "time"

// A wall time is counted in seconds, as if the zone's clocks always showed UTC.
const (
	minute = 60
	// farthest exceeds every offset from UTC; the real ones are -12 to +14 hours.
	farthest = 16 * 60 * minute
)

// wallOf returns the wall time of a clock's reading.
func wallOf(year int, month time.Month, day, hour, minute int) int64 {
	return time.Date(year, month, day, hour, minute, 0, 0, time.UTC).Unix()
}

// offset returns the seconds by which a zone's clocks are ahead of UTC at an instant, in seconds
// since the Unix epoch.
func offset(zone *time.Location, instant int64) int64 {
	_, seconds := time.Unix(instant, 0).In(zone).Zone()
	return int64(seconds)
}

// firstShown returns the first instant at which the clocks of the zone show wall. If a clock change
// skips wall, shown is false, and the instant is the one without the change.
//
// It assumes that clocks do not change twice within 32 hours. No zone has done so since 1970.
func firstShown(zone *time.Location, wall int64) (instant int64, shown bool) {
	before, after := offset(zone, wall-farthest), offset(zone, wall+farthest)
	instant = wall - before
	if before == after || offset(zone, instant) == before {
		return instant, true
	}
	moved := wall - after
	if offset(zone, moved) == after {
		return moved, true
	}
	return instant, false
}

// settled returns the first wall time after a clock change that skipped or repeated wall: the end
// of the gap or the overlap.
func settled(zone *time.Location, wall int64) int64 {
	before, after := offset(zone, wall-farthest), offset(zone, wall+farthest)
	low, high := wall-max(before, after), wall-min(before, after)
	for high-low > 1 { // the clocks changed after low, and not after high
		middle := low + (high-low)/2
		if offset(zone, middle) == before {
			low = middle
		} else {
			high = middle
		}
	}
	return high + max(before, after)
}

// First returns the first instant at which the clocks of a zone show a day and the seconds since
// its midnight, from 0 to 24 hours. If a clock change skips that time, it returns the instant
// without the change.
func First(zone *time.Location, year int, month time.Month, day, seconds int) time.Time {
	instant, _ := firstShown(zone, wallOf(year, month, day, 0, 0)+int64(seconds))
	return time.Unix(instant, 0).UTC()
}
