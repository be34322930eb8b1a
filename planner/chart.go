package planner

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/chart"
)

// The charts are SVG within the page, whose style colors them.
const (
	chartWidth  = 880
	chartHeight = 268
	legendY     = 18 // baselines of the legend
	titleY      = 38 // and of the vertical axis's title
	tickY       = 18 // below the plot: labels
	bottomY     = 36 // and the horizontal axis's title
)

// plot is the area between the axes.
var plot = chart.Frame{Left: 72, Right: chartWidth - 24, Top: 52, Bottom: chartHeight - 44}

// drawing is a chart under construction, with its legend at the top.
type drawing struct {
	chart.Drawing
	legend float64 // where the next entry goes
}

func (d *drawing) key(color int, label string) {
	d.legend = d.Key(d.legend, legendY, variable(color), label)
}

func (d *drawing) end(title string, height int) string {
	return d.SVG(chartWidth, height, fmt.Sprintf("role=\"img\" aria-label=\"%s\"", html.EscapeString(title)), title, "")
}

// line draws a line through points.
func (d *drawing) line(points []chart.Point, color int) {
	d.Polyline(points, `fill="none" stroke-width="1.8" stroke="`+variable(color)+`"`)
}

// dot marks a point.
func (d *drawing) dot(p chart.Point, radius float64, title string) {
	d.Circle(p.X, p.Y, radius, `fill="`+variable(4)+`"`, title)
}

// variable returns the CSS variable of a color, 1 to 7, which the page's style defines.
func variable(color int) string { return fmt.Sprintf("var(--c%d)", color) }

// scaleTo returns a scale from 0 to a round figure at or above the greatest value.
func scaleTo(greatest float64) chart.Scale {
	if !(greatest > 0) {
		return chart.Scale{High: 1, Step: 1}
	}
	return chart.NewScale(0, greatest, 5)
}

// axes draws the vertical axis, and the titles of both. Labels of large figures are shortened: whole
// ones have no room.
func (d *drawing) axes(s chart.Scale, vertical, horizontal string, label func(float64) string) {
	unit, suffix := 1.0, ""
	switch {
	case s.High >= 1e12:
		unit, suffix = 1e12, " tn"
	case s.High >= 1e9:
		unit, suffix = 1e9, " bn"
	case s.High >= 1e6:
		unit, suffix = 1e6, " M"
	}
	d.ValueAxis(plot, s, "grid", "soft", func(v float64) string {
		if v == 0 {
			return label(0)
		}
		return label(v/unit) + suffix
	})
	d.Text(plot.Left, titleY, `class="soft"`, vertical)
	d.Text(plot.Right, plot.Bottom+bottomY, `text-anchor="end" class="soft"`, horizontal)
}

// tick labels a place on the horizontal axis.
func (d *drawing) tick(share float64, label string) {
	d.Text(plot.X(share), plot.Bottom+tickY, `text-anchor="middle" class="soft"`, label)
}

// trackCharts returns a chart of demand and capacity over time for each track of the table that has
// any demand.
func (r *Report) trackCharts() (all []string) {
	for i := range r.Tracks {
		t := &r.Tracks[i]
		if t.series == nil || t.Asked == 0 {
			continue
		}
		all = append(all, r.trackChart(t))
	}
	return all
}

func (r *Report) trackChart(t *Autoscaled) string {
	d, s := drawing{legend: plot.Left}, t.series
	n := len(s.demand)
	scale := scaleTo(max(t.Most, t.Peak))
	d.axes(scale, "units per second", "time", number)
	demand, capacity := make([]chart.Point, n), make([]chart.Point, n)
	for i := range n {
		x := plot.X(float64(i) / float64(max(n-1, 1)))
		demand[i], capacity[i] = chart.Point{X: x, Y: plot.Y(scale, s.demand[i])}, chart.Point{X: x, Y: plot.Y(scale, s.capacity[i])}
	}
	d.key(1, string(t.Kind)+" asked for")
	d.key(2, "capacity")
	area := append(slices.Clone(demand), chart.Point{X: demand[n-1].X, Y: plot.Bottom}, chart.Point{X: demand[0].X, Y: plot.Bottom})
	d.Polygon(area, `fill-opacity="0.35" fill="`+variable(1)+`"`)
	d.line(capacity, 2)
	refused := false
	for i := range n {
		if s.refuse[i] > 0 {
			d.dot(demand[i], 3, number(s.refuse[i])+" units throttled")
			refused = true
		}
	}
	if refused {
		d.key(4, "throttled")
	}
	r.timeAxis(&d)
	return d.end(fmt.Sprintf("%s of the %s: capacity and demand", t.Kind, t.Resource), chartHeight)
}

// timeAxis labels days: each one, or fewer so that at most eleven labels stand side by side.
func (r *Report) timeAxis(d *drawing) {
	total := time.Duration(r.Minutes) * time.Minute
	step := 24 * time.Hour
	for total/step > 10 {
		step *= 2
	}
	for t := time.Duration(0); t <= total; t += step {
		label := fmt.Sprintf("day %d", t/(24*time.Hour))
		if r.start.Year() > 1971 { // dates, not minutes from 0
			label = r.start.Add(t).Format("2 Jan")
		}
		d.tick(float64(t)/float64(total), label)
	}
}

// crossingChart compares the monthly cost of the mean demand on demand with its cost at each
// utilisation of provisioned capacity.
func (r *Report) crossingChart() string {
	onDemand, autoscaled, full := r.Modes.OnDemandUSD, r.Modes.AutoscaledUSD, 0.0 // full is the cost at a utilisation of 1
	for _, t := range r.Tracks {
		price := r.Prices.Provisioned.Write
		if t.Kind == Reads {
			price = r.Prices.Provisioned.Read
		}
		full += t.Demand * price * hoursPerMonth
	}
	if full == 0 {
		return ""
	}
	const least = 0.1
	scale := scaleTo(min(max(full/least, onDemand*1.1, autoscaled*1.1), max(onDemand, autoscaled)*2.5))
	d := drawing{legend: plot.Left}
	d.axes(scale, "USD per month", "utilisation of provisioned capacity", func(v float64) string { return strings.TrimSuffix(dollars(v), ".00") })
	point := func(utilisation, cost float64) chart.Point {
		return chart.Point{X: plot.X(utilisation), Y: plot.Y(scale, cost)}
	}
	var provisioned []chart.Point
	for i := 1; i <= 100; i++ {
		if u := float64(i) / 100; full/u <= scale.High {
			provisioned = append(provisioned, point(u, full/u))
		}
	}
	d.key(1, "on demand")
	d.key(2, "provisioned, by utilisation")
	d.line([]chart.Point{point(0, onDemand), point(1, onDemand)}, 1)
	d.line(provisioned, 2)
	if used := full / autoscaled; autoscaled > 0 {
		d.key(4, "this workload, autoscaled")
		d.dot(point(min(used, 1), autoscaled), 5, dollars(autoscaled)+" at "+percent(used))
	}
	for i := 0; i <= 10; i++ {
		d.tick(float64(i)/10, fmt.Sprintf("%d %%", 10*i))
	}
	return d.end("Cost by utilisation of provisioned capacity", chartHeight)
}

// expiryChart shows the cost of a million expiries by each strategy, divided into its parts.
func (r *Report) expiryChart() string {
	const row, left, top = 24, 210, 34
	d := drawing{legend: 10}
	parts := []string{partDeletes, partWriters, partReads, partFirings, partStream, partLambda, partFleet}
	for i, p := range parts {
		d.key(i+1, p)
	}
	most, room := 0.0, 0 // room is for the figures behind the bars
	for _, s := range r.Expiry {
		most, room = max(most, s.PerMillion), max(room, 14+8*len(dollars(s.PerMillion)))
	}
	for i, s := range r.Expiry {
		y, x := float64(top+row*i), float64(left)
		d.Text(x-8, y+15, `text-anchor="end"`, s.Name)
		for k, name := range parts {
			for _, p := range s.Parts {
				if width := p.USD / max(most, 1e-12) * (plot.Right - left - float64(room)); p.Of == name && width > 0 {
					d.Rect(x, y+3, max(width, 0.5), 16, `fill="`+variable(k+1)+`"`, p.Of+": "+dollars(p.USD))
					x += width
				}
			}
		}
		figure := dollars(s.PerMillion)
		if len(s.Parts) == 0 { // native TTL: its price alone would mislead
			figure += ", " + s.Late + " late"
		}
		d.Text(x+6, y+15, `class="soft"`, figure)
	}
	height := top + row*len(r.Expiry) + 20
	d.Text(plot.Right, float64(height-6), `text-anchor="end" class="soft"`, "USD for a million expiries")
	return d.end("Cost of a million expiries", height)
}
