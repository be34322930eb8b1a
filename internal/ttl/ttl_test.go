package ttl

import (
	"math"
	"math/big"
	"testing"
)

const now = 1_767_225_600_000 // 2026-01-01

// Each number is judged as the unit that its writer meant.
func TestOfNumber(t *testing.T) {
	for _, c := range []struct {
		number string
		want   Reason
	}{
		{"1767225600", Good}, {"1767225599", Good}, {"1767225600.5", Good}, {"100000000000", Good}, {"1.7672256E9", Good},
		{"100000000001", TooFar}, {"253402300799", TooFar}, {"1767225600000", Milliseconds},
		{"1767225600000000", Microseconds}, {"1767225600000000000", Nanoseconds}, {"1E+120", TooFar},
		{"0", Negative}, {"-0", Negative}, {"-1767225600", Negative}, {"1E-400", Negative},
		{"3600", Past}, {"1609545600", Past}, {"1609545600.001", Good}, {"1609545601", Good}, {"1E-100", Past},
		{"", Type}, {"soon", Type}, {"NaN", Type}, {"Inf", TooFar}, {"1E999999999", TooFar},
	} {
		at, got := Deadline(c.number, now)
		if got != c.want {
			t.Errorf("%q: %v, want %v", c.number, got, c.want)
		}
		if (got == Good) != (at > 0) || got == Good && !Plausible(at, now) {
			t.Errorf("%q: the deadline %d is %v", c.number, at, got)
		}
	}
}

// A fraction is rounded up to the millisecond, never down.
func TestDeadlineRoundsUp(t *testing.T) {
	for number, want := range map[string]int64{
		"1767225600.1": now + 100, "1767225600.0001": now + 1, "1767225600.9999999999999999999999": now + 1000, "1767225600.000": now, "1767225600.123": now + 123,
	} {
		if at, reason := Deadline(number, now); at != want || reason != Good {
			t.Errorf("%s: %d, %v; want %d", number, at, reason, want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"expires", "Expires", true}, {"expires", "expires", false}, {"expires", "expire", false}, {"ttl", "TTL", true}, {"a", "b", false}} {
		if got := SameButCase(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %v", c.a, c.b, got)
		}
	}
	for name, want := range map[string]bool{"a.b": true, "a.b.c": true, "a": false, ".a": false, "a.": false, ".": false} {
		if _, _, got := Path(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Every mistake has a name of its own, an explanation and a remedy.
func TestTexts(t *testing.T) {
	names := map[string]bool{}
	for r := Good; r < reasons; r++ {
		if names[r.String()] || r.String() == "" || r.Why() == "" || r.Mistake() != (r.Fix() != "") {
			t.Errorf("reason %d: %q, %q, %q", r, r, r.Why(), r.Fix())
		}
		names[r.String()] = true
	}
}

// A number is a deadline at or after what its text says, or none, whatever the text is.
func FuzzDeadline(f *testing.F) {
	for _, s := range []string{"1767225600.0001", "0x1p60", "1e10", "1_000", "1/3", "-1", "1E-99999999", "+1767225600", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, reason := Deadline(text, now)
		if reason != Good {
			return
		}
		if !Plausible(at, now) {
			t.Fatalf("%q is the deadline %d", text, at)
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok || big.NewRat(at, 1000).Cmp(exact) < 0 || math.Abs(float64(at)-1000*ratFloat(exact)) > 1.01 {
			t.Fatalf("%q is the deadline %d", text, at)
		}
	})
}

func ratFloat(r *big.Rat) float64 { v, _ := r.Float64(); return v }
