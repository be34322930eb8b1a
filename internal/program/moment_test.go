package program

import (
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/cron"
)

// A local time is the same instant in flags and in schedule expressions, also where clocks change.
func TestLocalTime(t *testing.T) {
	for _, text := range []string{
		"1970-01-01T00:00:00", "2030-01-01T12:00:00", "2030-03-31T01:59:59", "2030-03-31T02:00:00", "2030-03-31T02:30:00", "2030-03-31T03:00:00", "2030-10-27T01:59:59",
		"2030-10-27T02:30:00", "2030-10-27T03:00:00", "9999-12-31T00:00:00",
	} {
		for _, name := range []string{"Europe/Berlin", "America/New_York", "Pacific/Apia", "UTC"} {
			zone, err := cron.Zone(name)
			if err != nil {
				t.Fatal(err)
			}
			expression, refused := cron.Parse("at("+text+")", zone)
			at, err := when.Instant(text, zone, time.Now)
			if refused != nil || err != nil {
				t.Fatal(refused, err)
			}
			if want, _ := expression.Next(time.Time{}, time.Time{}); !at.Equal(want) {
				t.Errorf("%s in %s is %s in a flag and %s in an expression", text, name, when.UTC(at), when.UTC(want))
			}
		}
	}
}

// Plain expressions are used where they are exact enough, and mayfly's where they are not.
func TestWhen(t *testing.T) {
	now := func() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 123_000_000, time.UTC) }
	whole := func() time.Time { return now().Truncate(time.Second) }
	aws := func(f whenFlags) (timing, error) { return f.read(now, false, false) }
	ours := func(f whenFlags) (timing, error) { return f.read(now, true, true) }
	other := func(f whenFlags) (timing, error) { return f.read(now, true, false) }
	round := func(f whenFlags) (timing, error) { return f.read(whole, true, true) }
	for _, c := range []struct {
		flags whenFlags
		read  func(whenFlags) (timing, error)
		want  string // expression and zone; empty: an error
	}{
		{whenFlags{At: "2030-01-01T12:00:00"}, aws, "at(2030-01-01T12:00:00) UTC"},
		{whenFlags{At: "2030-01-01T12:00"}, ours, "at(2030-01-01T12:00:00) UTC"},
		{whenFlags{At: "2030-01-01T12:00:00.250"}, ours, "instant(2030-01-01T12:00:00.250) UTC"},
		{whenFlags{At: "2030-01-01T12:00:00.000"}, aws, "at(2030-01-01T12:00:00) UTC"},
		{whenFlags{At: "2030-01-01T12:00:00.250"}, aws, ""},
		{whenFlags{At: "2030-01-01T12:00:00Z", Zone: "Europe/Berlin"}, aws, "at(2030-01-01T13:00:00) Europe/Berlin"},
		{whenFlags{At: "2030-10-27T02:30:00+02:00", Zone: "Europe/Berlin"}, aws, "at(2030-10-27T02:30:00) Europe/Berlin"},
		{whenFlags{At: "2030-10-27T02:30:00+01:00", Zone: "Europe/Berlin"}, aws, ""}, // the second time that the clocks show it
		{whenFlags{At: "2030-10-27T02:30:00+01:00"}, aws, "at(2030-10-27T01:30:00) UTC"},
		{whenFlags{At: "in 5m"}, ours, "instant(2030-01-01T12:05:00.123) UTC"},
		{whenFlags{At: "in 5m"}, round, "at(2030-01-01T12:05:00) UTC"},
		{whenFlags{At: "in 5m"}, aws, "at(2030-01-01T12:05:01) UTC"}, // never early
		{whenFlags{At: "in 5m"}, other, "at(2030-01-01T12:05:01) UTC"},
		{whenFlags{Every: new(span(5 * time.Minute))}, aws, "rate(5 minutes) UTC"},
		{whenFlags{Every: new(span(time.Minute))}, aws, "rate(1 minute) UTC"},
		{whenFlags{Every: new(span(90 * time.Minute))}, aws, "rate(90 minutes) UTC"},
		{whenFlags{Every: new(span(2 * time.Hour))}, aws, "rate(2 hours) UTC"},
		{whenFlags{Every: new(span(7 * 24 * time.Hour))}, aws, "rate(7 days) UTC"},
		{whenFlags{Every: new(span(90 * time.Second))}, ours, "every(90 seconds) UTC"},
		{whenFlags{Every: new(span(250 * time.Millisecond))}, ours, "every(250 milliseconds) UTC"},
		{whenFlags{Every: new(span(time.Second))}, ours, "every(1 second) UTC"},
		{whenFlags{Every: new(span(time.Second))}, aws, ""},
		{whenFlags{Every: new(span(5 * time.Millisecond))}, ours, ""}, // too fast
		{whenFlags{Cron: "0 9 ? * MON-FRI *", Zone: "Europe/Berlin"}, aws, "cron(0 9 ? * MON-FRI *) Europe/Berlin"},
		{whenFlags{Cron: "0 9 * * *"}, ours, ""},
		{whenFlags{Expression: "every(10 seconds)"}, ours, "every(10 seconds) UTC"},
		{whenFlags{Expression: "every(10 seconds)"}, aws, ""},
		{whenFlags{Expression: "rate(1 day)", Zone: "Mars/Olympus"}, ours, ""},
		{whenFlags{Every: new(span(time.Minute)), Start: "yesterday"}, ours, ""},
		{whenFlags{}, ours, ""},
	} {
		w, err := c.read(c.flags)
		if got := w.expression + " " + w.zone; (err != nil) != (c.want == "") || err == nil && got != c.want {
			t.Errorf("%+v: %s, %v; want %s", c.flags, got, err, c.want)
		}
	}
}
