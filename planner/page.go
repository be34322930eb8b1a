package planner

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// WritePage writes the report as one HTML page with charts. The page loads nothing: no scripts, no
// fonts.
//
// The page does not use html/template: a template may call any method, so a program that links it
// keeps every exported method of every type, for mayfly megabytes.
func (r *Report) WritePage(out io.Writer) error {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>mayfly plan: " + html.EscapeString(r.summary()[0]) + "</title>\n<style>" + pageStyle + "</style>\n</head>\n<body>\n<main>\n<h1>Capacity and cost</h1>\n")
	for _, line := range r.summary() {
		element(&b, "p", line)
	}
	r.tiles(&b)
	charts := map[string][]string{
		"Capacity, a month":           {r.crossingChart()},
		"Autoscaling, units a second": r.trackCharts(),
	}
	for _, s := range r.sections() {
		element(&b, "h2", s.title)
		if s.heading[1] == "a million" {
			scrolling(&b, r.expiryChart())
		}
		for _, c := range charts[s.title] {
			scrolling(&b, c)
		}
		pageTable(&b, s)
		for _, line := range s.below {
			element(&b, "p", line)
		}
	}
	if len(r.Notes) > 0 {
		element(&b, "h2", "To know")
		b.WriteString("<ul>\n")
		for _, n := range r.Notes {
			element(&b, "li", n)
		}
		b.WriteString("</ul>\n")
	}
	element(&b, "footer", fmt.Sprintf("Prices of %s since %s: %s.", r.Prices.Region, r.Prices.Since, r.Prices.Source))
	b.WriteString("</main>\n</body>\n</html>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func element(b *strings.Builder, name, text string) {
	fmt.Fprintf(b, "<%s>%s</%s>\n", name, html.EscapeString(text), name)
}

// scrolling adds a part that may be wider than a narrow window, with a scroll bar of its own.
func scrolling(b *strings.Builder, part string) {
	b.WriteString("<div class=\"scroll\">" + part + "</div>\n")
}

// tiles adds the figures that a reader looks for first.
func (r *Report) tiles(b *strings.Builder) {
	b.WriteString("<div class=\"tiles\">\n")
	tile := func(label, figure string) {
		fmt.Fprintf(b, "<div><span>%s</span><strong>%s</strong></div>\n", html.EscapeString(label), html.EscapeString(figure))
	}
	tile("On demand, a month", dollars(r.Modes.OnDemandUSD))
	tile("Autoscaled, a month", dollars(r.Modes.AutoscaledUSD))
	tile("Storage, a month", dollars(r.StorageUSD))
	tile("Cheaper", string(r.Modes.Cheaper))
	b.WriteString("</div>\n")
}

func pageTable(to *strings.Builder, s section) {
	b := new(strings.Builder)
	b.WriteString("<table>\n<thead><tr>")
	cell := func(tag string, i int, text string) {
		class := ""
		if !leftAligned(s.heading, i) {
			class = " class=\"n\""
		}
		fmt.Fprintf(b, "<%s%s>%s</%s>", tag, class, html.EscapeString(text), tag)
	}
	for i, h := range s.heading {
		cell("th", i, h)
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, row := range s.rows {
		b.WriteString("<tr>")
		for i, text := range row {
			cell("td", i, text)
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody>\n</table>")
	scrolling(to, b.String())
}

const pageStyle = `
:root{--ink:#111827;--soft:#6b7280;--line:#e5e7eb;--ground:#ffffff;--tile:#f8fafc;--c1:#2563eb;--c2:#d97706;--c3:#059669;--c4:#db2777;--c5:#7c3aed;--c6:#0891b2;--c7:#64748b}
@media (prefers-color-scheme:dark){:root{--ink:#e5e7eb;--soft:#9ca3af;--line:#374151;--ground:#0f172a;--tile:#1e293b;--c1:#60a5fa;--c2:#fbbf24;--c3:#34d399;--c4:#f472b6;--c5:#a78bfa;--c6:#22d3ee;--c7:#94a3b8}}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{overflow-wrap:break-word;max-width:60rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.6rem;margin:.2rem 0 .6rem}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}p{margin:.3rem 0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:.8rem;margin:1.2rem 0}
.tiles div{background:var(--tile);border:1px solid var(--line);border-radius:.5rem;padding:.7rem .9rem}
.tiles span{display:block;color:var(--soft);font-size:.85rem}.tiles strong{font-size:1.25rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:.6rem 0;min-width:60%}
th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:500}th:first-child,td:first-child{white-space:nowrap}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
svg{width:100%;min-width:44rem;height:auto;display:block;margin:.4rem 0}svg text{fill:var(--ink);font:12px system-ui,sans-serif}svg .soft{fill:var(--soft)}svg .grid{stroke:var(--line)}
footer{margin-top:2.5rem;color:var(--soft);font-size:.85rem}
`
