package bench

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// WriteSVG draws the report: for each scenario at the largest number of connections the calls a second and the server's CPU per
// call, then how late expiry was, how fast backlogs were drained, then schedules and triggers, and guard.
func (r *Report) WriteSVG(out io.Writer) error {
	d := &drawing{colors: map[string]string{}}
	for _, e := range r.Endpoints {
		d.color(e.Name)
	}
	for _, c := range r.charts() {
		d.chart(c)
	}
	foot := fmt.Sprintf("%s, %s/%s, %d CPUs shared with the client, %s; median of %d rounds, line: least to greatest",
		r.Date.Format("2006-01-02"), r.Machine.OS, r.Machine.Arch, r.Machine.CPUs, r.Machine.Go, r.Settings.Rounds)
	lines := []string{foot, r.Command}
	for _, p := range r.Parts {
		lines = append(lines, fmt.Sprintf("%s: %s, median of %d rounds", p.title(), p.Date.Format("2006-01-02"), p.Settings.Rounds), p.Command)
	}
	return d.write(out, lines)
}

// chart is a list of groups of bars. Within a group lengths compare; each group has a scale of its own, since a scan and a get have
// none in common.
type chart struct {
	title  string
	groups []group
}

type group struct {
	label string
	bars  []bar
}

type bar struct {
	target string // names it and chooses its color
	value  Spread
	unit   string
}

func (r *Report) charts() (charts []chart) {
	add := func(title string, groups []group) {
		if len(groups) > 0 {
			charts = append(charts, chart{title, groups})
		}
	}
	add("Calls per second (longer is better)", r.callGroups("/s", func(f Figure) *Spread { return &f.CallsPerS }))
	add("Server CPU per call (shorter is better)", r.callGroups(" µs", func(f Figure) *Spread { return f.ServerCPUUS }))
	add("After the deadline (shorter is better)", r.latenessGroups())
	add("Removals per second of a backlog (longer is better)", r.drainGroups())
	add("Schedules and records per second (longer is better)", r.deliveryGroups())
	add("After a schedule's instant, at a webhook (shorter is better)", r.firingGroups())
	late, fast := r.guardGroups()
	add("After the deadline, removed by guard (shorter is better)", late)
	add("Removals by guard per second (longer is better)", fast)
	return charts
}

// callGroups gives a group for each scenario, of the largest number of connections that it has.
func (r *Report) callGroups(unit string, value func(Figure) *Spread) (groups []group) {
	most := map[string]int{}
	for _, f := range r.Calls {
		most[f.Scenario] = max(most[f.Scenario], f.Connections)
	}
	for _, f := range r.Calls {
		v := value(f)
		if f.Connections != most[f.Scenario] || v == nil || f.Calls == 0 {
			continue
		}
		label := fmt.Sprintf("%s, %d connections", f.Scenario, f.Connections)
		if len(groups) == 0 || groups[len(groups)-1].label != label {
			groups = append(groups, group{label: label})
		}
		last := &groups[len(groups)-1]
		last.bars = append(last.bars, bar{f.Target, *v, unit})
	}
	return groups
}

func (r *Report) latenessGroups() (groups []group) {
	for _, x := range r.Expiry {
		for _, seen := range []struct {
			where string
			late  *Lateness
		}{{"at the commit", x.Commit}, {"in a reader's hands", x.Stream}, {"of another table", x.Beside}} {
			if seen.late == nil {
				continue
			}
			groups = append(groups, group{
				label: fmt.Sprintf("%s, %s", x.Experiment, seen.where),
				bars: []bar{
					{x.Target, Spread{Median: seen.late.P50}, " ms p50"},
					{x.Target, Spread{Median: seen.late.P99}, " ms p99"},
				},
			})
		}
	}
	return groups
}

func (r *Report) drainGroups() (groups []group) {
	for _, d := range r.Drain {
		label := "with old images"
		if d.Plain {
			label = "without"
		}
		if len(groups) == 0 || groups[len(groups)-1].label != label {
			groups = append(groups, group{label: label})
		}
		last := &groups[len(groups)-1]
		last.bars = append(last.bars, bar{d.Target, d.PerS, "/s"})
	}
	return groups
}

// deliveryGroups gives what is made, fired and delivered a second, beside what was aimed at and what Amazon documents.
func (r *Report) deliveryGroups() (groups []group) {
	add := func(label, target string, value Spread, goal, amazon float64) {
		g := group{label, []bar{{target, value, "/s"}, {targetGoal, Spread{Median: goal}, "/s"}}}
		if amazon > 0 {
			g.bars = append(g.bars, bar{targetAmazon, Spread{Median: amazon}, "/s"})
		}
		groups = append(groups, g)
	}
	if s := r.Schedules; s != nil {
		add("create schedules", s.Target, s.Create.CallsPerS, goalCreatePerS, amazonCreatePerS)
		for _, x := range s.Firings {
			if x.PerS > 0 {
				add("firings, "+count(x.Count)+" at one instant", s.Target, Spread{Median: x.PerS}, goalFiringsPerS, amazonFiringsS)
			}
		}
	}
	for _, x := range r.Delivered {
		add("stream records to "+map[string]string{toWebhook: "a webhook", toNATS: "NATS"}[x.To], x.Target, Spread{Median: x.PerS}, goalRecordsPerS, 0)
	}
	return groups
}

func (r *Report) firingGroups() (groups []group) {
	if r.Schedules == nil {
		return nil
	}
	add := func(label string, late *Lateness, goal float64) {
		if late != nil {
			t := r.Schedules.Target
			groups = append(groups, group{label, []bar{{t, Spread{Median: late.P50}, " ms p50"}, {t, Spread{Median: late.P99}, " ms p99"}, {targetGoal, Spread{Median: goal}, " ms p99"}}})
		}
	}
	for _, x := range r.Schedules.Firings {
		if x.Experiment == firingsEven {
			add("even, with "+count(x.Pending)+" pending", x.LateMS, goalEvenP99MS)
		}
		add("of another group in a burst", x.BesideMS, goalBesideP99MS)
	}
	return groups
}

func (r *Report) guardGroups() (late, fast []group) {
	if r.Guard == nil {
		return nil, nil
	}
	t := r.Guard.Target
	for _, x := range r.Guard.Removals {
		switch {
		case x.LateMS == nil:
		case x.Experiment == guardEven:
			late = append(late, group{"evenly", []bar{{t, Spread{Median: x.LateMS.P50}, " ms p50"}, {t, Spread{Median: x.LateMS.P99}, " ms p99"}, {targetGoal, Spread{Median: goalGuardP99MS}, " ms p99"}}})
		case x.Experiment == guardTakeover:
			late = append(late, group{"one of two workers is killed", []bar{{t, Spread{Median: x.LateMS.Max}, " ms at most"}, {targetGoal, Spread{Median: goalTakeoverS * 1000}, " ms at most"}}})
		case x.PerS > 0:
			fast = append(fast, group{count(x.Items) + " at one instant", []bar{{t, Spread{Median: x.PerS}, "/s"}, {targetGoal, Spread{Median: goalGuardPerS}, "/s"}}})
		}
	}
	return late, fast
}

// drawing collects the elements of an SVG, from the top down.
type drawing struct {
	body   strings.Builder
	y      int
	colors map[string]string // by target
	order  []string
}

const (
	drawingWidth = 880
	labelWidth   = 220
	barLeft      = labelWidth + 10
	barMost      = 440 // the longest
	barHeight    = 13
	barGap       = 3
	groupGap     = 9
)

var palette = []string{"#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed"}

// referenceColors set echo and loop apart from endpoints.
var referenceColors = map[string]string{TargetEcho: "#9ca3af", TargetLoop: "#6b7280", targetGoal: "#cbd5e1", targetAmazon: "#94a3b8"}

// What bars show besides measurements.
const (
	targetGoal   = "goal"
	targetAmazon = "EventBridge Scheduler, documented"
)

func (d *drawing) color(target string) string {
	if c, ok := referenceColors[target]; ok {
		if !slices.Contains(d.order, target) {
			d.order = append(d.order, target)
		}
		return c
	}
	if d.colors[target] == "" {
		d.colors[target] = palette[len(d.colors)%len(palette)]
		d.order = append(d.order, target)
	}
	return d.colors[target]
}

func (d *drawing) text(x, y int, attributes, text string) {
	fmt.Fprintf(&d.body, "<text x=\"%d\" y=\"%d\" %s>%s</text>\n", x, y, attributes, html.EscapeString(text))
}

func (d *drawing) chart(c chart) {
	d.y += 34
	d.text(16, d.y, `font-size="16" font-weight="600"`, c.title)
	d.y += 14
	for _, g := range c.groups {
		d.group(g)
		d.y += groupGap
	}
}

func (d *drawing) group(g group) {
	longest := 0.0
	for _, b := range g.bars {
		longest = max(longest, b.value.Median, b.value.Max)
	}
	middle := d.y + len(g.bars)*(barHeight+barGap)/2 + 4
	d.text(labelWidth, middle, `text-anchor="end"`, g.label)
	for _, b := range g.bars {
		d.bar(b, barMost/max(longest, 1e-9))
	}
}

func (d *drawing) bar(b bar, scale float64) {
	length := max(int(b.value.Median*scale), 1)
	fmt.Fprintf(&d.body, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", barLeft, d.y, length, barHeight, d.color(b.target))
	end := length
	if b.value.Max > b.value.Min {
		end = max(length, int(b.value.Max*scale))
		fmt.Fprintf(&d.body, "<path d=\"M%d %dH%d\" stroke=\"#111827\"/>\n", barLeft+int(b.value.Min*scale), d.y+barHeight/2, barLeft+end)
	}
	d.text(barLeft+end+6, d.y+barHeight-2, `font-size="11" fill="#374151"`, short(b.value.Median)+b.unit+"  "+b.target)
	d.y += barHeight + barGap
}

// write puts the legend and the foot around the charts.
func (d *drawing) write(out io.Writer, foot []string) error {
	d.y += 30
	x := 16
	for _, target := range d.order {
		fmt.Fprintf(&d.body, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, d.y-10, d.color(target))
		d.text(x+18, d.y, "", target)
		x += 40 + 8*len(target)
	}
	d.y += 10
	for _, line := range foot {
		d.y += 14
		d.text(16, d.y, `font-size="10" fill="#6b7280"`, line)
	}
	d.y += 16
	_, err := fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "+
		"font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#111827\">\n<title>mayfly bench</title>\n"+
		"<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n%s</svg>\n",
		drawingWidth, d.y, drawingWidth, d.y, drawingWidth, d.y, d.body.String())
	return err
}
