package planner

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"
)

// The charts are SVG within the page, whose style colours them.
const (
	chartWidth  = 880
	chartHeight = 240
	plotLeft    = 72
	plotRight   = chartWidth - 24
	plotTop     = 34
	plotBottom  = chartHeight - 26
)

// chart is an SVG that is being drawn.
type chart struct {
	b      strings.Builder
	height int
	legend int // where the next entry of it goes
}

func newChart(title string, height int) *chart {
	c := &chart{height: height, legend: plotLeft}
	fmt.Fprintf(&c.b, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n<title>%s</title>\n", chartWidth, height, html.EscapeString(title), html.EscapeString(title))
	return c
}

func (c *chart) end() string { return c.b.String() + "</svg>\n" }

func (c *chart) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&c.b, "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", at(x), at(y), anchor, class, html.EscapeString(text))
}

func (c *chart) rule(x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, "<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\" class=\"grid\"/>\n", at(x1), at(y1), at(x2), at(y2))
}

// key adds an entry to the legend at the top.
func (c *chart) key(colour int, label string) {
	fmt.Fprintf(&c.b, "<rect x=\"%d\" y=\"8\" width=\"11\" height=\"11\" rx=\"2\" fill=\"var(--c%d)\"/>\n", c.legend, colour)
	c.text(float64(c.legend+16), 18, "start", "", label)
	c.legend += 34 + 7*len(label)
}

// path draws a line through points, or an area down to base where that is not NaN.
func (c *chart) path(xs, ys []float64, colour int, base float64) {
	var d strings.Builder
	for i := range xs {
		command := "L"
		if i == 0 {
			command = "M"
		}
		d.WriteString(command + at(xs[i]) + " " + at(ys[i]))
	}
	if math.IsNaN(base) {
		fmt.Fprintf(&c.b, "<path d=\"%s\" fill=\"none\" stroke=\"var(--c%d)\" stroke-width=\"1.8\"/>\n", d.String(), colour)
		return
	}
	fmt.Fprintf(&c.b, "<path d=\"%sL%s %sL%s %sZ\" fill=\"var(--c%d)\" fill-opacity=\"0.35\"/>\n", d.String(), at(xs[len(xs)-1]), at(base), at(xs[0]), at(base), colour)
}

// at writes a coordinate to a tenth.
func at(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// scale is a vertical axis from 0 to a round figure at or above most.
type scale struct{ top, step float64 }

func scaleTo(most float64) scale {
	if !(most > 0) {
		return scale{1, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, by := range []float64{1, 2, 5, 10} {
		if most/(step*by) <= 5 {
			step *= by
			break
		}
	}
	return scale{math.Ceil(most/step-1e-9) * step, step}
}

func (s scale) y(v float64) float64 {
	return plotBottom - math.Min(v/s.top, 1)*(plotBottom-plotTop)
}

// axis draws it with its labels, which are shortened where the whole figures would not have room.
func (c *chart) axis(s scale, label func(float64) string) {
	of, unit := 1.0, ""
	for _, u := range []struct {
		of   float64
		unit string
	}{{1e12, " tn"}, {1e9, " bn"}, {1e6, " M"}} {
		if s.top >= u.of {
			of, unit = u.of, u.unit
			break
		}
	}
	for i := 0; float64(i)*s.step <= s.top*(1+1e-9); i++ {
		v := float64(i) * s.step
		text := label(v / of)
		if i > 0 {
			text += unit
		}
		c.rule(plotLeft, s.y(v), plotRight, s.y(v))
		c.text(plotLeft-8, s.y(v)+4, "end", "soft", text)
	}
}

// trackCharts shows demand and capacity of the table over time.
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
	c, s := newChart(fmt.Sprintf("%s of the %s: capacity and demand", t.Kind, t.Resource), chartHeight), t.series
	n := len(s.demand)
	y := scaleTo(max(t.Most, t.Peak))
	c.axis(y, number)
	xs, demand, capacity := make([]float64, n), make([]float64, n), make([]float64, n)
	refused := false
	for i := range n {
		xs[i] = plotLeft + (plotRight-plotLeft)*float64(i)/float64(max(n-1, 1))
		demand[i], capacity[i] = y.y(s.demand[i]), y.y(s.capacity[i])
	}
	c.key(1, string(t.Kind)+" asked for")
	c.key(2, "capacity")
	c.path(xs, demand, 1, plotBottom)
	c.path(xs, capacity, 2, math.NaN())
	for i := range n {
		if s.refuse[i] > 0 {
			fmt.Fprintf(&c.b, "<circle cx=\"%s\" cy=\"%s\" r=\"3\" fill=\"var(--c4)\"><title>%s units throttled</title></circle>\n", at(xs[i]), at(demand[i]), number(s.refuse[i]))
			refused = true
		}
	}
	if refused {
		c.key(4, "throttled")
	}
	r.timeAxis(c)
	return c.end()
}

// timeAxis labels the beginnings of days, or of hours where there are few.
func (r *Report) timeAxis(c *chart) {
	total := time.Duration(r.Minutes) * time.Minute
	step := 24 * time.Hour
	for total/step > 10 {
		step *= 2
	}
	for d := time.Duration(0); d <= total; d += step {
		x := plotLeft + (plotRight-plotLeft)*float64(d)/float64(total)
		label := fmt.Sprintf("day %d", d/(24*time.Hour))
		if r.start.Year() > 1971 { // not minutes from 0
			label = r.start.Add(d).Format("2 Jan")
		}
		c.text(x, plotBottom+18, "middle", "soft", label)
	}
}

// crossingChart shows what the mean demand of writes and reads would cost by the utilisation of provisioned capacity.
func (r *Report) crossingChart() string {
	c := newChart("Cost by utilisation of provisioned capacity", chartHeight)
	onDemand, full := r.Modes.OnDemandUSD, 0.0 // full: the cost of capacity that is used wholly
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
	y := scaleTo(min(max(full/least, onDemand*1.1, r.Modes.AutoscaledUSD*1.1), max(onDemand, r.Modes.AutoscaledUSD)*2.5))
	c.axis(y, func(v float64) string { return strings.TrimSuffix(dollars(v), ".00") })
	x := func(u float64) float64 { return plotLeft + (plotRight-plotLeft)*u }
	var xs, ys []float64
	for i := 1; i <= 100; i++ {
		if u := float64(i) / 100; full/u <= y.top {
			xs, ys = append(xs, x(u)), append(ys, y.y(full/u))
		}
	}
	c.key(1, "on demand")
	c.key(2, "provisioned, by utilisation")
	c.path([]float64{x(0), x(1)}, []float64{y.y(onDemand), y.y(onDemand)}, 1, math.NaN())
	c.path(xs, ys, 2, math.NaN())
	if used := full / r.Modes.AutoscaledUSD; r.Modes.AutoscaledUSD > 0 {
		c.key(4, "this workload, autoscaled")
		fmt.Fprintf(&c.b, "<circle cx=\"%s\" cy=\"%s\" r=\"5\" fill=\"var(--c4)\"><title>%s at %s</title></circle>\n", at(x(min(used, 1))), at(y.y(r.Modes.AutoscaledUSD)), dollars(r.Modes.AutoscaledUSD), percent(used))
	}
	for i := 0; i <= 10; i++ {
		c.text(x(float64(i)/10), plotBottom+18, "middle", "soft", fmt.Sprintf("%d %%", 10*i))
	}
	return c.end()
}

// expiryChart shows what a million expiries cost in each way, part by part.
func (r *Report) expiryChart() string {
	const row, left = 24, 210
	parts := []string{partDeletes, partWriters, partReads, partFirings, partStream, partLambda, partFleet}
	c := newChart("Cost of a million expiries", plotTop+row*len(r.Expiry)+8)
	c.legend = 10
	for i, p := range parts {
		c.key(i+1, p)
	}
	most, room := 0.0, 0 // room is for the figures behind the bars
	for _, s := range r.Expiry {
		most, room = max(most, s.PerMillion), max(room, 14+8*len(dollars(s.PerMillion)))
	}
	for i, s := range r.Expiry {
		y := plotTop + row*i
		c.text(left-8, float64(y+15), "end", "", s.Name)
		x := float64(left)
		for k, name := range parts {
			for _, p := range s.Parts {
				if width := p.USD / max(most, 1e-12) * float64(plotRight-left-room); p.Of == name && width > 0 {
					fmt.Fprintf(&c.b, "<rect x=\"%s\" y=\"%d\" width=\"%s\" height=\"16\" fill=\"var(--c%d)\"><title>%s: %s</title></rect>\n", at(x), y+3, at(max(width, 0.5)), k+1, html.EscapeString(p.Of), dollars(p.USD))
					x += width
				}
			}
		}
		figure := dollars(s.PerMillion)
		if len(s.Parts) == 0 { // native TTL: its price alone would mislead
			figure += ", " + s.Late + " late"
		}
		c.text(x+6, float64(y+15), "start", "soft", figure)
	}
	return c.end()
}
