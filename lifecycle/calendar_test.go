package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/lifecycle"
)

// The instant of a transition: in real time, by the calendar of its zone, by business hours, and at
// times of day; across changes of summer time.
func TestDue(t *testing.T) {
	for i, c := range []struct{ since, rule, want string }{
		// Real time and calendar time: Berlin's clocks went forward on 2030-03-31 at 02:00, and
		// back on 2030-10-27 at 03:00.
		{"2030-03-30T12:00:00+01:00", "after: 24h", "2030-03-31T13:00:00+02:00"},
		{"2030-03-30T12:00:00+01:00", "after: 1 day", "2030-03-31T12:00:00+02:00"},
		{"2030-10-26T12:00:00+02:00", "after: 1d", "2030-10-27T12:00:00+01:00"},
		{"2030-10-26T12:00:00+02:00", "after: 1d 30m", "2030-10-27T12:30:00+01:00"},
		// 02:30 does not exist
		{"2030-03-30T02:30:00+01:00", "after: 1d", "2030-03-31T03:30:00+02:00"},
		// exists twice: the first counts
		{"2030-10-26T02:30:00+02:00", "after: 1d", "2030-10-27T02:30:00+02:00"},
		// not again on that day
		{"2030-10-27T02:30:00+01:00", "at: '02:30'", "2030-10-28T02:30:00+01:00"},
		{"2030-01-31T09:00:00+01:00", "after: 1 month", "2030-02-28T09:00:00+01:00"},
		{"2028-02-29T09:00:00+01:00", "after: 1 year", "2029-02-28T09:00:00+01:00"},
		{"2030-01-01T09:00:00.250+01:00", "after: 2 weeks 5ms", "2030-01-15T09:00:00.255+01:00"},
		// Times of day.
		{"2030-01-01T08:59:59+01:00", "at: '09:00'", "2030-01-01T09:00:00+01:00"},
		// after it
		{"2030-01-01T09:00:00+01:00", "at: '09:00'", "2030-01-02T09:00:00+01:00"},
		// at or after it
		{"2030-01-01T09:00:00+01:00", "at: '09:00', after: 1d", "2030-01-02T09:00:00+01:00"},
		// a Tuesday
		{"2030-01-01T09:00:00+01:00", "at: 'mon,fri 09:00:30'", "2030-01-04T09:00:30+01:00"},
		// skipped: an hour later
		{"2030-03-30T12:00:00+01:00", "at: '02:30'", "2030-03-31T03:30:00+02:00"},
		// a holiday there, and another zone
		{"2030-01-01T12:00:00+01:00", "at: '09:00', calendar: nyc", "2030-01-02T09:00:00-05:00"},
		// Business: Monday to Friday, 9 to 12 and 13 to 17, not on January 1, nor on May 1 of 2030.
		// over a weekend
		{"2030-01-04T10:00:00+01:00", "after: 3 business days, calendar: office", "2030-01-09T10:00:00+01:00"},
		{"2029-12-31T10:00:00+01:00", "after: 1 business day, calendar: office", "2030-01-02T10:00:00+01:00"},
		{"2030-04-30T10:00:00+02:00", "after: 1 business day, calendar: office", "2030-05-02T10:00:00+02:00"},
		// outside the hours: the next opening
		{"2030-01-02T20:00:00+01:00", "after: 1 business day, calendar: office", "2030-01-04T09:00:00+01:00"},
		{"2030-01-04T16:00:00+01:00", "after: 2 business hours, calendar: office", "2030-01-07T10:00:00+01:00"},
		// lunch
		{"2030-01-04T11:30:00+01:00", "after: 1 business hour, calendar: office", "2030-01-04T13:30:00+01:00"},
		{"2030-01-05T11:30:00+01:00", "after: 7 business hours, calendar: office", "2030-01-07T17:00:00+01:00"},
		{"2030-01-04T12:30:00+01:00", "after: 0s, calendar: office", "2030-01-04T13:00:00+01:00"},
		{"2030-01-03T18:00:00+01:00", "after: 1d, at: '16:00', calendar: office", "2030-01-07T16:00:00+01:00"},
		// From an attribute.
		{"2030-01-01T00:00:00+01:00", "from: when", "2030-07-01T12:00:00+02:00"},
		{"2030-01-01T00:00:00+01:00", "from: when, after: -48h", "2030-06-29T12:00:00+02:00"},
		{"2030-01-01T00:00:00+01:00", "from: when, after: -1 month, at: '09:00'", "2030-06-02T09:00:00+02:00"},
		// in the past: at once
		{"2030-07-02T00:00:00+02:00", "from: when", "2030-07-02T00:00:00+02:00"},
		{"2030-01-01T00:00:00+01:00", "after: 1.5h", "2030-01-01T01:30:00+01:00"},
		{"2030-01-01T00:00:00+01:00", "from: when, after: -0.5h", "2030-07-01T11:30:00+02:00"},
		{"2030-01-01T00:00:00+01:00", "after: $wait", "2030-01-01T01:30:00+01:00"},
		{"2030-01-01T00:00:00+01:00", "after: $span, calendar: office", "2030-01-03T09:00:00+01:00"},
	} {
		since, err := time.Parse(time.RFC3339Nano, c.since)
		must(t, err)
		want, err := time.Parse(time.RFC3339Nano, c.want)
		must(t, err)
		d := read(t, `
lifecycle: due
zone: Europe/Berlin
attributes: {when: S, wait: N, span: S}
calendars:
  office: {hours: ["09:00-12:00", "13:00-17:00"], holidays: [01-01, 2030-05-01]}
  nyc: {zone: America/New_York, holidays: [2030-01-01]}
states: [{name: a, next: [{to: b, `+c.rule+`}]}, {name: b}]`)
		got, err := lifecycle.DueForTest(&d, since, attrs("when", "2030-07-01T10:00:00Z", "wait", 5400, "span", "2 business days"))
		if err != nil || !got.Equal(want) {
			t.Errorf("%d: %s since %s: %s, not %s (%v)", i, c.rule, c.since, got.In(want.Location()).Format(time.RFC3339Nano), c.want, err)
		}
	}
}

// Any text is parsed or refused. A parsed span moves forward, or back if it is negative.
func FuzzSpan(f *testing.F) {
	for _, s := range []string{"1d 12h", "-3 months", "2 weeks, 5ms", "3 business days", "-1.5h", "99999999999999y", "1", "- 5 h", "1y1y"} {
		f.Add(s)
	}
	base := time.Date(2030, 3, 30, 2, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := lifecycle.Read(strings.NewReader("lifecycle: a\nzone: Europe/Berlin\nattributes: {w: N}\ncalendars: {c: {}}\nstates: [{name: x, next: [{to: y, from: w, calendar: c, after: "+quote(text)+"}]}, {name: y}]"), nil)
		if err != nil {
			return
		}
		at, err := lifecycle.DueForTest(d, base, attrs("w", base.Unix()))
		if err == nil && at.Before(base) {
			t.Errorf("%q: %s", text, at)
		}
	})
}

func quote(s string) string {
	return "'" + strings.NewReplacer("'", "''", "\n", " ", "\r", " ").Replace(s) + "'"
}
