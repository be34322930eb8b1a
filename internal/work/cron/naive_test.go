package cron

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The naive evaluation of a cron compares every minute of every day with the text of every field.
// It shares nothing with the code under test.

// naiveCron returns the first n occurrences after the instant after, or fewer if there are no more
// before until.
func naiveCron(text string, zone *time.Location, after time.Time, n int, until time.Time) (found []time.Time) {
	fields := strings.Fields(strings.ToUpper(strings.TrimSuffix(strings.TrimPrefix(text, "cron("), ")")))
	var times []time.Duration // of a day
	for hour := range 24 {
		for minute := 0; minute < 60 && naiveMatch(fields[1], hour, 0, 23, nil); minute++ {
			if naiveMatch(fields[0], minute, 0, 59, nil) {
				times = append(times, time.Duration(hour)*time.Hour+time.Duration(minute)*time.Minute)
			}
		}
	}
	first := after.AddDate(0, 0, -2).In(zone)
	for date := time.Date(first.Year(), first.Month(), first.Day(), 0, 0, 0, 0, time.UTC); date.Before(until); date = date.AddDate(0, 0, 1) {
		if !naiveDay(fields, date) {
			continue
		}
		for _, time := range times {
			if t, ok := naiveFirstShown(zone, date.Add(time)); ok && t.After(after) {
				found = append(found, t)
			}
		}
		if len(found) >= n {
			break
		}
	}
	if !slices.IsSortedFunc(found, time.Time.Compare) {
		panic("occurrences are out of order")
	}
	return found[:min(n, len(found))]
}

// naiveOffsets are all possible offsets, the easternmost first: quarters of an hour, and the
// historic ones of Monrovia and Kiritimati.
var naiveOffsets = func() (offsets []time.Duration) {
	for offset := 14 * time.Hour; offset >= -12*time.Hour; offset -= 15 * time.Minute {
		offsets = append(offsets, offset)
	}
	offsets = append(offsets, -44*time.Minute-30*time.Second, -10*time.Hour-40*time.Minute)
	slices.Sort(offsets)
	slices.Reverse(offsets)
	return offsets
}()

// naiveFirstShown tries every offset, and returns the earliest instant at which the clocks show
// wall.
func naiveFirstShown(zone *time.Location, wall time.Time) (time.Time, bool) {
	const form = "2006-01-02 15:04:05"
	for _, offset := range naiveOffsets {
		t := wall.Add(-offset)
		if _, seconds := t.In(zone).Zone(); time.Duration(seconds)*time.Second != offset {
			continue
		}
		if t.In(zone).Format(form) != wall.Format(form) {
			panic("a clock that shows something else than its offset")
		}
		return t, true
	}
	return time.Time{}, false
}

// naiveDay compares a date with the fields of the day, the month and the year.
func naiveDay(fields []string, date time.Time) bool {
	months := []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
	if !naiveMatch(fields[3], int(date.Month()), 1, 12, months) || !naiveMatch(fields[5], date.Year(), 1970, 2199, nil) {
		return false
	}
	if fields[2] == "?" {
		return naiveWeekday(fields[4], date)
	}
	for member := range strings.SplitSeq(fields[2], ",") {
		switch n, isNearest := strings.CutSuffix(member, "W"); {
		case member == "L":
			if date.AddDate(0, 0, 1).Day() == 1 {
				return true
			}
		case isNearest:
			if naiveNearest(n, date) {
				return true
			}
		case naiveMatch(member, date.Day(), 1, 31, nil):
			return true
		}
	}
	return false
}

// naiveNearest reports whether date is the weekday nearest to the n-th of its month; n is L for its
// last day.
func naiveNearest(n string, date time.Time) bool {
	if date.Weekday() == time.Saturday || date.Weekday() == time.Sunday {
		return false
	}
	last := time.Date(date.Year(), date.Month()+1, 0, 0, 0, 0, 0, time.UTC)
	target := last.Day()
	if n != "L" {
		target, _ = strconv.Atoi(n)
	}
	best := 0
	for distance := 0; distance <= 2 && best == 0 && target <= last.Day(); distance++ {
		for _, d := range []int{target - distance, target + distance} {
			w := time.Date(date.Year(), date.Month(), d, 0, 0, 0, 0, time.UTC)
			if best == 0 && w.Month() == date.Month() && w.Weekday() != time.Saturday && w.Weekday() != time.Sunday {
				best = d
			}
		}
	}
	return best == date.Day()
}

func naiveWeekday(field string, date time.Time) bool {
	names := []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}
	today := int(date.Weekday()) + 1
	if weekday, nth, ok := strings.Cut(field, "#"); ok {
		return naiveMatch(weekday, today, 1, 7, names) && strconv.Itoa((date.Day()+6)/7) == nth
	}
	for member := range strings.SplitSeq(field, ",") {
		weekday, isLast := strings.CutSuffix(member, "L")
		switch {
		case member == "L":
			if today == 7 {
				return true
			}
		case isLast:
			if naiveMatch(weekday, today, 1, 7, names) && date.AddDate(0, 0, 7).Month() != date.Month() {
				return true
			}
		case naiveMatch(member, today, 1, 7, names):
			return true
		}
	}
	return false
}

// naiveMatch compares a number with a list of values, ranges and steps, by walking through each.
func naiveMatch(field string, n, least, most int, names []string) bool {
	value := func(text string) int {
		if i := slices.Index(names, text); i >= 0 {
			return least + i
		}
		v, err := strconv.Atoi(text)
		if err != nil {
			panic(err)
		}
		return v
	}
	for member := range strings.SplitSeq(field, ",") {
		base, step, stepped := strings.Cut(member, "/")
		from, to := least, most
		if low, high, isRange := strings.Cut(base, "-"); isRange {
			from, to = value(low), value(high)
		} else if base != "*" {
			from = value(base)
			if !stepped {
				to = from
			}
		}
		for at, steps := from, 0; ; steps++ {
			if at == n && (!stepped || steps%value(step) == 0) {
				return true
			}
			if at == to {
				break
			}
			if at++; at > most {
				at = least
			}
		}
	}
	return false
}
