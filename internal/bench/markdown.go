package bench

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the report as a part of a page: its origin, tables of its most important
// figures, and the output of WriteTable.
func (r *Report) WriteMarkdown(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## Measured on %s\n\n%s.\n\n```bash\n%s\n", r.Date.Format("2 January 2006"), r.Machine.Line(), r.Command)
	for _, p := range r.Parts {
		fmt.Fprintf(&b, "%s   # %s, %s\n", p.Command, strings.Join(p.Of, " and "), p.Date.Format("2 January 2006"))
	}
	b.WriteString("```\n")
	r.summarizeEndpoints(&b)
	r.summarizeExpiry(&b)
	r.summarizeBursts(&b)
	if list := r.deadlineResults(); len(list) > 0 {
		b.WriteString("\n### Goals of expiry\n\nLateness is from the deadline to the record in the hands of a reader that polls every 5 ms (p50, p99, maximum).\n\n")
		list.write(&b, r.Endpoints[0].Name, "Amazon DynamoDB")
	}
	if list := r.Guard.results(); len(list) > 0 {
		b.WriteString("\n### Guard\n\n`mayfly guard` beside a mayfly that removes nothing by itself, over HTTP on the same machine. Lateness is from the deadline to the removal's record in a " +
			"reader's hands (p50, p99, maximum).\n\n")
		list.write(&b, "mayfly guard", "Amazon DynamoDB")
	}
	r.summarizeCalls(&b)
	if list := r.results(); len(list) > 0 {
		b.WriteString("\n### Schedules and triggers\n\nDelivered to a webhook and to NATS on the same machine. Lateness is from the due time to the arrival (p50, p99, maximum).\n\n")
		list.write(&b, "mayfly", "EventBridge Scheduler")
		if !r.deliveredTo(toNATS) {
			b.WriteString("\n" + withoutNATS + "\n")
		}
	}
	b.WriteString("\n### Everything\n\n```text\n")
	if err := r.WriteTable(&b); err != nil {
		return err
	}
	b.WriteString("```\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *Report) summarizeEndpoints(b *strings.Builder) {
	b.WriteString("\n| Server | Version | Acknowledged writes are | Notes |\n|---|---|---|---|\n")
	for _, e := range r.Endpoints {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", e.Name, e.Version, e.answers(), strings.Join(e.Notes, "; "))
	}
	if r.Commit != "" {
		fmt.Fprintf(b, "\nmayfly was built from commit %s.\n", r.Commit)
	}
}

func (r *Report) summarizeCalls(b *strings.Builder) {
	var g grid
	for _, f := range r.Calls {
		text := ""
		if f.Calls > 0 {
			text = short(f.CallsPerS.Median)
		}
		if f.Calls > 0 && f.ServerCPUUS != nil {
			text += " (" + short(f.ServerCPUUS.Median) + ")"
		}
		g.add(fmt.Sprintf("%s | %d", f.About, f.Connections), f.Target, text)
	}
	if len(g.rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Calls\n\nCalls per second; in brackets the server's CPU time per call in microseconds.\n\n| | Connections | %s |\n|---|--:|%s\n",
		strings.Join(g.columns, " | "), strings.Repeat("--:|", len(g.columns)))
	g.write(b, "| ", " | ", " |", "")
}

func (r *Report) summarizeExpiry(b *strings.Builder) {
	if len(r.Expiry) == 0 {
		return
	}
	b.WriteString("\n### Lateness\n\nMilliseconds from the deadline (p50, p99, maximum) to the removal on disk, and to its record in a reader's hands.\n\n" +
		"| | On disk | In a reader's hands | Early | Twice | Lost | Not removed |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, x := range r.Expiry {
		if x.NoTTL {
			fmt.Fprintf(b, "| %s: %s |  |  |  |  |  | all: it has no TTL |\n", x.Target, x.About)
			continue
		}
		fmt.Fprintf(b, "| %s: %s %s | %s | %s | %d | %d | %d | %s |\n", x.Target, Count(x.Items), x.About, lateCell(x.Commit), lateCell(x.Stream), x.Early, x.Twice, x.Lost,
			Count(x.NotRemoved))
	}
}

// summarizeBursts writes the rates after one instant, and the calls beside it.
func (r *Report) summarizeBursts(b *strings.Builder) {
	var rows strings.Builder
	for _, x := range r.Expiry {
		if x.Experiment != experimentBurst || x.Stream == nil || x.Rounds == 0 {
			continue
		}
		head := fmt.Sprintf("| %s: %s %s | %s | %s |", x.Target, Count(x.Items), x.About, rateCell(x.DrainPerS), rateCell(x.ReaderPerS))
		for _, f := range x.Foreground {
			fmt.Fprintf(&rows, "%s %s/s %s | %s, %s | %s, %s | %s |\n", head, Count(f.PerS), f.Operation, short(f.IdleP50MS), short(f.IdleP99MS),
				short(f.DuringP50MS), short(f.DuringP99MS), short(f.ratio()))
			head = "| | | |"
		}
		if len(x.Foreground) == 0 {
			rows.WriteString(head + " | | | |\n")
		}
	}
	if rows.Len() > 0 {
		fmt.Fprintf(b, "\n### Bursts beside calls\n\nRates from the deadline to the last removal and to the last record in a reader's hands, and milliseconds of the calls (p50, p99) "+
			"before the deadline and until the last removal.\n\n| | Removed | Read | Calls | Before | During | p99 ratio |\n|---|--:|--:|---|--:|--:|--:|\n%s", &rows)
	}
}

// rateCell returns a rate; "" if it is unknown.
func rateCell(perS float64) string {
	if perS == 0 {
		return ""
	}
	return short(perS) + "/s"
}

func lateCell(l *Lateness) string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf("%s, %s, %s", short(l.P50), short(l.P99), short(l.Max))
}
