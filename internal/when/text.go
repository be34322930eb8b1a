package when

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Text returns a duration with its two largest units: "2d 3h", "4m", "250ms".
func Text(d time.Duration) string {
	switch {
	case d <= -time.Millisecond:
		return "-" + Text(-max(d, -math.MaxInt64)) // the least duration has no opposite
	case d < 0:
		return "0ms"
	}
	units := []struct {
		name   string
		length time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}
	for i, u := range units {
		if d < u.length {
			continue
		}
		text := strconv.FormatInt(int64(d/u.length), 10) + u.name
		if i+1 < len(units) && d%u.length >= units[i+1].length {
			text += " " + strconv.FormatInt(int64(d%u.length/units[i+1].length), 10) + units[i+1].name
		}
		return text
	}
	return "0ms"
}

// Until returns the text of a duration to come: "now" if it is less than half a millisecond. The
// greatest duration stands for any longer one, as in the differences of package time.
func Until(d time.Duration) string {
	if d == math.MaxInt64 {
		return "more than 292 years"
	}
	if d = d.Round(time.Millisecond); d <= 0 {
		return "now"
	}
	return Text(d)
}

// WallLayout is the layout of a local time to the millisecond.
const WallLayout = "2006-01-02T15:04:05.000"

// Wall returns the local time in t's zone, with a fraction unless it is zero.
func Wall(t time.Time) string { return strings.TrimSuffix(t.Format(WallLayout), ".000") }

// UTC returns the time in UTC, with a fraction unless it is zero: "2030-01-01 12:00:00Z".
func UTC(t time.Time) string { return strings.Replace(Wall(t.UTC()), "T", " ", 1) + "Z" }
