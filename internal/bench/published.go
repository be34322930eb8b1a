package bench

import (
	"encoding/json"
	"io"
	"strings"
)

// WritePublished writes the report as JSON for docs/report.json, with one line per figure. It keeps
// the figures that WriteMarkdown and WriteSVG show: medians, and the bounds of calls per second,
// removals per second, start times and the server's ratios over itself.
func (r *Report) WritePublished(out io.Writer) error {
	text, err := json.MarshalIndent(r.published(), "", "\t")
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, joinLines(string(text)))
	return err
}

// published returns a copy without bounds and process ids that no page shows.
func (r *Report) published() *Report {
	text, err := json.Marshal(r)
	p := new(Report)
	if err != nil || json.Unmarshal(text, p) != nil {
		panic("bench: a report does not survive its own JSON") // TestReportJSON shows that it does
	}
	for i := range p.Endpoints {
		p.Endpoints[i].PID = 0
	}
	for i := range p.Calls {
		p.Calls[i].keepMedians()
	}
	if p.Schedules != nil {
		p.Schedules.Create.keepMedians()
	}
	for i := range p.Ratios {
		if x := &p.Ratios[i]; x.Scenario == x.OverScenario && x.Over != overBoth {
			x.Value = x.Value.median()
		}
	}
	for i := range p.Drain {
		p.Drain[i].CPUUS = p.Drain[i].CPUUS.median()
	}
	return p
}

// keepMedians removes all bounds except those of calls per second.
func (f *Figure) keepMedians() {
	for _, s := range []*Spread{&f.ItemsPerS, &f.MBPerS, &f.P50MS, &f.P99MS, f.ServerCPUUS, f.ClientCPUUS} {
		if s != nil {
			*s = s.median()
		}
	}
}

// median returns the spread without its bounds.
func (s Spread) median() Spread { return Spread{Median: s.Median} }

// lineDepth is the depth of the deepest brackets whose contents have lines of their own.
const lineDepth = 2

// joinLines joins the lines of indented JSON that are deeper than lineDepth, so that a figure is one
// line.
func joinLines(indented string) string {
	var b strings.Builder
	for line := range strings.Lines(indented) {
		text := strings.TrimSuffix(strings.TrimLeft(line, "\t"), "\n")
		depth := len(line) - len(strings.TrimLeft(line, "\t"))
		switch {
		case depth < lineDepth || depth == lineDepth && !strings.ContainsAny(text[:1], "]}"):
			b.WriteString("\n" + strings.Repeat("\t", depth))
		case strings.HasSuffix(b.String()[max(b.Len()-1, 0):], ","):
			b.WriteByte(' ')
		}
		b.WriteString(text)
	}
	return strings.TrimPrefix(b.String(), "\n") + "\n"
}
