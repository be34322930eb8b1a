package cron

import "time"

// A wall time is counted in seconds, as if the clocks of the zone were always those of UTC.
const (
	minute = 60
	// farthest is more than any zone lies from UTC: +14 hours is the most, and -12.
	farthest = 16 * 60 * minute
)

// wallOf gives a wall time for what a clock shows.
func wallOf(year int, month time.Month, day, hour, minute int) int64 {
	return time.Date(year, month, day, hour, minute, 0, 0, time.UTC).Unix()
}

// offset is by how many seconds the clocks of the zone are ahead of UTC at an instant, in seconds since the Unix epoch.
func offset(zone *time.Location, instant int64) int64 {
	_, seconds := time.Unix(instant, 0).In(zone).Zone()
	return int64(seconds)
}

// firstShown gives the first instant at which the clocks of the zone show wall. Where they never do, since they were moved forward over it, shown is false
// and the instant is the one at which they would have shown it if they had not been moved.
//
// It takes for granted that clocks are not moved twice within 32 hours. In no zone have they been since 1970.
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

// settled gives the wall time from which on all is as it always is, after clocks were moved over wall or shown it twice: the end of the gap, or of the overlap.
func settled(zone *time.Location, wall int64) int64 {
	before, after := offset(zone, wall-farthest), offset(zone, wall+farthest)
	low, high := wall-max(before, after), wall-min(before, after)
	for high-low > 1 { // they were moved after low, and not after high
		middle := low + (high-low)/2
		if offset(zone, middle) == before {
			low = middle
		} else {
			high = middle
		}
	}
	return high + max(before, after)
}

// First gives the first instant at which the clocks of a zone show a day and the seconds since its midnight, from 0 to 24 hours. Where they are moved forward over it, that is
// when they would have shown it if they had not been; where they show it twice, it is the first time.
func First(zone *time.Location, year int, month time.Month, day, seconds int) time.Time {
	instant, _ := firstShown(zone, wallOf(year, month, day, 0, 0)+int64(seconds))
	return time.Unix(instant, 0).UTC()
}
