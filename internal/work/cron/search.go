package cron

import "time"

// The range of a cron's wall times.
const (
	firstYear = 1970
	lastYear  = 2199
)

var (
	firstWall = wallOf(firstYear, 1, 1, 0, 0)
	lastWall  = wallOf(lastYear, 12, 31, 23, 59)
)

// nextOfCron tries the matching wall times after the present reading of the clocks. It skips wall
// times that never exist, and those that a repeated hour shows again.
func (e Expression) nextOfCron(after time.Time) (time.Time, bool) {
	from := firstWall
	switch {
	case after.After(time.Unix(lastWall+farthest, 0)):
		return time.Time{}, false
	case after.After(time.Unix(firstWall-farthest, 0)):
		from = max(from, nextMinute(after.Unix()+offset(e.zone, after.Unix())))
	}
	for {
		wall, ok := e.fields.next(from)
		if !ok {
			return time.Time{}, false
		}
		if instant, shown := firstShown(e.zone, wall); shown && instant > after.Unix() {
			return time.Unix(instant, 0).UTC(), true
		}
		from = max(nextMinute(wall), nextMinute(settled(e.zone, wall)-1))
	}
}

// nextMinute returns the first full minute after a wall time.
func nextMinute(wall int64) int64 {
	into := wall % minute
	if into < 0 {
		into += minute
	}
	return wall - into + minute
}

// lastOfCron returns the latest occurrence from known on that is not after upTo. It bisects the
// time between an occurrence and an instant without later ones, so that the search needs only one
// direction.
func (e Expression) lastOfCron(known, upTo time.Time) time.Time {
	last, none := known.Unix(), min(upTo.Unix(), lastWall+farthest)
	for none > last {
		middle := last + (none-last)/2
		t, ok := e.nextOfCron(time.Unix(middle, 0))
		if ok && !t.After(upTo) {
			last = t.Unix()
		} else {
			none = middle
		}
	}
	return time.Unix(last, 0).UTC()
}

// date is a day. Its day of the month may be one beyond the month's last: then a search goes on in
// the next month.
type date struct {
	year  int
	month time.Month
	day   int
}

// next returns the first matching wall time at or after from, a full minute.
func (f *fields) next(from int64) (wall int64, ok bool) {
	at := time.Unix(from, 0).UTC()
	var today date
	today.year, today.month, today.day = at.Date()
	on, ok := f.nextDay(today)
	if on == today {
		if hour, minute, ok := f.timeOfDay(at.Hour(), at.Minute()); ok {
			return wallOf(on.year, on.month, on.day, hour, minute), true
		}
		today.day++
		on, ok = f.nextDay(today)
	}
	if !ok {
		return 0, false
	}
	hour, minute, _ := f.timeOfDay(0, 0)
	return wallOf(on.year, on.month, on.day, hour, minute), true
}

// timeOfDay returns the first matching time of a day at or after hour:minute.
func (f *fields) timeOfDay(hour, minute int) (int, int, bool) {
	if f.hours.has(hour) {
		if m, ok := f.minutes.from(minute); ok {
			return hour, m, true
		}
	}
	hour, ok := f.hours.from(hour + 1)
	minute, _ = f.minutes.from(0)
	return hour, minute, ok
}

// nextDay returns the first matching day at or after d.
func (f *fields) nextDay(d date) (date, bool) {
	for year, ok := f.years.from(d.year - firstYear); ok; year, ok = f.years.from(year + 1) {
		if year+firstYear > d.year {
			d = date{year + firstYear, time.January, 1}
		}
		for month, ok := f.months.from(int(d.month)); ok; month, ok = f.months.from(month + 1) {
			if time.Month(month) > d.month {
				d.month, d.day = time.Month(month), 1
			}
			if d.day, ok = f.days.from(monthOf(d.year, d.month), d.day); ok {
				return d, true
			}
		}
	}
	return date{}, false
}
