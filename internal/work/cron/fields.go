package cron

import (
	"strconv"
	"strings"
)

// fields are the six fields of a cron.
type fields struct {
	minutes, hours, months set
	years                  set // counted from firstYear
	days                   *calendar
}

// field describes one of the six fields.
type field struct {
	name        string
	least, most int
	// subtracted from a value before it goes into a set, which is too small for years
	origin int
	names  []string // names of the values from least on
	wraps  bool     // a range may continue from the end to the beginning
}

var (
	minuteField     = &field{name: "minutes", least: 0, most: 59, wraps: true}
	hourField       = &field{name: "hours", least: 0, most: 23, wraps: true}
	dayOfMonthField = &field{name: "day-of-month", least: 1, most: 31, wraps: true}
	monthField      = &field{name: "month", least: 1, most: 12, wraps: true,
		names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}}
	dayOfWeekField = &field{name: "day-of-week", least: sunday, most: saturday, wraps: true,
		names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}}
	yearField = &field{name: "year", least: firstYear, most: lastYear, origin: firstYear}
)

func (f *field) wrong(format string, args ...any) *Error {
	p := wrong(format, args...)
	p.Field = f.name
	return p
}

// parseFields parses the text between the parentheses of a cron.
func parseFields(text string) (*fields, *Error) {
	words := wordsOf(strings.Map(upper, text))
	if len(words) != 6 {
		return nil, wrong("it has %d fields; a cron expression has six: minutes hours day-of-month month day-of-week year", len(words))
	}
	f := &fields{}
	for _, simple := range []struct {
		field *field
		word  string
		set   *set
	}{{minuteField, words[0], &f.minutes}, {hourField, words[1], &f.hours}, {monthField, words[3], &f.months}, {yearField, words[5], &f.years}} {
		if simple.word == "?" {
			return nil, simple.field.wrong("? is allowed only for day-of-month and day-of-week")
		}
		if err := simple.field.parseList(simple.word, simple.set, noSpecial); err != nil {
			return nil, err
		}
	}
	d := &days{}
	if err := d.parse(words[2], words[4]); err != nil {
		return nil, err
	}
	f.days = d.calendar()
	return f, nil
}

// upper capitalises ASCII letters only. Unicode has other letters whose capital is S or I.
func upper(c rune) rune {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// parse parses the two day fields.
func (d *days) parse(ofMonth, ofWeek string) *Error {
	switch {
	case ofMonth == "?" && ofWeek == "?":
		return wrong("day-of-month and day-of-week are both ?")
	case ofMonth != "?" && ofWeek != "?":
		return wrong("one of day-of-month and day-of-week must be ?")
	case ofWeek == "?":
		return dayOfMonthField.parseList(ofMonth, &d.ofMonth, d.specialOfMonth)
	case strings.Contains(ofWeek, "#"):
		return d.parseNth(ofWeek)
	default:
		return dayOfWeekField.parseList(ofWeek, &d.ofWeek, d.specialOfWeek)
	}
}

// specialOfMonth parses L, LW and nW.
func (d *days) specialOfMonth(member string) (special bool, err *Error) {
	switch before, nearest := strings.CutSuffix(member, "W"); {
	case member == "L":
		d.last = true
	case member == "LW":
		d.lastWeekday = true
	case nearest:
		n, err := dayOfMonthField.value(before)
		if err != nil {
			return true, err
		}
		d.nearest.add(n)
	default:
		return false, nil
	}
	return true, nil
}

// specialOfWeek parses L and nL.
func (d *days) specialOfWeek(member string) (special bool, err *Error) {
	before, last := strings.CutSuffix(member, "L")
	switch {
	case member == "L":
		d.ofWeek.add(saturday)
	case last:
		n, err := dayOfWeekField.value(before)
		if err != nil {
			return true, err
		}
		d.lastOfWeek.add(n)
	default:
		return false, nil
	}
	return true, nil
}

// parseNth parses n#m.
func (d *days) parseNth(word string) *Error {
	ofWeek, nth, _ := strings.Cut(word, "#")
	if strings.Contains(word, ",") {
		return dayOfWeekField.wrong("n#m cannot be part of a list")
	}
	n, err := dayOfWeekField.value(ofWeek)
	if err != nil {
		return err
	}
	m, ok := number(nth, 5)
	if !ok || m == 0 {
		return dayOfWeekField.wrong("%s is not within 1-5 after #", strconv.Quote(nth))
	}
	d.nth.ofWeek, d.nth.number = n, m
	return nil
}

func noSpecial(string) (bool, *Error) { return false, nil }

// parseList parses the comma-separated members of a field into s. It asks special first, which
// accepts the members that are not plain values.
func (f *field) parseList(word string, s *set, special func(member string) (bool, *Error)) *Error {
	members := strings.Split(word, ",")
	for _, member := range members {
		if member == "*" && len(members) > 1 {
			return f.wrong("* cannot be part of a list")
		}
		accepted, err := special(member)
		if err == nil && !accepted {
			err = f.parseMember(member, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseMember parses *, a value or a range, with an optional step.
func (f *field) parseMember(member string, s *set) *Error {
	base, width, stepped := strings.Cut(member, "/")
	low, high, err := f.parseRange(base, stepped)
	if err != nil {
		return err
	}
	step, size := 1, f.most-f.least+1
	if stepped {
		var ok bool
		if step, ok = number(width, size); !ok || step == 0 {
			return f.wrong("the step %s is not within 1-%d", strconv.Quote(width), size)
		}
	}
	if high < low {
		high += size
	}
	for n := low; n <= high; n += step {
		s.add((n-f.least)%size + f.least - f.origin)
	}
	return nil
}

// parseRange parses the part before a step: *, a range, or a value. With a step, a value starts a
// range to the end of the field.
func (f *field) parseRange(base string, stepped bool) (low, high int, err *Error) {
	if base == "*" {
		return f.least, f.most, nil
	}
	from, to, isRange := strings.Cut(base, "-")
	if low, err = f.value(from); err != nil {
		return 0, 0, err
	}
	switch {
	case isRange:
		if high, err = f.value(to); err != nil {
			return 0, 0, err
		}
		if high < low && !f.wraps {
			return 0, 0, f.wrong("%d-%d runs backwards", low, high)
		}
		return low, high, nil
	case stepped:
		return low, f.most, nil
	default:
		return low, low, nil
	}
}

// value parses a number or a name.
func (f *field) value(text string) (int, *Error) {
	for i, name := range f.names {
		if text == name {
			return f.least + i, nil
		}
	}
	if text == "" {
		return 0, f.wrong("a value is missing")
	}
	n, ok := number(text, f.most)
	if ok && n >= f.least {
		return n, nil
	}
	if f.names != nil {
		return 0, f.wrong("%s is not within %d-%d or %s-%s", strconv.Quote(text), f.least, f.most, f.names[0], f.names[len(f.names)-1])
	}
	return 0, f.wrong("%s is not within %d-%d", strconv.Quote(text), f.least, f.most)
}
