package lifecycle

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/chart"
)

// label returns a short text for the time of a transition.
func (t *Transition) label() string {
	var parts []string
	switch {
	case t.From != "" && strings.HasPrefix(t.After, "-"):
		parts = append(parts, strings.TrimPrefix(t.After, "-")+" before $"+t.From)
	case t.From != "" && t.After != "":
		parts = append(parts, t.After+" after $"+t.From)
	case t.From != "":
		parts = append(parts, "at $"+t.From)
	case t.After != "":
		parts = append(parts, "after "+t.After)
	}
	if t.At != "" {
		at := "at " + t.At
		if len(parts) == 0 {
			at = "next " + t.At
		}
		parts = append(parts, at)
	}
	if t.Calendar != "" {
		parts = append(parts, "("+t.Calendar+")")
	}
	if len(parts) == 0 {
		parts = append(parts, "by hand")
	}
	return strings.Join(parts, " ")
}

// order returns the states by their distance from the start, and the layer of each.
func (d *Definition) order() (order []*State, layer map[string]int) {
	byName, layer := map[string]*State{}, map[string]int{}
	for i := range d.States {
		byName[d.States[i].Name] = &d.States[i]
	}
	add := func(name string, at int) {
		if _, seen := layer[name]; !seen && byName[name] != nil {
			layer[name] = at
			order = append(order, byName[name])
		}
	}
	add(d.StartState(), 0)
	for i := 0; i < len(order); i++ {
		for _, t := range order[i].Next {
			add(t.To, layer[order[i].Name]+1)
		}
	}
	return order, layer
}

// Text draws a definition as text: each state with the transitions that lead out of it. The
// definition must have passed Check.
func (d *Definition) Text() string {
	order, _ := d.order()
	wide := 0
	for _, s := range order {
		for i := range s.Next {
			wide = max(wide, utf8.RuneCountInString(s.Next[i].label()))
		}
	}
	var b strings.Builder
	zone := cmp.Or(d.Zone, "UTC")
	fmt.Fprintf(&b, "%s, in %s\n", d.Name, zone)
	for i, s := range order {
		mark := "○"
		switch {
		case i == 0:
			mark = "●"
		case len(s.Next) == 0:
			mark = "◉"
		}
		fmt.Fprintf(&b, "\n%s %s", mark, s.Name)
		switch {
		case s.Remove:
			b.WriteString("  removed")
		case s.Keep != "":
			b.WriteString("  kept for " + s.Keep)
		}
		b.WriteString("\n")
		for j := range s.Next {
			t, branch := &s.Next[j], "├─"
			if j == len(s.Next)-1 {
				branch = "└─"
			}
			label := t.label()
			line := fmt.Sprintf("%s %s %s▶ %s", branch, label, strings.Repeat("─", wide-utf8.RuneCountInString(label)+1), t.To)
			if t.When != "" {
				line += "  if " + t.When
			}
			if t.Handler != "" {
				line += "  calls " + t.Handler
			}
			if t.Input != nil {
				line += " with " + oneLine(t.shown(), inputWide)
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// Sizes of a drawing, in pixels.
const (
	boxHigh   = 36
	layerHigh = 118
	margin    = 24
	letter    = 7 // the average width of a letter
	between   = 56
	labelHigh = 14
	labelWide = 40 // letters
	inputWide = 60 // letters of an input in a drawing as text
)

// drawing is an SVG in progress.
type drawing struct {
	chart.Drawing
	boxes  map[string]box
	counts map[string]int // entities by state; nil: they are not drawn
	right  int            // the right border so far: arrows that skip layers go around it
	labels [][4]int
}

type box struct{ x, y, wide int }

func (b box) middle() int { return b.x + b.wide/2 }

// SVG draws a definition as an SVG. The definition must have passed Check.
func (d *Definition) SVG() string { return d.SVGWithCounts(nil) }

// SVGWithCounts is SVG with a number of entities at each state. A state that counts lacks has none;
// without counts no numbers are drawn.
func (d *Definition) SVGWithCounts(counts map[string]int) string {
	order, layer := d.order()
	g := &drawing{boxes: map[string]box{}, counts: counts}
	g.Raw(arrowhead)
	high := g.place(order, layer)
	for _, s := range order {
		g.ways(s, layer)
	}
	for i, s := range order {
		g.state(s, i == 0)
	}
	wide := g.right + margin
	for _, l := range g.labels {
		wide = max(wide, l[0]+l[2]+margin)
	}
	root := chart.Namespace(wide, high) + fmt.Sprintf(` role="img" aria-label="%s"`, html.EscapeString("lifecycle "+d.Name))
	return g.SVG(wide, high, root, "", drawingStyle)
}

const drawingStyle = `
svg { font: 13px system-ui, sans-serif; background: #fff; }
.state rect { fill: #eef4ff; stroke: #2c5aa0; stroke-width: 1.5; } .start rect { fill: #2c5aa0; } .start text { fill: #fff; } .end rect { fill: #f3f3f3; stroke: #777; }
.state text { text-anchor: middle; } .way { fill: none; stroke: #555; stroke-width: 1.3; } .hand { stroke-dasharray: 5 4; }
.label { font-size: 11px; fill: #333; } .label rect { fill: #fff; fill-opacity: .9; }
.count rect { fill: #1a6b33; } .count text { fill: #fff; font-weight: 600; text-anchor: middle; } .count.none rect { fill: #6b7280; }
`

// arrowhead is the marker at the end of a transition.
const arrowhead = `<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>
`

// place puts each state into a box, one layer below the other, and returns the total height.
func (g *drawing) place(order []*State, layer map[string]int) (high int) {
	widths, layers := map[int]int{}, 0
	for _, s := range order {
		widths[layer[s.Name]] += boxWide(s) + between
		layers = max(layers, layer[s.Name]+1)
	}
	widest := 0
	for _, w := range widths {
		widest = max(widest, w-between)
	}
	at := map[int]int{}
	for _, s := range order {
		n := layer[s.Name]
		if _, begun := at[n]; !begun {
			at[n] = margin + (widest-(widths[n]-between))/2
		}
		g.boxes[s.Name] = box{at[n], margin + n*layerHigh, boxWide(s)}
		at[n] += boxWide(s) + between
	}
	g.right = margin + widest
	return 2*margin + (layers-1)*layerHigh + boxHigh
}

func boxWide(s *State) int { return max(80, utf8.RuneCountInString(s.Name)*(letter+1)+28) }

// state draws a state's box.
func (g *drawing) state(s *State, start bool) {
	class := "state"
	switch {
	case start:
		class += " start"
	case len(s.Next) == 0:
		class += " end"
	}
	b := g.boxes[s.Name]
	dash := ""
	if s.Remove {
		dash = ` stroke-dasharray="4 3"`
	}
	g.Raw(`<g class="` + class + `">`)
	g.Rect(float64(b.x), float64(b.y), float64(b.wide), boxHigh, `rx="9"`+dash, "")
	g.Text(float64(b.middle()), float64(b.y+boxHigh/2+5), "", s.Name)
	g.Raw("</g>\n")
	if g.counts == nil {
		return
	}
	count := strconv.Itoa(g.counts[s.Name])
	wide := float64(len(count)*(letter+1) + 12)
	class = `class="count"`
	if g.counts[s.Name] == 0 {
		class = `class="count none"`
	}
	x := float64(b.x+b.wide) - wide + 10 // over the corner
	g.Raw("<g " + class + ">")
	g.Rect(x, float64(b.y-11), wide, 20, `rx="10"`, count+" in the state "+s.Name)
	g.Text(x+wide/2, float64(b.y+4), "", count)
	g.Raw("</g>\n")
}

// ways draws the transitions of a state: straight to the next layer, otherwise around the
// right-hand side.
func (g *drawing) ways(s *State, layer map[string]int) {
	from := g.boxes[s.Name]
	for i := range s.Next {
		t := &s.Next[i]
		to := g.boxes[t.To]
		x := from.x + from.wide*(i+1)/(len(s.Next)+1)
		class := `class="way" marker-end="url(#tip)"`
		if !t.timed() {
			class = `class="way hand" marker-end="url(#tip)"`
		}
		if layer[t.To] == layer[s.Name]+1 {
			y, y2 := from.y+boxHigh, to.y
			g.Path(fmt.Sprintf("M%d %d C%d %d %d %d %d %d", x, y, x, y+30, to.middle(), y2-30, to.middle(), y2), class)
			g.label(t, (x+to.middle())/2, (y+y2)/2)
			continue
		}
		g.right += 34
		y, y2 := from.y+boxHigh/2-4, to.y+boxHigh/2+4
		g.Path(fmt.Sprintf("M%d %d H%d Q%d %d %d %d V%d Q%d %d %d %d H%d", from.x+from.wide, y, g.right-8, g.right, y, g.right, y+bend(y, y2),
			y2-bend(y, y2), g.right, y2, g.right-8, y2, to.x+to.wide), class)
		g.label(t, g.right, (y+y2)/2)
	}
}

// oneLine returns a text without line breaks, cut to most letters.
func oneLine(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most-1]) + "…"
	}
	return s
}

func bend(from, to int) int {
	if from > to {
		return -8
	}
	return 8
}

// label writes a transition's label at a free place.
func (g *drawing) label(t *Transition, x, y int) {
	lines := []string{t.label()}
	if t.When != "" {
		lines = append(lines, "if "+t.When)
	}
	if t.Handler != "" {
		lines = append(lines, "calls "+t.Handler)
	}
	if t.Input != nil {
		lines = append(lines, "with "+t.shown())
	}
	wide := 0
	for i, line := range lines {
		lines[i] = oneLine(line, labelWide)
		wide = max(wide, utf8.RuneCountInString(lines[i])*letter*6/7+8)
	}
	high := len(lines)*labelHigh + 4
	at := [4]int{x - wide/2, y - high/2, wide, high}
	for tries := 0; tries < 50 && slices.ContainsFunc(g.labels, func(l [4]int) bool {
		return at[0] < l[0]+l[2] && l[0] < at[0]+at[2] && at[1] < l[1]+l[3] && l[1] < at[1]+at[3]
	}); tries++ {
		at[0] += 20
	}
	g.labels = append(g.labels, at)
	g.Raw(`<g class="label">`)
	g.Rect(float64(at[0]), float64(at[1]), float64(wide), float64(high), "", "")
	for i, line := range lines {
		g.Text(float64(at[0]+4), float64(at[1]+labelHigh*(i+1)-2), "", line)
	}
	g.Raw("</g>\n")
}
