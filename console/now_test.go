package console

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// rates returns the least and the greatest rate of the past, and the number of its removals.
func (p *present) rates() (least, most, items float64) {
	for _, r := range p.past {
		if items += r.items; least == 0 || r.rate() < least {
			least = r.rate()
		}
		most = max(most, r.rate())
	}
	return least, most, items
}

func near(a, b float64) bool { return a-b < 0.001 && b-a < 0.001 }

// The bars of a minute have all its removals and the same rate, also while the minute goes on.
func TestSpread(t *testing.T) {
	for passed, bars := range map[time.Duration]int{4 * time.Second: 1, 12 * time.Second: 3, time.Minute: 12} {
		p := present{past: map[int64]removals{}}
		p.spread(begin, begin.Add(passed), 120)
		rate := 120 / passed.Seconds()
		if least, most, items := p.rates(); len(p.past) != bars || !near(items, 120) || !near(least, rate) || !near(most, rate) {
			t.Errorf("%s after its beginning a minute has %d bars of %f to %f with %f removals; want %d of %f with 120", passed, len(p.past), least, most, items, bars, rate)
		}
	}
}

// A page that is opened at any instant shows a steady rate at once, and from then on.
func TestSteadyRate(t *testing.T) {
	const rate = 10
	for _, opened := range []time.Duration{23 * time.Second, 25 * time.Second, 28*time.Second + 300*time.Millisecond} {
		p := present{past: map[int64]removals{}}
		p.spread(begin, begin.Add(opened), rate*opened.Seconds())
		for at := opened; at < opened+20*time.Second; at += 900 * time.Millisecond {
			if least, most, _ := p.rates(); !near(least, rate) || !near(most, rate) {
				t.Errorf("a page of %s shows rates of %f to %f %s later; want %d", opened, least, most, at-opened, rate)
			}
			p.spread(begin.Add(at), begin.Add(at+900*time.Millisecond), 0.9*rate)
		}
	}
}

// Removals while the clock stands have a finite rate.
func TestSpreadOfNoTime(t *testing.T) {
	p := present{past: map[int64]removals{}}
	p.spread(begin, begin, 40)
	if _, most, items := p.rates(); items != 40 || most != 40 {
		t.Errorf("%f removals have the rate %f; want 40 in a second", items, most)
	}
}

// After a jump of the clock the chart shows the removals in the minutes in which they were.
func TestJump(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("carts")
	s.expires("carts", "ends")
	s.put("carts", attr.Item{"id": attr.S("a"), "ends": attr.Int(begin.Add(58 * time.Minute).Unix())})
	live := s.send(http.MethodGet, below+"live/now", "", "")
	defer live.Body.Close()
	events := bufio.NewScanner(live.Body)
	for events.Scan() && events.Text() != "data: rate" {
	}
	_, err := s.db.Clock().Advance(t.Context(), time.Hour)
	must(t, err)
	for turns := 0; turns < 5 && events.Scan(); {
		if strings.Contains(events.Text(), "12:58:30 UTC: 0.017 per second") {
			return
		}
		if events.Text() == "event: clock" {
			turns++
		}
	}
	t.Errorf("an hour later the chart does not show the removal in its minute: %v", events.Err())
}

// The chart says how far the coming deadlines are counted, if not to its end.
func TestCountedUntil(t *testing.T) {
	p := present{from: begin, until: begin.Add(time.Duration(nextSteps) * nextStep)}
	if n := p.countedUntil(); n != nil {
		t.Errorf("all deadlines are counted, and the page says %s", markupText(n))
	}
	p.until = begin.Add(20 * time.Minute)
	if text := markupText(p.countedUntil()); !strings.Contains(text, "counted up to") || !strings.Contains(text, "2030-01-01 12:20:00 UTC") {
		t.Errorf("of a part that is counted, the page says %s", text)
	}
}
