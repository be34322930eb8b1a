package cron

import (
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// Random expressions, zones and instants.

var (
	monthNames = []string{"JAN", "feb", "Mar", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "dec"}
	dayNames   = []string{"SUN", "mon", "Tue", "WED", "THU", "FRI", "sat"}
)

// dialect restricts the drawn expressions.
type dialect struct {
	// wrapping ranges, lists of L and W, * as the hours, years, and all fields together
	all     bool
	lastDay int // the greatest day of a month
	nth     int // the greatest m of n#m
}

var (
	ours = dialect{all: true, lastDay: 31, nth: 5}
	// quartzs is the dialect that go-quartz v0.15.2 evaluates correctly, in UTC. It fails at clock
	// changes; in months that lack a day of a list, or the m-th weekday; with * as the hours, which
	// ends at 24:00; with months beside anything but a list of days or L; and on the day itself of
	// a W. It does not wrap, and lists neither L nor W.
	quartzs = dialect{lastDay: 28, nth: 4}
)

func (d dialect) value(t *rapid.T, least, most int, names []string) string {
	n := rapid.IntRange(least, most).Draw(t, "value")
	if names != nil && rapid.Bool().Draw(t, "named") {
		return names[n-least]
	}
	return strconv.Itoa(n)
}

// member draws a value, a range or a step.
func (d dialect) member(t *rapid.T, least, most int, names []string) string {
	low := rapid.IntRange(least, most).Draw(t, "low")
	high := rapid.IntRange(low, most).Draw(t, "high")
	if d.all && names == nil && most < 100 {
		high = rapid.IntRange(least, most).Draw(t, "any high")
	}
	step := strconv.Itoa(rapid.IntRange(1, min(most, 60)).Draw(t, "step"))
	kinds := 4
	if most == d.lastDay && d.lastDay < 31 {
		kinds = 2 // a step to the end would pass the last day
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind of member") {
	case 0:
		return strconv.Itoa(low) + "-" + strconv.Itoa(high)
	case 1:
		return strconv.Itoa(low) + "-" + strconv.Itoa(high) + "/" + step
	case 2:
		return d.value(t, least, most, names)
	case 3:
		return strconv.Itoa(low) + "/" + step
	default:
		return "*/" + step
	}
}

func (d dialect) list(t *rapid.T, least, most int, names []string) string {
	var members []string
	for range rapid.IntRange(1, 3).Draw(t, "members") {
		members = append(members, d.member(t, least, most, names))
	}
	return strings.Join(members, ",")
}

// anyOr draws * in half of the cases, and otherwise a list.
func anyOr(t *rapid.T, list func() string) string {
	if rapid.Bool().Draw(t, "any") {
		return "*"
	}
	return list()
}

func (d dialect) days(t *rapid.T) (ofMonth, ofWeek string) {
	switch rapid.IntRange(0, 7).Draw(t, "kind of days") {
	case 0:
		return "L", "?"
	case 1:
		return "LW", "?"
	case 2:
		return d.value(t, 1, d.lastDay, nil) + "W", "?"
	case 3:
		return "?", d.value(t, 1, 7, dayNames) + "L"
	case 4:
		return "?", d.value(t, 1, 7, dayNames) + "#" + strconv.Itoa(rapid.IntRange(1, d.nth).Draw(t, "nth"))
	case 5:
		return "?", anyOr(t, func() string { return d.list(t, 1, 7, dayNames) })
	case 6:
		if d.all {
			return d.list(t, 1, d.lastDay, nil) + ",L," + d.value(t, 1, d.lastDay, nil) + "W", "?"
		}
		fallthrough
	default:
		return anyOr(t, func() string { return d.list(t, 1, d.lastDay, nil) }), "?"
	}
}

func (d dialect) cron(t *rapid.T) string {
	hours := d.list(t, 0, 23, nil)
	if d.all {
		hours = anyOr(t, func() string { return hours })
	}
	ofMonth, ofWeek := d.days(t)
	months := anyOr(t, func() string { return d.list(t, 1, 12, monthNames) })
	years := "*"
	if d.all && rapid.IntRange(0, 5).Draw(t, "kind of years") == 0 {
		years = d.list(t, firstYear, lastYear, nil)
	}
	minutes := anyOr(t, func() string { return d.list(t, 0, 59, nil) })
	if !d.all && (ofWeek != "?" || ofMonth == "*" || strings.HasSuffix(ofMonth, "W")) {
		months = "*"
	}
	if !d.all && strings.HasSuffix(ofMonth, "W") {
		minutes, hours = d.value(t, 0, 59, nil), d.value(t, 0, 23, nil)
	}
	return "cron(" + strings.Join([]string{minutes, hours, ofMonth, months, ofWeek, years}, " ") + ")"
}

// interval draws a rate or an every.
func interval(t *rapid.T) string {
	if rapid.Bool().Draw(t, "ours") {
		return "every(" + strconv.Itoa(rapid.IntRange(10, 1e7).Draw(t, "milliseconds")) + " milliseconds)"
	}
	return "rate(" + strconv.Itoa(rapid.IntRange(1, 36500).Draw(t, "value")) + " " + rapid.SampledFrom([]string{"minutes", "hours", "days"}).Draw(t, "unit") + ")"
}

// zoneNames are zones with many kinds of clock changes.
var zoneNames = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Pacific/Apia", "Asia/Kathmandu", "Antarctica/Troll",
	"Africa/Casablanca", "Africa/Monrovia", "America/Havana", "Asia/Gaza", "Pacific/Chatham", "Pacific/Kiritimati", "Etc/GMT+12",
}

func drawZone(t *rapid.T) *time.Location {
	zone, err := Zone(rapid.SampledFrom(zoneNames).Draw(t, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// drawInstant draws an instant in the years of crons, often near a clock change of the zone.
func drawInstant(t *rapid.T, zone *time.Location) time.Time {
	at := time.UnixMilli(rapid.Int64Range(time.Date(1969, 12, 25, 0, 0, 0, 0, time.UTC).UnixMilli(), time.Date(2200, 1, 5, 0, 0, 0, 0, time.UTC).UnixMilli()).Draw(t, "instant")).UTC()
	if rapid.Bool().Draw(t, "anywhere") {
		return at
	}
	_, change := at.In(zone).ZoneBounds()
	if change.IsZero() {
		return at
	}
	near := time.Duration(rapid.Int64Range(-4*60, 4*60).Draw(t, "minutes from the change")) * time.Minute
	return change.UTC().Add(near)
}
