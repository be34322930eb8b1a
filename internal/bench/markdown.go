package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteMarkdown writes the report as a page: the summary, and then everything that WriteTable writes.
func (r *Report) WriteMarkdown(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Measured on %s\n\n", r.Date.Format("2 January 2006"))
	fmt.Fprintf(&b, "By `%s`. [Measure](bench.md) tells what the names mean and how to do it again.\n\n", r.Command)
	for _, p := range r.Parts {
		fmt.Fprintf(&b, "%s: on %s, by `%s`.\n\n", p.title(), p.Date.Format("2 January 2006"), p.Command)
	}
	if err := r.WriteSummary(&b); err != nil {
		return err
	}
	b.WriteString("\n## Everything\n\n```text\n")
	if err := r.WriteTable(&b); err != nil {
		return err
	}
	b.WriteString("```\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// WriteSummary writes the report's most important figures as Markdown tables: calls at the largest number of connections that was measured,
// expiry, schedules and triggers.
func (r *Report) WriteSummary(out io.Writer) error {
	var b strings.Builder
	r.summarizeCalls(&b)
	r.summarizeExpiry(&b)
	r.summarizeResults(&b)
	r.summarizeGuard(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *Report) summarizeCalls(b *strings.Builder) {
	var targets []string
	most := map[string]int{} // connections, by scenario
	for _, f := range r.Calls {
		if !slices.Contains(targets, f.Target) {
			targets = append(targets, f.Target)
		}
		most[f.Scenario] = max(most[f.Scenario], f.Connections)
	}
	if len(targets) == 0 {
		return
	}
	fmt.Fprintf(b, "Calls a second, and in brackets microseconds of the server's CPU for each:\n\n| | Connections | %s |\n|---|--:|%s\n",
		strings.Join(targets, " | "), strings.Repeat("--:|", len(targets)))
	for i, f := range r.Calls {
		if i > 0 && r.Calls[i-1].Scenario == f.Scenario {
			continue
		}
		fmt.Fprintf(b, "| %s | %d |", f.About, most[f.Scenario])
		for _, target := range targets {
			fmt.Fprintf(b, " %s |", r.callCell(f.Scenario, most[f.Scenario], target))
		}
		b.WriteByte('\n')
	}
}

func (r *Report) callCell(scenario string, connections int, target string) string {
	for _, f := range r.Calls {
		if f.Scenario != scenario || f.Connections != connections || f.Target != target || f.Calls == 0 {
			continue
		}
		if f.ServerCPUUS == nil {
			return short(f.CallsPerS.Median)
		}
		return fmt.Sprintf("%s (%s)", short(f.CallsPerS.Median), short(f.ServerCPUUS.Median))
	}
	return ""
}

func (r *Report) summarizeExpiry(b *strings.Builder) {
	if len(r.Expiry) == 0 {
		return
	}
	b.WriteString("\nMilliseconds after the deadline (p50, p99, most):\n\n| | Removed, on disk | In a reader's hands | Early, twice, lost |\n|---|--:|--:|--:|\n")
	for _, x := range r.Expiry {
		fmt.Fprintf(b, "| %s: %d %s | %s | %s | %d, %d, %d |\n", x.Target, x.Items, x.About, lateCell(x.Commit), lateCell(x.Stream), x.Early, x.Twice, x.Lost)
	}
}

func lateCell(l *Lateness) string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf("%s, %s, %s", short(l.P50), short(l.P99), short(l.Max))
}
