package lifecycle

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

// calendar is a parsed Calendar. Without weekdays it is a plain time zone, in which business never
// closes.
type calendar struct {
	zone     *time.Location
	weekdays [7]bool
	hours    []hours // opening hours in order; empty: the whole day
	yearly   map[[2]int]bool
	holidays map[date]bool
	plain    bool // a time zone only
}

// hours is one opening on a day, in seconds of local time since midnight.
type hours struct{ from, to int }

// date is a day of the calendar: its midnight in UTC.
type date = time.Time

const (
	holidaysMost = 4000
	hoursMost    = 24
	dayEnd       = 24 * 60 * 60
	lookMost     = daysMost // days searched for the next business day
)

var weekdayNames = map[string]time.Weekday{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}

// plainCalendar returns the calendar of a zone in which business never closes.
func plainCalendar(zone *time.Location) *calendar {
	return &calendar{zone: zone, weekdays: [7]bool{true, true, true, true, true, true, true}, plain: true}
}

// read parses a calendar. It calls complain for each fault, with its place inside the calendar.
func (c *Calendar) read(zone *time.Location, complain func(where, format string, args ...any)) *calendar {
	out := &calendar{zone: zone, yearly: map[[2]int]bool{}, holidays: map[date]bool{}}
	if c.Zone != "" {
		z, err := cron.Zone(c.Zone)
		if err != nil {
			complain(".zone", "%v", err)
			z = time.UTC
		}
		out.zone = z
	}
	for i := range out.weekdays {
		out.weekdays[i] = c.Weekdays == nil && i >= 1 && i <= 5
	}
	if c.Weekdays != nil && len(c.Weekdays) == 0 {
		complain(".weekdays", "business is never open")
	}
	for i, name := range c.Weekdays {
		day, err := weekdaysOf(name)
		if err != nil {
			complain(fmt.Sprintf(".weekdays[%d]", i), "%v", err)
		}
		for _, d := range day {
			out.weekdays[d] = true
		}
	}
	last := 0
	for i, text := range c.Hours {
		where := fmt.Sprintf(".hours[%d]", i)
		begin, end, ok := strings.Cut(text, "-")
		from, err := timeOfDay(strings.TrimSpace(begin))
		to, err2 := timeOfDay(strings.TrimSpace(end))
		switch {
		case !ok || err != nil || err2 != nil:
			complain(where, "invalid hours %q; use the form 09:00-17:00", text)
		case from >= to:
			complain(where, "hours %q end before they begin; split hours over midnight, as in 22:00-24:00 and 00:00-06:00", text)
		case from < last || len(out.hours) >= hoursMost:
			complain(where, "hours %q overlap the hours before them, or there are more than %d", text, hoursMost)
		default:
			out.hours = append(out.hours, hours{from, to})
			last = to
		}
	}
	if len(c.Holidays) > holidaysMost {
		complain(".holidays", "%d are too many; the limit is %d", len(c.Holidays), holidaysMost)
		return out
	}
	for i, text := range c.Holidays {
		if day, err := time.Parse(time.DateOnly, text); err == nil {
			out.holidays[day] = true
		} else if day, err := time.Parse("2006-01-02", "2000-"+text); err == nil {
			out.yearly[[2]int{int(day.Month()), day.Day()}] = true
		} else {
			complain(fmt.Sprintf(".holidays[%d]", i), "invalid day %q; use 2030-12-25, or 12-25 for every year", text)
		}
	}
	if _, open := out.open(time.Date(2030, 1, 1, 0, 0, 0, 0, out.zone)); !open {
		complain("", "business is never open")
	}
	return out
}

// weekdaysOf parses "mon" or "mon-fri".
func weekdaysOf(text string) (days []time.Weekday, err error) {
	first, last, isRange := strings.Cut(strings.ToLower(text), "-")
	from, known := weekdayNames[first]
	to := from
	if isRange {
		var ok bool
		to, ok = weekdayNames[last]
		known = known && ok
	}
	if !known {
		return nil, fmt.Errorf("invalid weekday %q; use mon, tue, wed, thu, fri, sat, sun, or a range of them", text)
	}
	for day := from; ; day = (day + 1) % 7 {
		days = append(days, day)
		if day == to {
			return days, nil
		}
	}
}

// timeOfDay parses "09:00" or "09:00:30" into seconds since midnight. 24:00 is the end of the day.
func timeOfDay(text string) (seconds int, err error) {
	wrong := fmt.Errorf("invalid time of day %q; use 09:00 or 09:00:30", text)
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, wrong
	}
	limits := [3]int{24, 59, 59}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || len(part) != 2 || n < 0 || n > limits[i] {
			return 0, wrong
		}
		seconds = seconds*60 + n
	}
	if len(parts) == 2 {
		seconds *= 60
	}
	if seconds > dayEnd {
		return 0, wrong
	}
	return seconds, nil
}

// dateOf returns the day that contains an instant.
func (c *calendar) dateOf(t time.Time) date {
	year, month, day := t.In(c.zone).Date()
	return dateIn(year, month, day)
}

func dateIn(year int, month time.Month, day int) date {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// nextDay returns the day after d.
func nextDay(d date) date { return d.AddDate(0, 0, 1) }

// on returns the first instant at which local clocks show a time of a day.
func (c *calendar) on(d date, seconds int) time.Time {
	year, month, day := d.Date()
	return cron.First(c.zone, year, month, day, seconds)
}

// wall returns the local time of an instant: the day, the seconds since its midnight, and the
// fraction of a second.
func (c *calendar) wall(t time.Time) (d date, seconds int, fraction time.Duration) {
	local := t.In(c.zone)
	return c.dateOf(t), local.Hour()*3600 + local.Minute()*60 + local.Second(), time.Duration(local.Nanosecond())
}

// addDays moves an instant by months and days of the calendar. A day that the month lacks becomes
// its last day.
func (c *calendar) addDays(t time.Time, months, days int) time.Time {
	d, seconds, fraction := c.wall(t)
	if months != 0 {
		first := dateIn(d.Year(), d.Month()+time.Month(months), 1)
		last := first.AddDate(0, 1, -1).Day()
		d = first.AddDate(0, 0, min(d.Day(), last)-1)
	}
	return c.on(d.AddDate(0, 0, days), seconds).Add(fraction)
}

// business reports whether a day is a business day.
func (c *calendar) business(d date) bool {
	return c.weekdays[d.Weekday()] && !c.holidays[d] && !c.yearly[[2]int{int(d.Month()), d.Day()}]
}

// addBusinessDays moves an instant to the n-th business day after its own day, at the same time of
// day.
func (c *calendar) addBusinessDays(t time.Time, n int) time.Time {
	d, seconds, fraction := c.wall(t)
	for looked := 0; n > 0 && looked < lookMost; looked++ {
		if d = nextDay(d); c.business(d) {
			n--
		}
	}
	return c.on(d, seconds).Add(fraction)
}

// spans returns the opening times of a day.
func (c *calendar) spans(d date) (all [][2]time.Time) {
	if !c.business(d) {
		return nil
	}
	if len(c.hours) == 0 {
		return [][2]time.Time{{c.on(d, 0), c.on(nextDay(d), 0)}}
	}
	for _, h := range c.hours {
		from, to := c.on(d, h.from), c.on(d, h.to)
		if h.to == dayEnd {
			to = c.on(nextDay(d), 0)
		}
		if from.Before(to) { // otherwise a clock change skips the whole span
			all = append(all, [2]time.Time{from, to})
		}
	}
	return all
}

// open returns t if business is open then, and otherwise the next opening. ok is false if business
// never opens.
func (c *calendar) open(t time.Time) (at time.Time, ok bool) {
	if c.plain {
		return t, true
	}
	d := c.dateOf(t)
	for range lookMost {
		for _, s := range c.spans(d) {
			if t.Before(s[1]) {
				if t.Before(s[0]) {
					return s[0], true
				}
				return t, true
			}
		}
		d = nextDay(d)
	}
	return t, false
}

// addBusinessTime moves an instant by an amount of opening time.
func (c *calendar) addBusinessTime(t time.Time, left time.Duration) time.Time {
	d := c.dateOf(t)
	for range lookMost {
		for _, s := range c.spans(d) {
			from := s[0]
			if t.After(from) {
				from = t
			}
			open := s[1].Sub(from)
			if open <= 0 {
				continue
			}
			if left <= open {
				return from.Add(left)
			}
			left -= open
		}
		d = nextDay(d)
	}
	return t
}

// next returns the first instant at or after t with the rule's time of day and weekday. If strict
// is set, it returns the first one after t.
func (c *calendar) next(t time.Time, w wallRule, strict bool) time.Time {
	d := c.dateOf(t)
	for range lookMost {
		if w.days[d.Weekday()] && (c.plain || c.business(d)) {
			if at := c.on(d, w.seconds); at.After(t) || !strict && at.Equal(t) {
				return at
			}
		}
		d = nextDay(d)
	}
	return t
}

// wallRule is a time of day, and the weekdays to which it applies.
type wallRule struct {
	seconds int
	days    [7]bool
}

// parseWall parses "09:00" and "mon,wed-fri 09:00".
func parseWall(text string) (w wallRule, err error) {
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields) > 2 || len(text) > spanText {
		return w, fmt.Errorf(`invalid time of day %q; use 09:00 or "mon,fri 09:00"`, text[:min(len(text), spanText)])
	}
	if len(fields) == 1 {
		w.days = [7]bool{true, true, true, true, true, true, true}
	} else {
		for name := range strings.SplitSeq(fields[0], ",") {
			days, err := weekdaysOf(name)
			if err != nil {
				return w, err
			}
			for _, d := range days {
				w.days[d] = true
			}
		}
	}
	w.seconds, err = timeOfDay(fields[len(fields)-1])
	if err == nil && w.seconds == dayEnd {
		err = fmt.Errorf("invalid time of day %q; use 00:00", text)
	}
	return w, err
}

// add moves an instant by the span: first months, days and business days in the calendar's zone,
// then business hours, then real time. Negative spans have no business parts.
func (c *calendar) add(t time.Time, s span) time.Time {
	sign := 1
	if s.negative {
		sign = -1
	}
	if s.months != 0 || s.days != 0 {
		t = c.addDays(t, sign*s.months, sign*s.days)
	}
	if s.businessDays > 0 {
		t = c.addBusinessDays(t, s.businessDays)
	}
	if s.businessTime > 0 {
		t = c.addBusinessTime(t, s.businessTime)
	}
	return t.Add(time.Duration(sign) * s.exact)
}
