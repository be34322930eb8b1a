package expirybench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/mayflydb/mayfly/internal/bench"
)

// WriteText writes the report for people.
func (r *Report) WriteText(out io.Writer) error {
	var b strings.Builder
	r.writeHead(&b)
	r.writeCases(&b)
	r.writeLeaks(&b)
	r.writeRenewals(&b)
	r.writeEvents(&b)
	r.writeCalls(&b)
	r.writeSurvival(&b)
	r.writeEnd(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *Report) writeHead(b *strings.Builder) {
	fmt.Fprintf(b, "mayfly bench expiry, %s, %s\n", r.Date.Format("2006-01-02 15:04 MST"), r.Machine.Line())
	fmt.Fprintf(b, "%s is %s; configured: %s\n", r.Endpoint.Name, r.Endpoint.URL, r.configured())
	fmt.Fprintf(b, "clock: %s\n", r.Clock.line())
}

// configured returns what the endpoint's operator has configured.
func (r *Report) configured() string {
	if r.Endpoint.Configured == "" {
		return "not said (--configured)"
	}
	return r.Endpoint.Configured
}

func (c Clock) line() string {
	switch {
	case !c.Known && c.Own:
		return "the endpoint sends no Date, and may have a clock of its own, so nothing counts as early"
	case !c.Known:
		return "the endpoint sends no Date, so no difference is allowed for"
	case !c.Own:
		return "the endpoint has this machine's clock"
	}
	return fmt.Sprintf("the endpoint's own is ahead of the client's by %d to %d ms, which is allowed for", c.AheadLeastMS, c.AheadMostMS)
}

// columns aligns the output of write, whose cells end with tabs.
func columns(b *strings.Builder, write func(io.Writer)) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight|tabwriter.DiscardEmptyColumns)
	write(w)
	w.Flush()
}

func (r *Report) writeCases(b *strings.Builder) {
	for _, c := range r.Cases {
		fmt.Fprintf(b, "\nlateness of %s\n", c.Name)
		if c.LeftOut != "" {
			fmt.Fprintf(b, "  left out: %s\n", c.LeftOut)
			continue
		}
		columns(b, func(w io.Writer) {
			fmt.Fprint(w, "  gone from\titems\tp50\tp99\tmost\tnot removed\tearly\treturned\tpoll\t\n")
			for _, m := range c.Methods {
				m.writeRow(w)
			}
		})
		if c.Records != nil {
			fmt.Fprintf(b, "  records of %s removals: %d missing at the end of the wait, %d doubled, %d wrongly marked\n", bench.Count(c.Records.Expected), c.Records.Lost, c.Records.Doubled, c.Records.Unmarked)
		}
	}
}

func (m *Method) writeRow(w io.Writer) {
	if m.NotOffered != "" {
		fmt.Fprintf(w, "  %s\tnot offered\t\t\t\t\t\t\t\t\n", m.Name)
		return
	}
	poll := ""
	if m.PollMS > 0 {
		poll = fmt.Sprintf("%.1f ms", m.PollMS)
	}
	fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t\n", m.Name, bench.Count(m.Items), m.between(m.Least.P50, m.Most.P50), m.between(m.Least.P99, m.Most.P99),
		m.between(m.Least.Max, m.Most.Max), m.NotRemoved, m.Early, m.Returned, poll)
}

// between formats the bounds of a lateness.
func (m *Method) between(least, most *float64) string {
	if most == nil || least == nil || m.PollMS == 0 || late(least) == late(most) {
		return late(most)
	}
	return late(least) + " to " + late(most)
}

func (r *Report) writeLeaks(b *strings.Builder) {
	if len(r.Leaks) == 0 {
		return
	}
	seen, offered := countLeaks(r.Leaks)
	fmt.Fprintf(b, "\n%d of %d operations see expired items\n", seen, offered)
	for _, l := range r.Leaks {
		fmt.Fprintf(b, "  %-41s %s\n", l.Operation, l.line(r.Settings.WaitS))
	}
}

// line describes the leak of an operation.
func (l *Leak) line(waitS float64) string {
	switch {
	case l.NotOffered != "":
		return "not offered: " + l.NotOffered
	case l.Seen == 0:
		return "never"
	case l.FirstGoneMS == nil:
		return fmt.Sprintf("until the end of the wait, %g s", waitS)
	}
	return fmt.Sprintf("for %s, at most %s", late(l.LastSeenMS), late(l.FirstGoneMS))
}

func (r *Report) writeRenewals(b *strings.Builder) {
	n := r.Renewals
	if n == nil {
		return
	}
	fmt.Fprintf(b, "\n%s items renewed around their deadlines: %s renewals acknowledged (%d before the deadline, %d sent before and answered after), %d refused, %d failed\n",
		bench.Count(n.Items), bench.Count(n.Acknowledged), n.InTime, n.Straddling, n.Refused, n.Failed)
	fmt.Fprintf(b, "  of the others %d were removed; of the acknowledged %d removed wrongly, %d emptied, %d with a record of a wrong removal\n", n.Removed, n.Wrong, n.Emptied, n.WrongRecords)
}

func (r *Report) writeEvents(b *strings.Builder) {
	e := r.Events
	switch {
	case e == nil:
	case e.NotOffered != "":
		fmt.Fprintf(b, "\nstream records of items with a history: not offered: %s\n", e.NotOffered)
	default:
		fmt.Fprintf(b, "\n%s stream records of %d items with a history: %d lost, %d removals without one, %d doubled, %d keys out of order, %d wrongly marked; %d items not removed\n",
			bench.Count(e.Expected), e.Keys, e.Lost, e.Unrecorded, e.Doubled, e.Disordered, e.Mismarked, e.NotRemoved)
	}
}

func (r *Report) writeCalls(b *strings.Builder) {
	if len(r.Calls) > 0 {
		first := &r.Calls[0]
		fmt.Fprintf(b, "\nother calls, idle and beside %s items that expire at once: medians of %d rounds\n", bench.Count(first.Burst), first.Rounds)
		columns(b, func(w io.Writer) {
			fmt.Fprint(w, "  operation\ta second\tidle p50\tp99\tburst p50\tp99\tfailed\t\n")
			for _, c := range r.Calls {
				fmt.Fprintf(w, "  %s\t%d\t%s\t%s\t%s\t%s\t%d\t\n", c.Operation, c.PerS, late(&c.IdleP50MS), late(&c.IdleP99MS), late(&c.BurstP50MS), late(&c.BurstP99MS), c.Failed)
			}
		})
	}
	switch c := r.Cost; {
	case c == nil:
	case c.Unknown != "":
		fmt.Fprintf(b, "\ncost of an expiration: unknown: %s\n", c.Unknown)
	default:
		fmt.Fprintf(b, "\ncost of an expiration, over %s: %.1f us of the server's CPU, %s\n", bench.Count(c.Items), c.CPUUS, c.disk())
	}
}

func (r *Report) writeSurvival(b *strings.Builder) {
	v := r.Survival
	switch {
	case v == nil:
		return
	case v.NotOffered != "":
		fmt.Fprintf(b, "\nsurvival of a kill: not measured: %s\n", v.NotOffered)
		return
	}
	fmt.Fprintf(b, "\nsurvival of a kill: %d of %s acknowledged items lost; back %.2f s after the start of the process\n", v.Lost, bench.Count(v.Acknowledged), v.BackS)
	last := "the last was there at the end of the wait"
	if v.LastGoneMS != nil {
		last = "all gone " + late(v.LastGoneMS) + " after the first answer at most"
	}
	fmt.Fprintf(b, "  of %d items that expired in the %.1f s without a server, the first Scan saw %d; %s\n", v.Expired, v.DownS, v.StillSeen, last)
	if v.NoStream != "" {
		fmt.Fprintf(b, "  no records: %s\n", v.NoStream)
	} else {
		fmt.Fprintf(b, "  records of their removals: %d, %d missing at the end of the wait, %d doubled\n", v.Records, v.RecordsLost, v.RecordsDoubled)
	}
}

func (r *Report) writeEnd(b *strings.Builder) {
	for _, l := range r.LeftOut {
		fmt.Fprintf(b, "\nleft out: %s: %s\n", l.What, l.Why)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(b, "\nFAULT: %s\n", f)
	}
	fmt.Fprintf(b, "\n%s\n", r.Summary)
}
