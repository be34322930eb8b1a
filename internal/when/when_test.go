package when

import (
	"math"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // machines without a database of time zones
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"250ms": 250 * time.Millisecond, "90s": 90 * time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour, "1w": 168 * time.Hour, "1d12h": 36 * time.Hour,
		"5 minutes": 5 * time.Minute, "1 day 12 hours": 36 * time.Hour, " 1 s ": time.Second, "10 secs": 10 * time.Second, "36500d": 876_000 * time.Hour, "0s": 0, "0d": 0,
		// Go's forms, which flags and files have always accepted
		"0": 0, "1.5h": 90 * time.Minute, "100us": 100 * time.Microsecond, "1ns": 1, "24h0m0s": 24 * time.Hour, "-5s": -5 * time.Second, "+5m": 5 * time.Minute, "-1.5h": -90 * time.Minute,
		"2562047h": 2_562_047 * time.Hour, "106751d": 106_751 * 24 * time.Hour,
	} {
		if got, err := Duration(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "5", "m", "-2d", "+2d", "1.5d", "5 fortnights", "106752d", "106751d 99h", "99999999999999w", "5m!", "5mm", "5 m s", "9999999999999999s", "2562048h", "--5s", "1M", "soon", "2d\x00",
	} {
		if got, err := Duration(text); err == nil || !strings.Contains(err.Error(), "use 250ms, 90s, 1h30m, 2d or 2w") {
			t.Errorf("%q is %v, %v; want an error that shows how to write it", text, got, err)
		}
	}
}

// Duration accepts each text that time.ParseDuration accepts, with its result.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{"250ms", "1h30m", "1.5h", "-5s", "1 day 12 hours", "36500d", "106751d 23h 47m 16s 854ms", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Duration(text)
		if want, refused := time.ParseDuration(text); refused == nil && (err != nil || got != want) {
			t.Fatalf("%q is %v, %v; want %v", text, got, err, want)
		}
		if err == nil && got < 0 && !strings.HasPrefix(text, "-") {
			t.Fatalf("%q is %v", text, got)
		}
	})
}

func berlin(t testing.TB) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

const layout = "2006-01-02 15:04:05.999Z"

func TestInstant(t *testing.T) {
	now := func() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 123_456_789, time.UTC) }
	for text, want := range map[string]string{
		"2030-01-01T12:00:00":           "2030-01-01 11:00:00Z", // the clocks of Berlin
		"2030-07-01T12:00:00.250":       "2030-07-01 10:00:00.25Z",
		"2030-07-01 12:00":              "2030-07-01 10:00:00Z",
		"2030-07-01":                    "2030-06-30 22:00:00Z",
		"1970-01-01":                    "1969-12-31 23:00:00Z",
		"9999-12-31T23:59:59.999":       "9999-12-31 22:59:59.999Z",
		"2030-03-31T01:59:59":           "2030-03-31 00:59:59Z",
		"2030-03-31T02:30:00":           "2030-03-31 01:30:00Z", // skipped: as if the clocks had not been moved
		"2030-03-31T03:00:00":           "2030-03-31 01:00:00Z",
		"2030-10-27T02:30:00":           "2030-10-27 00:30:00Z", // shown twice: the first
		"2030-10-27T03:00:00":           "2030-10-27 02:00:00Z",
		"2030-01-01T12:00:00Z":          "2030-01-01 12:00:00Z",
		"2030-01-01 12:00:00+05:30":     "2030-01-01 06:30:00Z",
		"2030-01-01T12:00:00.0000001Z":  "2030-01-01 12:00:00.001Z", // rounded up
		"2030-01-01T12:00:00.250-01:00": "2030-01-01 13:00:00.25Z",
		"1960-01-01T00:00:00Z":          "1960-01-01 00:00:00Z",
		"now":                           "2030-01-01 12:00:00.124Z",
		"in 5m":                         "2030-01-01 12:05:00.124Z",
		"in 1.5h":                       "2030-01-01 13:30:00.124Z",
		"+250ms":                        "2030-01-01 12:00:00.374Z",
		"+2w":                           "2030-01-15 12:00:00.124Z",
		"in 1 day 12 hours":             "2030-01-03 00:00:00.124Z",
	} {
		at, err := Instant(text, berlin(t), now)
		if err != nil || at.Format(layout) != want || at.Location() != time.UTC {
			t.Errorf("%q is %s, %v; want %s", text, at, err, want)
		}
		relative := text == "now" || text[0] == 'i' || text[0] == '+'
		if _, err := Instant(text, berlin(t), nil); (err != nil) != relative {
			t.Errorf("%q without a present: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"": "use", "noon": `"in 5m" or now`, "5m": "use", "in": "use", "in ": "not a duration", "+": "not a duration", "in -5m": "without a sign", "++5m": "without a sign", "in soon": "not a duration",
		"2030-02-30": "no such date", "2030-01-01T25:00:00": "no such date", "2030-01-01T12:00:60": "no such date", "2030-01-01T12": "use", "2030-01-01T12:00.5": "no seconds",
		"2030-01-01T12:00:00.1234": "use", "1969-01-01T00:00:00": "from 1970", "30-01-01": "use", "2030-01-01T12:00:00 Europe/Berlin": "use", "tomorrow": "use 2030-01-01",
	} {
		if at, err := Instant(text, berlin(t), now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %s, %v; want an error with %q", text, at, err, want)
		}
	}
}

// Parse returns a local time in the form of schedule expressions, and whether the text counts from now.
func TestParse(t *testing.T) {
	now := func() time.Time { return time.Unix(0, 0) }
	for text, want := range map[string]Moment{
		"2030-01-01 12:00":        {Wall: "2030-01-01T12:00:00"},
		"2030-01-01":              {Wall: "2030-01-01T00:00:00"},
		"2030-01-01T12:00:00.250": {Wall: "2030-01-01T12:00:00.250"},
		"2030-01-01T12:00:00Z":    {},
		"in 5m":                   {Relative: true},
		"now":                     {Relative: true},
	} {
		got, err := Parse(text, time.UTC, now)
		if err != nil || got.Wall != want.Wall || got.Relative != want.Relative {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
}

// An instant is whole milliseconds in UTC, and its text in RFC 3339 is the same instant.
func FuzzInstant(f *testing.F) {
	for _, text := range []string{"2030-01-01", "2030-03-31T02:30:00.5", "2030-01-01T12:00:00+05:30", "in 5m", "+2w", "now", ""} {
		f.Add(text)
	}
	zone := berlin(f)
	now := func() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }
	f.Fuzz(func(t *testing.T, text string) {
		at, err := Instant(text, zone, now)
		if err != nil {
			return
		}
		if at.Nanosecond()%int(time.Millisecond) != 0 || at.Location() != time.UTC {
			t.Fatalf("%q is %s", text, at)
		}
		if at.Year() < 0 || at.Year() > 9999 {
			return // RFC 3339 ends there
		}
		if again, err := Instant(at.Format(time.RFC3339Nano), zone, nil); err != nil || !again.Equal(at) {
			t.Fatalf("%q is %s, which is read as %s, %v", text, at, again, err)
		}
	})
}

func TestCeil(t *testing.T) {
	second := time.Unix(1, 0)
	for at, want := range map[time.Time]time.Time{
		second: second.UTC(), second.Add(1): time.Unix(2, 0).UTC(), time.Unix(-1, 1): time.Unix(0, 0).UTC(), time.Unix(math.MaxInt32, 1): time.Unix(math.MaxInt32+1, 0).UTC(),
	} {
		if got := Ceil(at, time.Second); got != want {
			t.Errorf("%s is rounded to %s; want %s", at, got, want)
		}
	}
}
