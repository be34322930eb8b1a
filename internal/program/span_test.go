package program

import (
	"strings"
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"250ms": 250 * time.Millisecond, "1.5h": 90 * time.Minute, "5 minutes": 5 * time.Minute, "2w": 336 * time.Hour, "36500d": spanMax, "0s": 0,
	} {
		var got span
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("%q is %v, %v; want %v", text, time.Duration(got), err, want)
		}
	}
	for _, text := range []string{"", "5", "-5m", "36501d", "36500d 1ms", "876001h", "100us", "1.0001s"} {
		var got span
		if err := got.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "1h30m") {
			t.Errorf("%q is %v, %v; want an error that shows how to write it", text, time.Duration(got), err)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0ms", 250 * time.Millisecond: "250ms", 1500 * time.Millisecond: "1s 500ms", time.Minute: "1m", 26 * time.Hour: "1d 2h",
		24*time.Hour + time.Minute: "1d", -time.Second: "-1s",
	} {
		if got := span(d).String(); got != want {
			t.Errorf("%v is shown as %q, want %q", d, got, want)
		}
	}
}

// The text of a span can be parsed again, and is within the shown precision.
func FuzzSpan(f *testing.F) {
	for _, text := range []string{"250ms", "1h30m", "1.5s", "1 day 12 hours", "36500d", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s, again span
		if s.UnmarshalText([]byte(text)) != nil {
			return
		}
		if s < 0 || time.Duration(s) > spanMax {
			t.Fatalf("%q is out of range: %v", text, time.Duration(s))
		}
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again > s || again.String() != s.String() {
			t.Fatalf("%q is shown as %q, which is read as %v, %v", text, s, time.Duration(again), err)
		}
	})
}
