package cron

import (
	"testing"
	"time"
)

// BenchmarkNext measures consecutive occurrences, and the expressions with the longest search.
func BenchmarkNext(b *testing.B) {
	berlin, err := Zone("Europe/Berlin")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		zone       *time.Location
	}{
		{"every minute", "cron(* * * * ? *)", berlin},
		{"weekdays", "cron(0/5 8-17 ? * MON-FRI *)", berlin},
		{"monthly", "cron(0 18 LW * ? *)", berlin},
		{"UTC", "cron(0 10 * * ? *)", time.UTC},
		{"leap Monday", "cron(0 0 ? 2 2#5 *)", berlin},
		{"never", "cron(0 0 30 2 ? *)", berlin},
		{"never in any month", "cron(30 2 31 2,4,6,9,11 ? *)", berlin},
		{"always in a gap", "cron(30 2 29 3 ? 2026,2037,2043)", berlin},
		{"rate", "rate(5 minutes)", berlin},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := mustParse(b, c.text, c.zone)
			start := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
			after := start
			for b.Loop() {
				next, ok := e.Next(start, after)
				if !ok {
					next = start
				}
				after = next
			}
		})
	}
}

// BenchmarkNextInGap measures a cron of every minute at clock changes: those in the zone's table,
// and those by its rule for later years.
func BenchmarkNextInGap(b *testing.B) {
	for name, gap := range map[string]string{"2027": "2027-03-28T00:59:00Z", "2190": "2190-03-28T00:59:00Z", "a day in 2011": "2011-12-30T09:59:00Z"} {
		b.Run(name, func(b *testing.B) {
			zone := "Europe/Berlin"
			if name == "a day in 2011" {
				zone = "Pacific/Apia"
			}
			location, err := Zone(zone)
			if err != nil {
				b.Fatal(err)
			}
			e, after := mustParse(b, "cron(* * * * ? *)", location), mustTime(b, gap)
			for b.Loop() {
				e.Next(time.Time{}, after)
			}
		})
	}
}

func BenchmarkLast(b *testing.B) {
	from := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	for name, text := range map[string]string{"every minute": "cron(* * * * ? *)", "monthly": "cron(0 18 LW * ? *)", "never": "cron(0 0 30 2 ? *)", "leap Monday": "cron(0 0 ? 2 2#5 *)", "rate": "every(10 milliseconds)"} {
		for span, upTo := range map[string]time.Time{"an hour": from.Add(time.Hour), "a century": from.AddDate(100, 0, 0)} {
			b.Run(name+"/"+span, func(b *testing.B) {
				e := mustParse(b, text, nil)
				for b.Loop() {
					e.Last(from, from, upTo)
				}
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse("cron(0/5 8-17 ? * MON-FRI *)", time.UTC); err != nil {
			b.Fatal(err)
		}
	}
}
