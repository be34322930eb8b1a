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

// result is a figure with its goal.
type result struct {
	what, measured, goal, amazon string
}

// results returns the figures of schedules and triggers with their goals.
func (r *Report) results() (list []result) {
	add := func(what, measured, goal, amazon string) { list = append(list, result{what, measured, goal, amazon}) }
	atLeast := func(n int) string { return short(float64(n)) + "/s or more" }
	if s := r.Schedules; s != nil {
		byDefault := func(n int) string { return short(float64(n)) + "/s by default" }
		add(fmt.Sprintf("Schedules created over %d connections", s.Create.Connections), short(s.Create.CallsPerS.Median)+"/s", atLeast(goalCreatePerS), byDefault(amazonCreatePerS))
		add(fmt.Sprintf("CPU with %s schedules pending and nothing due", count(s.Pending)), short(s.IdleCPUPercent)+" %", "about 0 %", "")
		for _, x := range s.Firings {
			switch x.Experiment {
			case firingsEven:
				add(fmt.Sprintf("Lateness of %s firings, %d per second, with %s pending", count(x.Count), firingsPerS, count(x.Pending)), lateMS(x.LateMS),
					fmt.Sprintf("p99 %d ms or less", goalEvenP99MS), amazonLateness)
			case firingsBurst:
				add(fmt.Sprintf("Firings of %s due at one instant, with %s pending", count(x.Count), count(x.Pending)), rate(x.PerS),
					atLeast(goalFiringsPerS), byDefault(amazonFiringsS))
				add("the last of them after", short(x.DrainS)+" s", fmt.Sprintf("100,000 within %d s", goalDrainS), "")
				add("lateness of another group's, meanwhile", lateMS(x.BesideMS), fmt.Sprintf("p99 %d ms or less", goalBesideP99MS), amazonLateness)
			}
		}
		add("Firings early, twice, lost", s.faults(), "none early or lost", "")
	}
	for _, x := range r.Delivered {
		add(capital(x.About), rate(x.PerS), atLeast(goalRecordsPerS), "")
	}
	return list
}

func (s *Schedules) faults() string {
	var early, twice, lost int
	for _, x := range s.Firings {
		early, twice, lost = early+x.Early, twice+x.Twice, lost+x.Lost
	}
	return fmt.Sprintf("%d, %d, %d", early, twice, lost)
}

// rate formats a rate; empty if not all arrived.
func rate(perS float64) string {
	if perS == 0 {
		return ""
	}
	return short(perS) + "/s"
}

func lateMS(l *Lateness) string {
	if l == nil {
		return ""
	}
	return lateCell(l) + " ms"
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

// summarizeResults writes the results as a Markdown table.
func (r *Report) summarizeResults(b *strings.Builder) {
	list := r.results()
	if len(list) == 0 {
		return
	}
	b.WriteString("\n### Schedules and triggers\n\nDelivered to a webhook and to NATS on the same machine. Lateness is from the due time to the arrival (p50, p99, maximum).\n\n")
	writeResults(b, "mayfly", "EventBridge Scheduler", list)
	if !r.deliveredTo(toNATS) {
		b.WriteString("\n" + withoutNATS + "\n")
	}
}

// summarizeGuard writes guard's results as a Markdown table.
func (r *Report) summarizeGuard(b *strings.Builder) {
	list := r.guardResults()
	if len(list) == 0 {
		return
	}
	b.WriteString("\n### Guard\n\n`mayfly guard` beside a mayfly that removes nothing by itself, over HTTP on the same machine. Lateness is from the deadline to the removal's record in a " +
		"reader's hands (p50, p99, maximum).\n\n")
	writeResults(b, "mayfly guard", "Amazon DynamoDB", list)
}

func writeResults(b *strings.Builder, ours, amazon string, list []result) {
	fmt.Fprintf(b, "| | %s | Goal | %s |\n|---|--:|--:|--:|\n", ours, amazon)
	for _, x := range list {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", x.what, x.measured, x.goal, x.amazon)
	}
}

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
