package cron

import (
	"math/big"
	"slices"
	"testing"
	"time"

	quartz "github.com/reugn/go-quartz/quartz"
	"pgregory.net/rapid"
)

func mustParse(t testing.TB, text string, zone *time.Location) Expression {
	t.Helper()
	e, err := Parse(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// steps returns up to n occurrences, each by Next from the one before.
func steps(e Expression, anchor, after time.Time, n int) (found []time.Time) {
	for len(found) < n {
		t, ok := e.Next(anchor, after)
		if !ok {
			break
		}
		found, after = append(found, t), t
	}
	return found
}

// TestIncreasing: Next omits nothing and adds nothing. Its steps equal the naive occurrences of the
// two years after an instant.
func TestIncreasing(t *testing.T) {
	t.Run("cron", rapid.MakeCheck(func(t *rapid.T) {
		zone := drawZone(t)
		text, after := ours.cron(t), drawInstant(t, zone)
		e, err := Parse(text, zone)
		if err != nil {
			t.Fatal(err)
		}
		until := after.AddDate(2, 0, 0)
		got := steps(e, time.Time{}, after, 8)
		want := naiveCron(text, zone, after, 8, until.AddDate(0, 0, 3))
		early := func(found []time.Time) []time.Time {
			return slices.DeleteFunc(found, func(t time.Time) bool { return t.After(until) })
		}
		if got, want = early(got), early(want); !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("%s in %v after %v\n got: %v\nwant: %v", text, zone, after.In(zone), got, want)
		}
	}))
	t.Run("rate", rapid.MakeCheck(func(t *rapid.T) {
		anchor, after := drawInstant(t, time.UTC), drawInstant(t, time.UTC)
		e, err := Parse(interval(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		next, ok := e.Next(anchor, after)
		if !ok || !next.After(after) || next.Before(anchor) {
			t.Fatalf("%v from %v after %v: %v, %t", e, anchor, after, next, ok)
		}
		// The least multiple of the interval.
		nanos := func(t time.Time) *big.Int {
			n := big.NewInt(t.Unix())
			return n.Mul(n, big.NewInt(1e9)).Add(n, big.NewInt(int64(t.Nanosecond())))
		}
		since := new(big.Int).Sub(nanos(next), nanos(anchor))
		if new(big.Int).Rem(since, big.NewInt(int64(e.Interval()))).Sign() != 0 {
			t.Fatalf("%v from %v after %v: %v is no multiple", e, anchor, after, next)
		}
		if before := next.Add(-e.Interval()); before.After(after) && !before.Before(anchor) {
			t.Fatalf("%v from %v after %v: %v, but %v comes before", e, anchor, after, next, before)
		}
	}))
}

// TestLast: Last is the last of the steps of Next that do not pass upTo.
func TestLast(t *testing.T) {
	for name, draw := range map[string]func(*rapid.T) string{
		"cron": ours.cron,
		"rate": interval,
		"at": func(t *rapid.T) string {
			return "instant(" + drawInstant(t, time.UTC).Format("2006-01-02T15:04:05.999") + ")"
		},
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			zone := drawZone(t)
			e, err := Parse(draw(t), zone)
			if err != nil {
				t.Skip("an instant before 1970")
			}
			anchor, after := drawInstant(t, zone), drawInstant(t, zone)
			upTo := after.Add(time.Duration(rapid.Int64Range(0, int64(e.Interval())+int64(time.Hour)*48).Draw(t, "time")))
			all := steps(e, anchor, after, rapid.IntRange(1, 300).Draw(t, "most"))
			if len(all) > 0 && rapid.Bool().Draw(t, "exactly") {
				upTo = all[len(all)-1]
			}
			all = slices.DeleteFunc(all, func(t time.Time) bool { return t.After(upTo) })
			got, ok := e.Last(anchor, after, upTo)
			if ok != (len(all) > 0) {
				t.Fatalf("%v in %v: Last(%v, %v, %v) = %v, %t, but there are %d", e, zone, anchor, after, upTo, got, ok, len(all))
			}
			if !ok {
				return
			}
			if next, more := e.Next(anchor, got); got.After(upTo) || more && !next.After(upTo) {
				t.Fatalf("%v in %v: Last(%v, %v, %v) = %v, and the next is %v", e, zone, anchor, after, upTo, got, next)
			}
			if again, ok := e.Next(anchor, got.Add(-1)); !ok || !again.Equal(got) {
				t.Fatalf("%v in %v: Last(%v, %v, %v) = %v, which does not occur", e, zone, anchor, after, upTo, got)
			}
		}))
	}
}

// TestOnce: over every clock change of a zone since 1970, a cron of every minute occurs once for
// every existing wall time.
func TestOnce(t *testing.T) {
	for _, name := range zoneNames {
		zone, err := Zone(name)
		if err != nil {
			t.Fatal(err)
		}
		e := mustParse(t, "cron(* * * * ? *)", zone)
		wallAt := func(at time.Time) int64 {
			_, offset := at.In(zone).Zone()
			return at.Unix() + int64(offset)
		}
		for at := time.Unix(0, 0); ; {
			_, at = at.In(zone).ZoneBounds()
			if at.IsZero() || at.Year() > 2037 {
				break
			}
			shown := map[int64]bool{}
			next, _ := e.Next(time.Time{}, at.Add(-26*time.Hour))
			for t0 := next.Add(-3 * time.Hour); t0.Before(next); t0 = t0.Add(30 * time.Second) {
				shown[wallAt(t0)] = true
			}
			for now := next; now.Before(at.Add(26 * time.Hour)); now = now.Add(30 * time.Second) {
				wall := wallAt(now)
				isNew := wall%60 == 0 && !shown[wall]
				shown[wall] = true
				if isNew != now.Equal(next) {
					t.Fatalf("%s: %v is the first of its wall time: %t, and the next occurrence is %v", name, now.In(zone), isNew, next.In(zone))
				}
				if isNew {
					next, _ = e.Next(time.Time{}, now)
				}
			}
		}
	}
}

// TestQuartz compares crons with go-quartz, in the dialect that it evaluates correctly.
func TestQuartz(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := quartzs.cron(t)
		e, err := Parse(text, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		trigger, err := quartz.NewCronTrigger("0 " + text[len("cron("):len(text)-1])
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		after := time.Date(rapid.IntRange(2000, 2100).Draw(t, "year"), 1, rapid.IntRange(1, 366).Draw(t, "day"), 23, 59, 0, 0, time.UTC)
		for range 10 {
			got, ok := e.Next(time.Time{}, after)
			nanos, err := trigger.NextFireTime(after.UnixNano())
			want := time.Unix(0, nanos).UTC()
			if !ok || err != nil || !got.Equal(want) {
				t.Fatalf("%s after %v: %v, quartz %v, naive %v", text, after, got, want, naiveCron(text, time.UTC, after, 1, after.AddDate(9, 0, 0)))
			}
			after = got
		}
	})
}

// TestEnds: instants far from all crons are answered, and quickly.
func TestEnds(t *testing.T) {
	far := []time.Time{{}, time.Unix(-1<<62, 0), time.Unix(1<<62, 0), time.Date(9999, 12, 31, 23, 59, 59, 1e9-1, time.UTC), time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0)}
	for _, text := range []string{"cron(* * * * ? *)", "cron(0 0 30 2 ? *)", "rate(36500 days)", "every(10 milliseconds)", "at(9999-12-31T23:59:59)"} {
		e := mustParse(t, text, time.FixedZone("east", 14*3600))
		for _, anchor := range far {
			for _, after := range far {
				next, ok := e.Next(anchor, after)
				if ok && (!next.After(after) || !next.Before(end)) {
					t.Errorf("%s from %v after %v: %v", text, anchor, after, next)
				}
				for _, upTo := range far {
					last, ok := e.Last(anchor, after, upTo)
					if ok && (!last.After(after) || last.After(upTo)) {
						t.Errorf("%s from %v after %v up to %v: %v", text, anchor, after, upTo, last)
					}
				}
			}
		}
	}
	newYork, err := Zone("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := Parse("at(9999-12-31T23:59:59)", newYork); err == nil {
		at, _ := e.Next(time.Time{}, time.Time{})
		t.Errorf("an at in the year 10000: %v", at)
	}
	var none Expression
	if _, ok := none.Next(time.Time{}, time.Time{}); ok || none.Kind() != 0 || none.Kind().String() != "none" {
		t.Error("the zero expression occurs")
	}
}
