package program

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/mayflydb/mayfly/internal/chart"
	"github.com/mayflydb/mayfly/timeseries"
)

// plotted is the plot of one metric: the statistics of each column.
type plotted struct {
	metric   string
	columns  []timeseries.Stat // Count 0: an empty column
	from, to time.Time         // the first instant, and the end of the last column
	min, max float64
}

// draw plots a range.
func (c seriesRangeCommand) draw(ctx context.Context, s streams, r samplesReader, q timeseries.Query, zone *time.Location) error {
	q.Newest = false
	width, height := c.Width, c.Height
	if width <= 0 {
		if width = 960; c.Format == "plot" {
			width = terminalWidth(s.out)
		}
	}
	if height <= 0 {
		if height = 240; c.Format == "plot" {
			height = 10
		}
	}
	if width > 10_000 || height > 10_000 {
		return misused(fmt.Errorf("a drawing of %d by %d is too large", width, height), "set a smaller --width or --height")
	}
	points, err := c.points(ctx, r, q, zone)
	if err != nil {
		return err
	}
	if len(points) == 0 {
		fmt.Fprint(s.err, "mayfly: ")
		if err := c.showNone(ctx, s.err, r, q); err != nil {
			return err
		}
	}
	if c.Format == "svg" {
		return writePlotSVG(s.out, c.Device, plotColumns(points, max(width-svgLeft-svgRight, 1), q, time.Duration(c.Every)), width, height, zone)
	}
	for _, p := range plotColumns(points, max(width-plotLabel-1, 1), q, time.Duration(c.Every)) {
		if err := writePlot(s.out, p, height, zone); err != nil {
			return err
		}
	}
	return nil
}

func terminalWidth(out io.Writer) int {
	if file, ok := out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// points returns the samples, or buckets of them.
func (c seriesRangeCommand) points(ctx context.Context, r samplesReader, q timeseries.Query, zone *time.Location) (points []timeseries.Bucket, err error) {
	add := func(b timeseries.Bucket) error {
		if points = append(points, b); len(points) > plottedMax {
			return misused(fmt.Errorf("more than %d points to draw", plottedMax), "narrow the range, or set --every")
		}
		return nil
	}
	if c.Every > 0 {
		for b, err := range timeseries.Rollup(r.Range(ctx, q), time.Duration(c.Every), zone) {
			if err == nil {
				err = add(b)
			}
			if err != nil {
				return nil, err
			}
		}
		return points, nil
	}
	for s, err := range r.Range(ctx, q) {
		if err != nil {
			return nil, err
		}
		b := timeseries.Bucket{Start: s.Time, Stats: make(map[string]timeseries.Stat, len(s.Values))}
		for name, v := range s.Values {
			b.Stats[name] = timeseries.Stat{Count: 1, Min: v, Max: v, Mean: v}
		}
		if err := add(b); err != nil {
			return nil, err
		}
	}
	return points, nil
}

// plotColumns distributes points over columns of time, for each metric.
func plotColumns(points []timeseries.Bucket, width int, q timeseries.Query, every time.Duration) (all []*plotted) {
	if len(points) == 0 {
		return nil
	}
	from, to := points[0].Start, points[len(points)-1].Start.Add(max(every, 1))
	if !q.From.IsZero() {
		from = q.From
	}
	if !q.To.IsZero() {
		to = q.To
	}
	if p := points[0].Start; p.Before(from) {
		from = p // a bucket that begins before the range does
	}
	byMetric := map[string]*plotted{}
	// one column for each sample, so that there are no gaps
	if n := len(points); every == 0 && n < width {
		width = max(n, 1)
	} else if every > 0 {
		width = min(width, max(int((to.Sub(from)+every-1)/every), 1))
	}
	length := max(to.Sub(from).Seconds(), 1e-9)
	for _, point := range points {
		at := min(max(int(point.Start.Sub(from).Seconds()/length*float64(width)), 0), width-1)
		for name, x := range point.Stats {
			p := byMetric[name]
			if p == nil {
				p = &plotted{metric: name, columns: make([]timeseries.Stat, width), from: from, to: to, min: math.Inf(1), max: math.Inf(-1)}
				byMetric[name] = p
			}
			p.columns[at] = join(p.columns[at], x)
			p.min, p.max = min(p.min, x.Min), max(p.max, x.Max)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byMetric)) {
		all = append(all, byMetric[name])
	}
	return all
}

func join(a, b timeseries.Stat) timeseries.Stat {
	if a.Count == 0 {
		return b
	}
	n := a.Count + b.Count
	return timeseries.Stat{
		Count: n, Min: min(a.Min, b.Min), Max: max(a.Max, b.Max), Mean: a.Mean*(float64(a.Count)/float64(n)) + b.Mean*(float64(b.Count)/float64(n)),
	}
}

const plotLabel = 10 // width of the label before a plot

var eighths = []rune(" ▁▂▃▄▅▆▇█")

// writePlot draws the means of a metric with block characters, eight steps a row.
func writePlot(to io.Writer, p *plotted, height int, zone *time.Location) error {
	least, greatest := math.Inf(1), math.Inf(-1)
	for _, x := range p.columns {
		if x.Count > 0 {
			least, greatest = min(least, x.Mean), max(greatest, x.Mean)
		}
	}
	scale := chart.NewScale(least, greatest, 5)
	low, high := scale.Low, scale.High
	var b strings.Builder
	fmt.Fprintf(&b, "%*s %s\n", plotLabel, "", oneLine(p.metric))
	for row := height - 1; row >= 0; row-- {
		label := ""
		switch row {
		case height - 1:
			label = shortNumber(high)
		case 0:
			label = shortNumber(low)
		case (height - 1) / 2:
			label = shortNumber(low + (high-low)*(float64(row)+0.5)/float64(height))
		}
		line := make([]rune, 0, len(p.columns))
		for _, x := range p.columns {
			line = append(line, plotCell(x, low, high, height, row))
		}
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%*s %s", plotLabel, label, string(line)), " "))
	}
	first, last := plotTimes(p, zone)
	room := max(len(p.columns)-utf8.RuneCountInString(first)-utf8.RuneCountInString(last), 1)
	fmt.Fprintf(&b, "%*s %s%s%s\n", plotLabel, "", first, strings.Repeat(" ", room), last)
	_, err := io.WriteString(to, b.String())
	return err
}

// plotCell returns the block character for a column in a row: the part that lies below the mean.
func plotCell(x timeseries.Stat, low, high float64, height, row int) rune {
	if x.Count == 0 {
		return ' '
	}
	steps := int(math.Round((x.Mean - low) / (high - low) * float64(height*8)))
	steps = max(steps, 1) // a column with data shows at least one step
	return eighths[min(max(steps-row*8, 0), 8)]
}

func plotTimes(p *plotted, zone *time.Location) (first, last string) {
	layout := "2006-01-02 15:04"
	if p.to.Sub(p.from) < time.Hour {
		layout = "15:04:05.000"
	}
	return p.from.In(zone).Format(layout), p.to.In(zone).Format(layout)
}

// shortNumber returns a number with few enough digits for the label before a plot.
func shortNumber(v float64) string {
	text := fmt.Sprintf("%.5g", v)
	if strings.HasPrefix(text, "-0") && v > -1e-12 {
		return "0"
	}
	return text
}

// Margins of an SVG.
const (
	svgLeft, svgRight = 64, 16
	svgTop, svgBottom = 28, 28
)

const plotStyle = `svg{background:#fff;color:#222}text{fill:currentColor}.t{font-weight:bold}.e{text-anchor:end}.g{stroke:currentColor;stroke-opacity:.15}
.l{fill:none;stroke:#2563eb;stroke-width:1.5;stroke-linejoin:round}.b{fill:#2563eb;fill-opacity:.18}@media(prefers-color-scheme:dark){svg{background:#111;color:#ddd}}`

// writePlotSVG draws each metric: the mean as a line, minimum to maximum as a band.
func writePlotSVG(to io.Writer, device string, all []*plotted, width, height int, zone *time.Location) error {
	var d chart.Drawing
	for i, p := range all {
		p.svg(&d, device, i*height, width, height, zone)
	}
	whole := max(len(all), 1) * height
	_, err := io.WriteString(to, d.SVG(width, whole, chart.Namespace(width, whole)+` font-family="system-ui, sans-serif" font-size="12"`, "", plotStyle))
	return err
}

func (p *plotted) svg(d *chart.Drawing, device string, top, width, height int, zone *time.Location) {
	scale := chart.NewScale(p.min, p.max, 5)
	f := chart.Frame{Left: svgLeft, Right: float64(width - svgRight), Top: float64(top + svgTop), Bottom: float64(top + height - svgBottom)}
	d.Text(f.Left, float64(top+18), `class="t"`, oneLine(device)+", "+oneLine(p.metric))
	d.ValueAxis(f, scale, "g", "", shortNumber)
	first, last := plotTimes(p, zone)
	d.Text(f.Left, f.Bottom+18, "", first)
	d.Text(f.Right, f.Bottom+18, `class="e"`, last)
	for run := range p.runs() {
		var line, band, lower []chart.Point
		for i := run[0]; i < run[1]; i++ {
			s, x := p.columns[i], f.X((float64(i)+0.5)/float64(len(p.columns)))
			line = append(line, chart.Point{X: x, Y: f.Y(scale, s.Mean)})
			band = append(band, chart.Point{X: x, Y: f.Y(scale, s.Max)})
			lower = append(lower, chart.Point{X: x, Y: f.Y(scale, s.Min)})
		}
		slices.Reverse(lower)
		d.Polygon(append(band, lower...), `class="b"`)
		d.Polyline(line, `class="l"`)
	}
}

// runs returns the ranges of columns with data. The line of a metric has gaps between them.
func (p *plotted) runs() func(yield func([2]int) bool) {
	return func(yield func([2]int) bool) {
		start := -1
		for i := 0; i <= len(p.columns); i++ {
			measured := i < len(p.columns) && p.columns[i].Count > 0
			switch {
			case measured && start < 0:
				start = i
			case !measured && start >= 0:
				if !yield([2]int{start, i}) {
					return
				}
				start = -1
			}
		}
	}
}
