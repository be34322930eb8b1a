package when

import (
	"math"
	"testing"
	"time"
)

func TestText(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0:                                        "0ms",
		time.Nanosecond:                          "0ms",
		-time.Nanosecond:                         "0ms",
		-999 * time.Microsecond:                  "0ms",
		999 * time.Microsecond:                   "0ms",
		time.Millisecond:                         "1ms",
		1999 * time.Microsecond:                  "1ms",
		-time.Millisecond:                        "-1ms",
		999 * time.Millisecond:                   "999ms",
		time.Second:                              "1s",
		1001 * time.Millisecond:                  "1s 1ms",
		59*time.Second + 999500*time.Microsecond: "59s 999ms",
		time.Minute:                              "1m",
		time.Minute + 999*time.Millisecond:       "1m",
		time.Hour + time.Second:                  "1h",
		time.Hour + time.Minute:                  "1h 1m",
		-25*time.Hour - 59*time.Minute:           "-1d 1h",
		day - 1:                                  "23h 59m",
		400*day + 23*time.Hour:                   "400d 23h",
		math.MaxInt64:                            "106751d 23h",
		math.MinInt64:                            "-106751d 23h",
		math.MinInt64 + 1:                        "-106751d 23h",
	} {
		if got := Text(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}

func TestUntil(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "now", -1: "now", -time.Hour: "now", math.MinInt64: "now", 499 * time.Microsecond: "now", 500 * time.Microsecond: "1ms",
		999600 * time.Microsecond: "1s", time.Minute - time.Microsecond: "1m", 90 * time.Minute: "1h 30m",
		math.MaxInt64 - 1: "106751d 23h", math.MaxInt64: "more than 292 years",
	} {
		if got := Until(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}

func TestWallAndUTC(t *testing.T) {
	east := time.FixedZone("east", 5*3600+30*60)
	for _, c := range []struct {
		at        time.Time
		wall, utc string
	}{
		{time.Date(2030, 1, 1, 3, 0, 0, 0, east), "2030-01-01T03:00:00", "2029-12-31 21:30:00Z"},
		{time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), "2030-01-01T12:00:00", "2030-01-01 12:00:00Z"},
		{time.Date(2030, 1, 1, 12, 0, 0, 999_999, time.UTC), "2030-01-01T12:00:00", "2030-01-01 12:00:00Z"},
		{time.Date(2030, 1, 1, 12, 0, 0, 7e6, time.UTC), "2030-01-01T12:00:00.007", "2030-01-01 12:00:00.007Z"},
		{time.UnixMilli(-1).UTC(), "1969-12-31T23:59:59.999", "1969-12-31 23:59:59.999Z"},
		{time.Date(5138, 11, 16, 9, 46, 40, 0, time.UTC), "5138-11-16T09:46:40", "5138-11-16 09:46:40Z"},
		{time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), "0001-01-01T00:00:00", "0001-01-01 00:00:00Z"},
	} {
		if wall, utc := Wall(c.at), UTC(c.at); wall != c.wall || utc != c.utc {
			t.Errorf("%v: %s and %s, want %s and %s", c.at, wall, utc, c.wall, c.utc)
		}
	}
}
