package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/cron"
)

// planned is a schedule of the year, and its firings.
type planned struct {
	name    string
	members []string
	text    string
	zone    string
	start   time.Time
	end     time.Time
	window  int // minutes
}

// In a year with thousands of schedules of every kind, each firing comes once, at its instant, and
// there are no others. The expected firings come from internal/work/cron alone.
func TestYear(t *testing.T) {
	if testing.Short() {
		t.Skip("a year takes a while")
	}
	w := newWorld(t, "", nil)
	end := begin.AddDate(1, 0, 0)
	random := rand.New(rand.NewPCG(2030, 1))
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Apia"}
	somewhen := func() time.Time {
		return begin.Add(time.Duration(random.Int64N(int64(end.Sub(begin))))).Truncate(time.Second)
	}
	var all []planned
	add := func(text string, p planned) {
		p.name, p.text = fmt.Sprintf("s%04d", len(all)), text
		if p.zone == "" {
			p.zone = "UTC"
		}
		p.members = append(p.members, `"ScheduleExpressionTimezone":"`+p.zone+`"`)
		if !p.start.IsZero() {
			p.members = append(p.members, `"StartDate":`+epoch(p.start))
		}
		if !p.end.IsZero() {
			p.members = append(p.members, `"EndDate":`+epoch(p.end))
		}
		if p.window > 0 {
			p.members = append(p.members, fmt.Sprintf(`"FlexibleTimeWindow":{"Mode":"FLEXIBLE","MaximumWindowInMinutes":%d}`, p.window))
		}
		all = append(all, p)
	}
	pick := func(choices ...string) string { return choices[random.IntN(len(choices))] }
	part := testkit.Size(5, 1)
	for i := range 1500 / part {
		at, p := somewhen(), planned{zone: pick(zones...)}
		if i%3 == 0 {
			p.members = []string{`"ActionAfterCompletion":"DELETE"`}
		}
		if i%5 == 0 {
			p.window = 1 + random.IntN(1440)
		}
		if i%7 == 0 {
			add(fmt.Sprintf("instant(%s.%03d)", at.Format("2006-01-02T15:04:05"), random.IntN(1000)), p)
			continue
		}
		add("at("+at.Format("2006-01-02T15:04:05")+")", p)
	}
	for i := range 700 / part {
		p := planned{}
		if i%2 == 0 {
			p.start = somewhen()
			if i%4 == 0 {
				p.end = p.start.Add(time.Duration(random.Int64N(int64(90 * 24 * time.Hour))))
				p.members = []string{`"ActionAfterCompletion":"DELETE"`}
			}
		}
		if i%10 == 0 {
			p.window = 1 + random.IntN(600)
		}
		add(fmt.Sprintf("rate(%d %s)", 12+random.IntN(40), pick("days", "days", "days", "hours")), p)
	}
	for i := range 800 / part {
		p := planned{zone: pick(zones...)}
		if i%5 == 0 {
			p.start = somewhen()
			p.end = p.start.Add(time.Duration(1+random.IntN(200)) * 24 * time.Hour)
		}
		if i%20 == 0 {
			p.window = 1 + random.IntN(60)
		}
		minute, hour := random.IntN(60), random.IntN(24)
		add(pick(
			fmt.Sprintf("cron(%d %d ? * %s *)", minute, hour, pick("MON", "2", "FRI", "7", "WED")),
			fmt.Sprintf("cron(%d %d %d * ? *)", minute, hour, 1+random.IntN(31)),
			fmt.Sprintf("cron(%d %d L * ? *)", minute, hour),
			fmt.Sprintf("cron(%d %d ? * %d#%d *)", minute, hour, 1+random.IntN(7), 1+random.IntN(5)),
			fmt.Sprintf("cron(%d %d ? * %dL *)", minute, hour, 1+random.IntN(7)),
			fmt.Sprintf("cron(%d %d %dW * ? 2030)", minute, hour, 1+random.IntN(31)),
			fmt.Sprintf("cron(30 1-3 %d-%d MAR,OCT,NOV,APR ? *)", 1+random.IntN(14), 15+random.IntN(16)),
			fmt.Sprintf("cron(0/20 %d 29 2 ? *)", hour),
		), p)
	}
	want := map[string]string{} // by name and occurrence
	for _, p := range all {
		w.create(p.name, p.text, p.members...)
		for _, at := range p.occurrences(t, end) {
			want[p.name+" "+at.Format(time.RFC3339Nano)] = ""
		}
	}
	began := time.Now()
	for month := range 12 {
		w.advanceTo(begin.AddDate(0, month+1, 0))
		for _, d := range w.taken() {
			at := d.Subject + " " + d.Time.Format(time.RFC3339Nano)
			id, due := want[at]
			switch {
			case !due:
				t.Errorf("%s fired at %v, which it should not have", d.Subject, d.Time)
			case id != "":
				t.Errorf("%s fired twice at %v", d.Subject, d.Time)
			}
			want[at] = d.ID
		}
	}
	w.advance(24 * time.Hour) // for the last windows
	for _, d := range w.taken() {
		want[d.Subject+" "+d.Time.Format(time.RFC3339Nano)] = d.ID
	}
	var lost []string
	for at, id := range want {
		if id == "" {
			lost = append(lost, at)
		}
	}
	slices.Sort(lost)
	if len(lost) > 0 {
		t.Errorf("%d of %d were lost: %v", len(lost), len(want), lost[:min(len(lost), 20)])
	}
	t.Logf("%d schedules, %d firings in %v", len(all), len(want), time.Since(began).Round(time.Millisecond))
	for _, p := range all {
		_, err := w.call("GET", "/schedules/"+p.name, "")
		over := p.end.IsZero() || !p.end.After(w.Scheduler.now())
		if deleted := err != nil; deleted != (p.members[0] == `"ActionAfterCompletion":"DELETE"` && over) {
			t.Errorf("%s %v: deleted %v", p.text, p.members, deleted)
		}
	}
}

// occurrences returns the occurrences in the year.
func (p planned) occurrences(t *testing.T, end time.Time) (all []time.Time) {
	zone, err := cron.Zone(p.zone)
	if err != nil {
		t.Fatal(err)
	}
	e, err := cron.Parse(p.text, zone)
	if err != nil {
		t.Fatal(err)
	}
	anchor, after := begin, begin
	switch {
	case e.Kind() == cron.At:
		at, _ := e.Next(begin, time.Time{})
		if !at.After(end) {
			return []time.Time{at}
		}
		return nil
	case !p.start.IsZero():
		anchor, after = p.start, p.start.Add(-1)
	case e.Kind() == cron.Rate:
		after = begin.Add(-1)
	}
	for {
		at, ok := e.Next(anchor, after)
		if !ok || at.After(end) || !p.end.IsZero() && at.After(p.end) {
			return all
		}
		all = append(all, at)
		after = at
	}
}
