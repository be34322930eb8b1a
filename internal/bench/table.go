package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the report for people: a block for each scenario, with a line for each target
// and number of connections, then the ratios, then the experiments.
func (r *Report) WriteTable(out io.Writer) error {
	var b strings.Builder
	r.writeHead(&b)
	r.writeCalls(&b)
	r.writeRatios(&b)
	r.writeExpiry(&b)
	r.writeDrain(&b)
	r.writeSchedules(&b)
	r.writeDelivered(&b)
	r.writeGuard(&b)
	r.writeStart(&b)
	r.writeProblems(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *Report) writeHead(b *strings.Builder) {
	fmt.Fprintf(b, "mayfly bench, %s, %s\n", r.Date.Format("2006-01-02 15:04 MST"), r.Machine.Line())
	fmt.Fprintf(b, "%s\n", r.Settings.line())
	for _, e := range r.Endpoints {
		fmt.Fprintf(b, "%s is %s", e.title(), e.URL)
		notes := e.Notes
		if answers := e.answers(); answers != "" {
			notes = append([]string{"acknowledged writes are " + answers}, notes...)
		}
		if len(notes) > 0 {
			fmt.Fprintf(b, " (%s)", strings.Join(notes, "; "))
		}
		b.WriteByte('\n')
	}
	r.writeParts(b)
}

// writeParts writes the origins of merged experiments.
func (r *Report) writeParts(b *strings.Builder) {
	for _, p := range r.Parts {
		fmt.Fprintf(b, "%s are of another run: %s, %s, load %.1f at the start\n  %s\n", p.title(), p.Date.Format("2006-01-02 15:04 MST"), p.Machine.Go, p.Machine.Load, p.Settings.line())
	}
}

func (s *Settings) line() string {
	return fmt.Sprintf("items of %d bytes, %d stored, durability %s; rounds of %d ms: median of %d, in brackets least and greatest",
		s.ItemBytes, s.Items, s.Durability, s.DurationMS, s.Rounds)
}

// columns aligns the output of write, whose cells end with tabs.
func columns(b *strings.Builder, write func(w io.Writer)) {
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', tabwriter.AlignRight)
	write(w)
	w.Flush() // a strings.Builder never fails
}

func (r *Report) writeCalls(b *strings.Builder) {
	for i, f := range r.Calls {
		if i > 0 && r.Calls[i-1].Scenario == f.Scenario {
			continue
		}
		fmt.Fprintf(b, "\n%s: %s\n", f.Scenario, f.About)
		columns(b, func(w io.Writer) { r.writeScenario(w, f.Scenario) })
	}
}

func (r *Report) writeScenario(w io.Writer, scenario string) {
	fmt.Fprint(w, "connections\ttarget\tcalls/s\t\titems/s\tMB/s\tp50 ms\tp99 ms\tserver CPU us\tclient CPU us\terrors\t\n")
	for _, f := range r.Calls {
		if f.Scenario != scenario {
			continue
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t\n", f.Connections, f.Target,
			short(f.CallsPerS.Median), bounds(f.CallsPerS), short(f.ItemsPerS.Median), short(f.MBPerS.Median),
			short(f.P50MS.Median), short(f.P99MS.Median), known(f.ServerCPUUS), known(f.ClientCPUUS), f.Errors)
	}
}

func bounds(s Spread) string { return "[" + short(s.Min) + " to " + short(s.Max) + "]" }

func known(s *Spread) string {
	if s == nil {
		return "-"
	}
	return short(s.Median)
}

// short formats a value with about three digits.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2fM", v/1e6)
	case v >= 1e3:
		text := fmt.Sprintf("%.0f", v)
		return text[:len(text)-3] + "," + text[len(text)-3:]
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// writeRatios writes a line for each scenario and number of connections: the first endpoint's
// ratios to every other target in calls per second and, if known, in server CPU per call.
func (r *Report) writeRatios(b *strings.Builder) {
	if len(r.Ratios) == 0 {
		return
	}
	var g grid
	for _, x := range r.Ratios {
		row := fmt.Sprintf("%s\t%d", x.Scenario, x.Connections)
		switch {
		case x.Scenario != x.OverScenario || x.Over == overBoth:
		case x.Metric == serverCPU.name:
			g.add(row, x.Over, " ("+short(x.Value.Median)+")")
		default:
			g.add(row, x.Over, short(x.Value.Median))
		}
	}
	fmt.Fprintf(b, "\n%s over others, of the same rounds: calls/s (server CPU per call)\n", r.Ratios[0].Target)
	columns(b, func(w io.Writer) {
		fmt.Fprintf(w, "scenario\tconnections\t%s\t\n", strings.Join(g.columns, "\t"))
		g.write(w, "", "\t", "\t", "-")
	})
	r.writeOwnRatios(b)
}

// writeOwnRatios writes the ratios of the first endpoint's scenarios to each other, and to the
// references.
func (r *Report) writeOwnRatios(b *strings.Builder) {
	var lines strings.Builder
	columns(&lines, func(w io.Writer) {
		for _, x := range r.Ratios {
			switch {
			case x.Over == overBoth:
				fmt.Fprintf(w, "%s over one commit of the loop and one echo\tp50\t%d connections\t%.2f\t%s\t\n", x.Scenario, x.Connections, x.Value.Median, bounds(x.Value))
			case x.Scenario != x.OverScenario:
				fmt.Fprintf(w, "%s over %s\t%s\t%d connections\t%.2f\t%s\t\n", x.Scenario, x.OverScenario,
					strings.ReplaceAll(x.Metric, "_per_s", "/s"), x.Connections, x.Value.Median, bounds(x.Value))
			}
		}
	})
	if lines.Len() > 0 {
		fmt.Fprintf(b, "\n%s over itself\n%s", r.Ratios[0].Target, lines.String())
	}
}

func (r *Report) writeExpiry(b *strings.Builder) {
	for _, x := range r.Expiry {
		if x.NoTTL {
			fmt.Fprintf(b, "\n%s at %s: no TTL, so nothing is removed\n", x.Experiment, x.Target)
			continue
		}
		fmt.Fprintf(b, "\n%s at %s: %d %s\n", x.Experiment, x.Target, x.Items, x.About)
		columns(b, func(w io.Writer) {
			writeLateness(w, "late at the commit, by the server's histogram", x.Commit)
			writeLateness(w, "late in a reader's hands", x.Stream)
			writeLateness(w, "another table's, in a reader's hands", x.Beside)
		})
		if x.DrainPerS > 0 {
			fmt.Fprintf(b, "  removed %s items/s from the deadline on\n", short(x.DrainPerS))
		}
		if x.ReaderPerS > 0 {
			fmt.Fprintf(b, "  read %s records/s from the deadline on\n", short(x.ReaderPerS))
		}
		fmt.Fprintf(b, "  %s", x.list())
		if x.CPUUS > 0 {
			fmt.Fprintf(b, "; server CPU per item %s us, reader and calls included", short(x.CPUUS))
		}
		b.WriteByte('\n')
		columns(b, func(w io.Writer) {
			for _, f := range x.Foreground {
				fmt.Fprintf(w, "%s at %d/s\tidle p50 %s\tp99 %s ms\tduring p50 %s\tp99 %s ms\tp99 ratio %s\t\n", f.Operation, f.PerS,
					short(f.IdleP50MS), short(f.IdleP99MS), short(f.DuringP50MS), short(f.DuringP99MS), short(f.ratio()))
			}
		})
	}
}

func writeLateness(w io.Writer, what string, l *Lateness) {
	if l != nil {
		fmt.Fprintf(w, "%s\tp50 %s\tp99 %s\tmax %s ms\t\n", what, short(l.P50), short(l.P99), short(l.Max))
	}
}

func (r *Report) writeDrain(b *strings.Builder) {
	for i, d := range r.Drain {
		if i == 0 || r.Drain[i-1].About != d.About {
			fmt.Fprintf(b, "\ndrain: %d %s\n", d.Items, d.About)
		}
		columns(b, func(w io.Writer) {
			over := ""
			if d.OverLoop != nil {
				over = fmt.Sprintf("%.2f of the loop's %s", d.OverLoop.Median, bounds(*d.OverLoop))
			}
			fmt.Fprintf(w, "%s\t%s items/s\t%s\t%s us of CPU each\t%s\t\n", d.Target, short(d.PerS.Median), bounds(d.PerS), short(d.CPUUS.Median), over)
		})
	}
}

func (r *Report) writeStart(b *strings.Builder) {
	s := r.Start
	if s == nil {
		return
	}
	fmt.Fprintf(b, "\nstart: first answer after %s ms %s; %s MB resident then, %s MB at most in this run; binary %s MB\n",
		short(s.FirstAnswerMS.Median), bounds(s.FirstAnswerMS), short(s.IdleMB), short(s.MostMB), short(s.BinaryMB))
	if s.DiskBytesPerItem > 0 {
		fmt.Fprintf(b, "  with %d items: first answer after %s ms %s, %s MB resident; %s bytes of disk per item\n", s.Items,
			short(s.ReopenedFirstAnswerMS.Median), bounds(s.ReopenedFirstAnswerMS), short(s.ReopenedMB), short(s.DiskBytesPerItem))
	}
}

func (r *Report) writeProblems(b *strings.Builder) {
	if r.Errors == 0 {
		return
	}
	fmt.Fprintf(b, "\n%d WRONG ANSWERS\n", r.Errors)
	for _, p := range r.Problems {
		fmt.Fprintf(b, "  %s\n", p)
	}
}
