package bench

import (
	"fmt"
	"strings"
)

// Goals on two cores that server, client and target share, and Amazon's documented figures for
// EventBridge Scheduler ("Quotas for Amazon EventBridge Scheduler", "Schedule types"): the
// accuracy, and the default quotas in large regions.
const (
	goalCreatePerS   = 3000
	goalFiringsPerS  = 2000
	goalEvenP99MS    = 25
	goalDrainS       = 50
	goalBesideP99MS  = 100
	goalRecordsPerS  = 5000
	goalGuardP99MS   = 250
	goalGuardPerS    = 4000
	goalArmedMB      = 300
	goalTakeoverS    = 10
	amazonTTL        = "within a few days; 8 to 28 minutes measured"
	amazonFiringsS   = 1000
	amazonCreatePerS = 1000
	amazonLateness   = "within 60 s"
)

// result is a figure with its goal: a row of a page's table, and a group of bars in a chart. A row
// without bars has no place in a chart.
type result struct {
	what, measured, goal, amazon string

	label string
	bars  []bar
	rate  bool // the bars are rates, and not latenesses
}

// results are rows in the order of the page.
type results []result

func (list *results) add(x result) { *list = append(*list, x) }

// addRate adds a rate, which is zero if not all arrived. Amazon's is zero if it documents none.
func (list *results) addRate(what, label, target string, v Spread, goal, amazon float64) {
	x := result{what: what, goal: short(goal) + "/s or more", label: label, rate: true}
	if v.Median > 0 {
		x.measured = short(v.Median) + "/s"
		x.bars = []bar{{target: target, value: v, unit: "/s"}, goalBar(goal, "/s")}
	}
	if amazon > 0 {
		x.amazon = short(amazon) + "/s by default"
		if x.bars != nil {
			x.bars = append(x.bars, bar{target: targetAmazon, value: Spread{Median: amazon}, unit: "/s"})
		}
	}
	list.add(x)
}

// addLate adds a lateness with a goal for its p99 in milliseconds.
func (list *results) addLate(what, label, target string, l *Lateness, goalP99 int, amazon string) {
	x := result{what: what, goal: fmt.Sprintf("p99 %d ms or less", goalP99), amazon: amazon, label: label}
	if l != nil {
		x.measured = lateCell(l) + " ms"
		x.bars = append(lateBars(target, l), goalBar(float64(goalP99), p99Unit))
	}
	list.add(x)
}

func goalBar(v float64, unit string) bar {
	return bar{target: targetGoal, value: Spread{Median: v}, unit: unit}
}

// results returns the figures of schedules and triggers with their goals.
func (r *Report) results() (list results) {
	if s := r.Schedules; s != nil {
		s.addTo(&list)
	}
	for _, x := range r.Delivered {
		label := "stream records to " + map[string]string{toWebhook: "a webhook", toNATS: "NATS"}[x.To]
		list.addRate(capital(x.About), label, x.Target, Spread{Median: x.PerS}, goalRecordsPerS, 0)
	}
	return list
}

func (s *Schedules) addTo(list *results) {
	list.addRate(fmt.Sprintf("Schedules created over %d connections", s.Create.Connections), "schedules created",
		s.Target, s.Create.CallsPerS, goalCreatePerS, amazonCreatePerS)
	list.add(result{
		what:     fmt.Sprintf("CPU with %s schedules pending and nothing due", count(s.Pending)),
		measured: short(s.IdleCPUPercent) + " %", goal: "about 0 %",
	})
	var early, twice, lost int
	for _, x := range s.Firings {
		early, twice, lost = early+x.Early, twice+x.Twice, lost+x.Lost
		switch n, pending := count(x.Count), count(x.Pending); x.Experiment {
		case firingsEven:
			list.addLate(fmt.Sprintf("Lateness of %s firings, %d per second, with %s pending", n, firingsPerS, pending),
				"fire evenly, "+pending+" pending", s.Target, x.LateMS, goalEvenP99MS, amazonLateness)
		case firingsBurst:
			list.addRate(fmt.Sprintf("Firings of %s due at one instant, with %s pending", n, pending), n+" firings at one instant",
				s.Target, Spread{Median: x.PerS}, goalFiringsPerS, amazonFiringsS)
			list.add(result{what: "the last of them after", measured: short(x.DrainS) + " s", goal: fmt.Sprintf("100,000 within %d s", goalDrainS)})
			list.addLate("lateness of another group's, meanwhile", "another group's, in a burst", s.Target, x.BesideMS, goalBesideP99MS, amazonLateness)
		}
	}
	list.add(result{what: "Firings early, twice, lost", measured: fmt.Sprintf("%d, %d, %d", early, twice, lost), goal: "none early or lost"})
}

// results returns the figures of guard with their goals.
func (g *Guard) results() (list results) {
	if g == nil {
		return nil
	}
	var f Faults
	for _, x := range g.Removals {
		f.Early, f.Twice, f.Lost, f.NotRemoved = f.Early+x.Early, f.Twice+x.Twice, f.Lost+x.Lost, f.NotRemoved+x.NotRemoved
		switch n := count(x.Items); x.Experiment {
		case guardEven:
			list.addLate(fmt.Sprintf("Lateness of %s removals, %s per second, each known a second before", n, count(guardPerS)),
				"items expire evenly", g.Target, x.LateMS, goalGuardP99MS, amazonTTL)
		case guardBurst:
			list.addRate(fmt.Sprintf("Removals of %s items due at one instant", n), n+" by guard", g.Target, Spread{Median: x.PerS}, goalGuardPerS, 0)
		case guardTakeover:
			list.add(x.takeover(g.Target))
		}
	}
	list.add(result{
		what:     fmt.Sprintf("Memory of a worker with %s deadlines armed", count(g.Armed)),
		measured: short(g.ArmedMB) + " MB", goal: fmt.Sprintf("less than %d MB for a million", goalArmedMB),
	})
	list.add(result{what: "Early, twice, lost, not removed", measured: fmt.Sprintf("%d, %d, %d, %d", f.Early, f.Twice, f.Lost, f.NotRemoved), goal: "none"})
	return list
}

// takeover returns the result of a worker's kill.
func (x *Removals) takeover(target string) result {
	row := result{
		what: "Maximum lateness when one of two workers is killed", goal: fmt.Sprintf("within %d s", goalTakeoverS), label: "one of two workers is killed",
	}
	if l := x.LateMS; l != nil {
		const unit = " ms at most"
		row.measured = short(l.Max/1000) + " s"
		row.bars = []bar{{target: target, value: Spread{Median: l.Max}, unit: unit}, goalBar(goalTakeoverS*1000, unit)}
	}
	return row
}

// groups returns the bars of rates, or of latenesses.
func (list results) groups(rate bool) (groups []group) {
	for _, x := range list {
		if x.rate == rate && len(x.bars) > 0 {
			groups = addBars(groups, x.label, x.bars...)
		}
	}
	return groups
}

// write writes the rows as a Markdown table.
func (list results) write(b *strings.Builder, ours, amazon string) {
	fmt.Fprintf(b, "| | %s | Goal | %s |\n|---|--:|--:|--:|\n", ours, amazon)
	for _, x := range list {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", x.what, x.measured, x.goal, x.amazon)
	}
}

// count formats a whole number with a comma between thousands.
func count(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// withoutNATS is a note in place of the missing row.
const withoutNATS = "Delivery to NATS was not measured; measure it with: `--nats nats://127.0.0.1:4222`"

func (r *Report) deliveredTo(to string) bool {
	for _, x := range r.Delivered {
		if x.To == to {
			return true
		}
	}
	return len(r.Delivered) == 0 // no row is missing
}
