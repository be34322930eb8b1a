package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/chart"
)

// WriteSVG draws the report: first the lateness of expiry, then guard and schedules, then calls per
// second at the largest number of connections, and the rates of removals and deliveries.
func (r *Report) WriteSVG(out io.Writer) error {
	d := &drawing{colors: map[string]string{}}
	d.Raw(`<rect class="page" width="100%" height="100%"/>` + "\n")
	for _, e := range r.Endpoints {
		d.color(e.Name)
	}
	for _, c := range r.charts() {
		d.bars(c)
	}
	lines := []string{
		fmt.Sprintf("%s, %s", r.Date.Format("2006-01-02"), r.Machine.Line()),
		fmt.Sprintf("Bar: median of %d rounds; line: least to greatest; paler bar: p99.", r.Settings.Rounds), r.Command,
	}
	for _, p := range r.Parts {
		lines = append(lines, fmt.Sprintf("%s: %s, %s", p.title(), p.Date.Format("2006-01-02"), p.Command))
	}
	return d.write(out, lines)
}

// bars is a chart of groups of bars. Only lengths within a group compare: a scan and a get have no
// scale in common.
type bars struct {
	title  string
	groups []group
}

type group struct {
	label string
	bars  []bar
}

type bar struct {
	target string // chooses the color
	value  Spread
	unit   string
	note   string // in place of a value
}

func (r *Report) charts() (charts []bars) {
	add := func(title string, groups []group) {
		if len(groups) > 0 {
			charts = append(charts, bars{title, groups})
		}
	}
	guard, own := r.Guard.results(), r.results()
	add("Lateness of removals, in a reader's hands (shorter is better)", r.latenessGroups())
	add("Lateness of removals by guard, in a reader's hands (shorter is better)", guard.groups(false))
	add("Lateness of schedules, at a webhook (shorter is better)", own.groups(false))
	calls, connections := r.callGroups()
	add(fmt.Sprintf("Calls per second over %d connections (longer is better)", connections), calls)
	add("Removals per second of a backlog (longer is better)", append(r.drainGroups(), guard.groups(true)...))
	add("Schedules and records per second (longer is better)", own.groups(true))
	return charts
}

// callGroups returns a group for each scenario at its largest number of connections, and the largest
// of these numbers.
func (r *Report) callGroups() (groups []group, most int) {
	own := map[string]int{}
	for _, f := range r.Calls {
		own[f.Scenario] = max(own[f.Scenario], f.Connections)
		most = max(most, f.Connections)
	}
	for _, f := range r.Calls {
		if f.Connections != own[f.Scenario] || f.Calls == 0 {
			continue
		}
		label := f.About
		if f.Connections != most {
			label += fmt.Sprintf(" (%d connection)", f.Connections)
		}
		groups = addBars(groups, label, bar{target: f.Target, value: f.CallsPerS, unit: "/s"})
	}
	return groups, most
}

// addBars adds bars to the last group, or to a new one if that has another label.
func addBars(groups []group, label string, bars ...bar) []group {
	if len(groups) == 0 || groups[len(groups)-1].label != label {
		groups = append(groups, group{label: label})
	}
	last := &groups[len(groups)-1]
	last.bars = append(last.bars, bars...)
	return groups
}

// lateBars returns the bars of a lateness.
func lateBars(target string, l *Lateness) []bar {
	return []bar{{target: target, value: Spread{Median: l.P50}, unit: p50Unit}, {target: target, value: Spread{Median: l.P99}, unit: p99Unit}}
}

const (
	p50Unit = " ms p50"
	p99Unit = " ms p99"
)

// latenessGroups returns a group for each experiment, with all servers in it. Groups for another
// table's items come last.
func (r *Report) latenessGroups() (groups []group) {
	for _, x := range r.Expiry {
		switch missing := x.NotRemoved + x.Lost; {
		case x.NoTTL:
			groups = addBars(groups, x.label(), bar{target: x.Target, note: "no TTL: nothing is removed"})
		case missing > 0 || x.Stream == nil:
			groups = addBars(groups, x.label(), bar{target: x.Target, note: fmt.Sprintf("not removed: %s of %s", Count(missing), Count(x.Items))})
		default:
			groups = addBars(groups, x.label(), lateBars(x.Target, x.Stream)...)
		}
	}
	for _, x := range r.Expiry {
		if x.Beside != nil {
			groups = addBars(groups, "another table's"+x.besideCalls(), lateBars(x.Target, x.Beside)...)
		}
	}
	return groups
}

// label names the experiment in a chart.
func (x *Expiry) label() string {
	switch {
	case x.Experiment == experimentBurst:
		return "at one instant" + x.besideCalls()
	case x.AtOnce > 0:
		return Count(x.AtOnce) + " at each whole second"
	}
	return "items expire evenly"
}

// besideCalls names the rate of other calls in a chart; "" without any.
func (x *Expiry) besideCalls() string {
	sum := 0
	for _, f := range x.Foreground {
		sum += f.PerS
	}
	if sum == 0 {
		return ""
	}
	return ", beside " + Count(sum) + " calls/s"
}

func (r *Report) drainGroups() (groups []group) {
	for _, d := range r.Drain {
		label := "into a stream with old images"
		if d.Plain {
			label = "without a stream"
		}
		groups = addBars(groups, label, bar{target: d.Target, value: d.PerS, unit: "/s"})
	}
	return groups
}

// drawing is an image that grows from the top down.
type drawing struct {
	chart.Drawing
	y      float64           // the bottom of the drawn part
	colors map[string]string // by target
	order  []string          // the targets of the legend
}

const (
	drawingWidth = 880
	labelWidth   = 256
	barLeft      = labelWidth + 10
	barMost      = 374 // the longest
	barHeight    = 12
	barGap       = 2
	groupGap     = 9
	footColumns  = 150 // characters in a line of the foot
)

var palette = []string{"#3b82f6", "#0891b2", "#d97706", "#db2777", "#7c3aed", "#16a34a", "#b45309"}

// referenceColors set echo and loop apart from endpoints.
var referenceColors = map[string]string{TargetEcho: "#9ca3af", TargetLoop: "#6b7280", targetGoal: "#b6c2d1", targetAmazon: "#94a3b8"}

// Names of bars that show no measurement.
const (
	targetGoal   = "goal"
	targetAmazon = "EventBridge Scheduler, documented"
)

// color returns the color of a target, and adds the target to the legend.
func (d *drawing) color(target string) string {
	c := cmp.Or(referenceColors[target], d.colors[target])
	if c == "" {
		c = palette[len(d.colors)%len(palette)]
		d.colors[target] = c
	}
	if !slices.Contains(d.order, target) {
		d.order = append(d.order, target)
	}
	return c
}

func (d *drawing) bars(c bars) {
	d.y += 34
	d.Text(16, d.y, `font-size="16" font-weight="600"`, c.title)
	d.y += 16
	d.Text(16, d.y, `font-size="11" class="note"`, "Each group of bars has its own scale.")
	d.y += 10
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
	d.Text(labelWidth, d.y+float64(len(g.bars)*(barHeight+barGap)/2+4), `text-anchor="end"`, g.label)
	for _, b := range g.bars {
		d.bar(b, barMost/max(longest, 1e-9))
	}
}

func (d *drawing) bar(b bar, scale float64) {
	length, opacity, text := math.Max(math.Trunc(b.value.Median*scale), 1), "1", short(b.value.Median)+b.unit
	if b.unit == p99Unit {
		opacity = "0.5"
	}
	if b.note != "" {
		text = "(" + b.note + ")"
	}
	d.Rect(barLeft, d.y, length, barHeight, fmt.Sprintf(`fill="%s" fill-opacity="%s"`, d.color(b.target), opacity), "")
	end := length
	if b.value.Max > b.value.Min {
		end = math.Max(length, math.Trunc(b.value.Max*scale))
		d.Line(barLeft+math.Trunc(b.value.Min*scale), d.y+barHeight/2, barLeft+end, d.y+barHeight/2, "")
	}
	d.Text(barLeft+end+6, d.y+barHeight-2, `font-size="11" class="note"`, b.target+"  "+text)
	d.y += barHeight + barGap
}

// write adds the legend and the foot below the charts, and writes the image.
func (d *drawing) write(out io.Writer, foot []string) error {
	d.y += 30
	x := 16.0
	for _, target := range d.order {
		x = d.Key(x, d.y, d.color(target), target)
	}
	d.y += 10
	for _, line := range foot {
		for _, part := range wrap(line, footColumns) {
			d.y += 14
			d.Text(16, d.y, `font-size="10" class="note"`, part)
		}
	}
	d.y += 16
	width, height := drawingWidth, int(d.y)
	_, err := io.WriteString(out, d.SVG(width, height, chart.Namespace(width, height)+
		` font-family="system-ui, sans-serif" font-size="12"`, "mayfly bench", drawingStyle))
	return err
}

const drawingStyle = `text{fill:#111827}.note{fill:#4b5563}line{stroke:#111827}.page{fill:#fff}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9da7b3}line{stroke:#e6edf3}.page{fill:#0d1117}}`

// wrap divides text between words into lines of at most columns bytes, or more for a longer word.
func wrap(text string, columns int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > columns {
			lines, line = append(lines, line), "  "
		} else if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
