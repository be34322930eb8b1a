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
	goalGuardP99MS   = 250 // evenly
	goalGuardPerS    = 4000
	goalArmedMB      = 300
	goalTakeoverS    = 10
	amazonTTL        = "within a few days; 8 to 28 minutes measured"
	amazonFiringsS   = 1000
	amazonCreatePerS = 1000
	amazonLateness   = "within 60 s"

	goalBurstPerS      = 30_000 // beside few calls
	goalDrainPerS      = 100_000
	goalDrainPlainPerS = 200_000
	goalFewRatio       = 5 // of the p99 of calls during a burst to that before
	goalManyRatio      = 8
)

// lateGoal is a goal of a lateness in milliseconds; zero: none.
type lateGoal struct{ p50, p99 int }

// Goals of deadlines at whole seconds, by the number of items at each.
var (
	goalsWhole = map[int]lateGoal{wholePerS: {10, 25}, 3333: {30, 70}}
	goalDisk   = lateGoal{p50: 15} // the record is durable, of 3,333 items
	goalGuard  = lateGoal{60, 150} // of wholePerS items
)

func (g lateGoal) String() string {
	switch {
	case g == lateGoal{}:
		return ""
	case g.p99 == 0:
		return fmt.Sprintf("p50 %d ms or less", g.p50)
	case g.p50 == 0:
		return fmt.Sprintf("p99 %d ms or less", g.p99)
	}
	return fmt.Sprintf("p50 %d ms, p99 %d ms or less", g.p50, g.p99)
}

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

// addRate adds a rate, which is zero if not all arrived. The goal is zero if there is none, and
// Amazon's if it documents none.
func (list *results) addRate(what, label, target string, v Spread, goal, amazon float64) {
	x := result{what: what, measured: rateCell(v.Median), label: label, rate: true}
	if goal > 0 {
		x.goal = short(goal) + "/s or more"
	}
	if v.Median > 0 {
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

// addLate adds a lateness.
func (list *results) addLate(what, label, target string, l *Lateness, goal lateGoal, amazon string) {
	x := result{what: what, goal: goal.String(), amazon: amazon, label: label}
	if l != nil {
		x.measured = lateCell(l) + " ms"
		x.bars = append(lateBars(target, l), goalBar(float64(goal.p99), p99Unit))
	}
	list.add(x)
}

// addFaults adds the faults of expiry.
func (list *results) addFaults(f Faults) {
	list.add(result{what: "Early, twice, lost, not removed", measured: fmt.Sprintf("%d, %d, %d, %d", f.Early, f.Twice, f.Lost, f.NotRemoved), goal: "none"})
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

// deadlineResults returns the figures of expiry at the first endpoint with their goals. It returns
// none for a report of before the goals, whose reader did not poll.
func (r *Report) deadlineResults() (list results) {
	var f Faults
	for _, x := range r.Expiry {
		if x.Target != r.Endpoints[0].Name || x.NoTTL || x.Rounds == 0 {
			continue
		}
		f.add(x.Faults)
		what := Count(x.Items) + " " + x.About
		if x.Experiment == experimentBurst {
			x.addBurst(&list, what)
			continue
		}
		goal := goalsWhole[x.AtOnce]
		list.addLate("Lateness of "+what, "", x.Target, x.Stream, goal, amazonTTL)
		if x.AtOnce > wholePerS && x.Commit != nil {
			list.addLate("on disk", "", x.Target, x.Commit, goalDisk, "")
		}
	}
	if list == nil {
		return nil
	}
	for _, d := range r.Drain {
		if goal := map[bool]float64{false: goalDrainPerS, true: goalDrainPlainPerS}[d.Plain]; d.Target == r.Endpoints[0].Name {
			list.addRate("Removals of "+Count(d.Items)+" "+d.About, "", d.Target, d.PerS, goal, 0)
		}
	}
	list.addFaults(f)
	return list
}

// addBurst adds the removal rate and the effect on calls.
func (x *Expiry) addBurst(list *results, what string) {
	rateGoals, ratioGoals := map[int]float64{callsFew: goalBurstPerS}, map[int]int{callsFew: goalFewRatio, callsMany: goalManyRatio}
	for i, f := range x.Foreground {
		if i == 0 {
			list.addRate("Removals of "+what, "", x.Target, Spread{Median: x.DrainPerS}, rateGoals[f.PerS], 0)
		}
		row := result{what: f.Operation + " meanwhile, p99 before and during", measured: fmt.Sprintf("%s, %s ms: %s times", short(f.IdleP99MS), short(f.DuringP99MS), short(f.ratio()))}
		if goal := ratioGoals[f.PerS]; goal > 0 {
			row.goal = fmt.Sprintf("at most %d times", goal)
		}
		list.add(row)
	}
}

func (s *Schedules) addTo(list *results) {
	list.addRate(fmt.Sprintf("Schedules created over %d connections", s.Create.Connections), "schedules created",
		s.Target, s.Create.CallsPerS, goalCreatePerS, amazonCreatePerS)
	list.add(result{
		what:     fmt.Sprintf("CPU with %s schedules pending and nothing due", Count(s.Pending)),
		measured: short(s.IdleCPUPercent) + " %", goal: "about 0 %",
	})
	var early, twice, lost int
	for _, x := range s.Firings {
		early, twice, lost = early+x.Early, twice+x.Twice, lost+x.Lost
		switch n, pending := Count(x.Count), Count(x.Pending); x.Experiment {
		case firingsEven:
			list.addLate(fmt.Sprintf("Lateness of %s firings, %d per second, with %s pending", n, firingsPerS, pending),
				"fire evenly, "+pending+" pending", s.Target, x.LateMS, lateGoal{p99: goalEvenP99MS}, amazonLateness)
		case firingsBurst:
			list.addRate(fmt.Sprintf("Firings of %s due at one instant, with %s pending", n, pending), n+" firings at one instant",
				s.Target, Spread{Median: x.PerS}, goalFiringsPerS, amazonFiringsS)
			list.add(result{what: "the last of them after", measured: short(x.DrainS) + " s", goal: fmt.Sprintf("100,000 within %d s", goalDrainS)})
			list.addLate("lateness of another group's, meanwhile", "another group's, in a burst", s.Target, x.BesideMS, lateGoal{p99: goalBesideP99MS}, amazonLateness)
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
		f.add(x.Faults)
		switch n := Count(x.Items); x.Experiment {
		case guardWhole:
			list.addLate(fmt.Sprintf("Lateness of %s removals, %s at each whole second, each known a second before", n, Count(wholePerS)),
				Count(wholePerS)+" at each whole second", g.Target, x.LateMS, goalGuard, amazonTTL)
		case guardEven:
			list.addLate(fmt.Sprintf("Lateness of %s removals, %s per second, each known a second before", n, Count(guardPerS)),
				"items expire evenly", g.Target, x.LateMS, lateGoal{p99: goalGuardP99MS}, amazonTTL)
		case guardBurst:
			list.addRate(fmt.Sprintf("Removals of %s items due at one instant", n), n+" by guard", g.Target, Spread{Median: x.PerS}, goalGuardPerS, 0)
		case guardTakeover:
			list.add(x.takeover(g.Target))
		}
	}
	list.add(result{
		what:     fmt.Sprintf("Memory of a worker with %s deadlines armed", Count(g.Armed)),
		measured: short(g.ArmedMB) + " MB", goal: fmt.Sprintf("less than %d MB for a million", goalArmedMB),
	})
	list.addFaults(f)
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

// Count formats a whole number with a comma between thousands.
func Count(n int) string {
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
