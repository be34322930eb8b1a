package cron

import "time"

// days are the days that the two day fields select. A day matches if it satisfies any of these
// members. One of the two fields is ?, and selects nothing.
type days struct {
	ofMonth     set  // 1 to 31
	last        bool // L
	lastWeekday bool // LW
	// nW: the weekday, Monday to Friday, nearest to the n-th
	nearest    set
	ofWeek     set                          // 1, Sunday, to 7
	lastOfWeek set                          // nL: the last such day of the month
	nth        struct{ ofWeek, number int } // n#m: the m-th such day of the month; zero for none
}

const (
	sunday   = 1
	saturday = 7
)

// match returns the days of a month that match, one bit for each.
func (d *days) match(m calendarMonth) (match uint64) {
	add := func(n int) { match |= 1 << n }
	match = d.ofMonth[0]
	for ofWeek := sunday; ofWeek <= saturday; ofWeek++ {
		if d.ofWeek.has(ofWeek) {
			match |= weekly << m.nth(ofWeek, 1)
		}
		if d.lastOfWeek.has(ofWeek) {
			add(m.nth(ofWeek, 1) + (m.length-m.nth(ofWeek, 1))/7*7)
		}
	}
	for n, ok := d.nearest.from(1); ok && n <= m.length; n, ok = d.nearest.from(n + 1) {
		add(m.nearestWeekday(n))
	}
	if d.last {
		add(m.length)
	}
	if d.lastWeekday {
		add(m.nearestWeekday(m.length))
	}
	if d.nth.number != 0 {
		add(m.nth(d.nth.ofWeek, d.nth.number))
	}
	return match &^ (^uint64(1) << m.length)
}

// weekly has the bit of every seventh day from 0.
const weekly = 1<<0 | 1<<7 | 1<<14 | 1<<21 | 1<<28

const shortest, longest = 28, 31

// calendar holds the matching days of each of the 28 kinds of months, by length and first day of
// the week. With it a search covers 230 years in a few microseconds.
type calendar [longest - shortest + 1][7]uint32

func (d *days) calendar() *calendar {
	c := &calendar{}
	for length := shortest; length <= longest; length++ {
		for first := sunday; first <= saturday; first++ {
			c[length-shortest][first-sunday] = uint32(d.match(calendarMonth{first, length}))
		}
	}
	return c
}

// from returns the first matching day of a month, n or later.
func (c *calendar) from(m calendarMonth, n int) (day int, ok bool) {
	return set{uint64(c[m.length-shortest][m.first-sunday])}.from(n)
}

// calendarMonth is a month's length and position in the week.
type calendarMonth struct {
	first  int // the day of the week of the 1st: 1 for Sunday to 7
	length int
}

func monthOf(year int, month time.Month) calendarMonth {
	leap := 0
	if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		leap = 1
	}
	length, before := lengths[month-1], before[month-1]
	if month == time.February {
		length += leap
	} else if month > time.February {
		before += leap
	}
	// Days since 1 January of the year 1, a Monday.
	last := year - 1
	return calendarMonth{first: (last*365+last/4-last/100+last/400+before+1)%7 + sunday, length: length}
}

// The days of each month, and of all months before it, in a year without 29 February.
var (
	lengths = [12]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	before  = [12]int{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334}
)

// weekday returns the day of the week of the n-th.
func (m calendarMonth) weekday(n int) int { return (m.first+n-2)%7 + 1 }

// nth returns the number-th given day of the week in the month. The result may lie beyond the end
// of the month.
func (m calendarMonth) nth(ofWeek, number int) int { return 1 + (ofWeek-m.first+7)%7 + (number-1)*7 }

// nearestWeekday returns the day from Monday to Friday that is nearest to the n-th, in the same
// month.
func (m calendarMonth) nearestWeekday(n int) int {
	switch {
	case m.weekday(n) == saturday && n == 1:
		return n + 2
	case m.weekday(n) == saturday:
		return n - 1
	case m.weekday(n) == sunday && n == m.length:
		return n - 2
	case m.weekday(n) == sunday:
		return n + 1
	default:
		return n
	}
}
