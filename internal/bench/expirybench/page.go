package expirybench

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/chart"
)

// WritePage writes the report as one HTML page: the summary, charts of lateness and of leaks, and the whole
// text.
func (r *Report) WritePage(out io.Writer) error {
	var text, page bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		return err
	}
	title := html.EscapeString("Expiry of " + r.Endpoint.Name)
	fmt.Fprintf(&page, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n<title>%s</title>\n<style>%s</style>\n", title, pageStyle)
	fmt.Fprintf(&page, "<h1>%s</h1>\n<p>%s</p>\n<p class=\"note\">%s. %s</p>\n", title, html.EscapeString(r.Summary), r.Date.Format("2 January 2006"), html.EscapeString(r.Command))
	for _, c := range r.charts() {
		fmt.Fprintf(&page, "<h2>%s</h2>\n%s", html.EscapeString(c.title), c.svg(r.waitMS()))
	}
	fmt.Fprintf(&page, "<h2>All figures</h2>\n<pre>%s</pre>\n</html>\n", html.EscapeString(text.String()))
	_, err := out.Write(page.Bytes())
	return err
}

const pageStyle = `body{font:16px/1.4 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;background:#fff;color:#111827}
pre{overflow:auto;font-size:12px}svg{max-width:100%;height:auto}.note{color:#4b5563;font-size:13px}
text{fill:#111827;font:12px system-ui,sans-serif}.bar{fill:#3b82f6}.p99{fill:#93c5fd}.never{fill:#dc2626}.grid{stroke:#d1d5db}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}.note{color:#9da7b3}text{fill:#e6edf3}.grid{stroke:#30363d}}`

func (r *Report) waitMS() float64 { return 1000 * r.Settings.WaitS }

// timeChart has a bar for each row, on a logarithmic scale of milliseconds.
type timeChart struct {
	title string
	rows  []timeRow
}

// timeRow is a bar: dark up to the first value, paler up to the second. A nil value is later than the wait.
type timeRow struct {
	label         string
	first, second *float64
	text          string
}

func (r *Report) charts() (charts []timeChart) {
	for _, c := range r.Cases {
		if c.LeftOut != "" {
			continue
		}
		one := timeChart{title: "Lateness of " + c.Name + ": p50, and paler p99"}
		for _, m := range c.Methods {
			if m.NotOffered == "" {
				one.rows = append(one.rows, timeRow{m.Name, m.Most.P50, m.Most.P99, fmt.Sprintf("%s, %s", late(m.Most.P50), late(m.Most.P99))})
			}
		}
		charts = append(charts, one)
	}
	leaks := timeChart{title: "How long operations see an expired item"}
	for _, l := range r.Leaks {
		if l.NotOffered == "" {
			row := timeRow{label: l.Operation, text: l.line(r.Settings.WaitS)}
			switch none := 0.0; {
			case l.Seen == 0:
				row.first, row.second = &none, &none
			case l.FirstGoneMS != nil:
				row.first, row.second = l.LastSeenMS, l.FirstGoneMS
			}
			leaks.rows = append(leaks.rows, row)
		}
	}
	if len(leaks.rows) > 0 {
		charts = append(charts, leaks)
	}
	return charts
}

const (
	chartWidth = 900
	chartLeft  = 290 // of the bars
	chartBars  = 400 // the longest
	rowHeight  = 20
	decadeLow  = -1 // 0.1 ms
)

// svg draws the chart. wait is the end of its scale.
func (c *timeChart) svg(wait float64) string {
	var d chart.Drawing
	decades := math.Ceil(math.Log10(wait)) - decadeLow
	at := func(ms *float64) float64 { // length of a bar
		if ms == nil {
			return chartBars
		}
		return chartBars * min(max((math.Log10(max(*ms, 1e-9))-decadeLow)/decades, 0), 1)
	}
	bottom := float64(rowHeight * (len(c.rows) + 1))
	for i := range int(decades) + 1 {
		x := chartLeft + chartBars*float64(i)/decades
		d.Line(x, rowHeight, x, bottom, `class="grid"`)
		d.Text(x, rowHeight-6, `text-anchor="middle"`, decadeText(math.Pow(10, float64(i+decadeLow))))
	}
	for i, row := range c.rows {
		y := float64(rowHeight * (i + 1))
		d.Text(chartLeft-8, y+14, `text-anchor="end"`, row.label)
		second, first := "p99", "bar"
		if row.second == nil {
			second = "never"
		}
		if row.first == nil {
			first = "never"
		}
		d.Rect(chartLeft, y+4, at(row.second), rowHeight-8, `class="`+second+`"`, "")
		d.Rect(chartLeft, y+4, at(row.first), rowHeight-8, `class="`+first+`"`, "")
		d.Text(chartLeft+max(at(row.second), at(row.first))+6, y+14, "", row.text)
	}
	return d.SVG(chartWidth, int(bottom)+4, chart.Namespace(chartWidth, int(bottom)+4), c.title, "")
}

// decadeText formats a power of ten of milliseconds.
func decadeText(ms float64) string {
	if ms >= 1000 {
		return bench.Count(int(ms/1000)) + " s"
	}
	return fmt.Sprintf("%g ms", ms)
}
