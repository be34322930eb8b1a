// Package chart draws SVG images: shapes, texts, a legend, and value axes with round ends.
//
// The package escapes texts and titles. It takes attributes as SVG text, such as `class="grid"`, and
// writes them as they are; coordinates are in pixels from the top left corner.
package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Drawing is an SVG image under construction. Later shapes cover earlier ones.
type Drawing struct {
	body strings.Builder
}

// SVG returns the image. The attributes belong to its root element; the style is CSS and may be empty.
func (d *Drawing) SVG(width, height int, attributes, title, style string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<svg viewBox=\"0 0 %d %d\"%s>\n", width, height, spaced(attributes))
	if title != "" {
		fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(title))
	}
	if style != "" {
		fmt.Fprintf(&b, "<style>%s</style>\n", style)
	}
	return b.String() + d.body.String() + "</svg>\n"
}

// Namespace returns the root attributes of an image that is a file of its own.
func Namespace(width, height int) string {
	return fmt.Sprintf(`xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"`, width, height)
}

// Text adds a text whose baseline starts at x and y, unless the attributes anchor it otherwise.
func (d *Drawing) Text(x, y float64, attributes, text string) {
	d.element("text", fmt.Sprintf(`x="%s" y="%s"`, at(x), at(y)), attributes, html.EscapeString(text))
}

// Rect adds a rectangle. A title, which browsers show under the pointer, may be empty here and below.
func (d *Drawing) Rect(x, y, width, height float64, attributes, title string) {
	place := fmt.Sprintf(`x="%s" y="%s" width="%s" height="%s"`, at(x), at(y), at(width), at(height))
	d.element("rect", place, attributes, titleElement(title))
}

// Circle adds a circle around x and y.
func (d *Drawing) Circle(x, y, radius float64, attributes, title string) {
	d.element("circle", fmt.Sprintf(`cx="%s" cy="%s" r="%s"`, at(x), at(y), at(radius)), attributes, titleElement(title))
}

// Line adds a straight line.
func (d *Drawing) Line(x1, y1, x2, y2 float64, attributes string) {
	d.element("line", fmt.Sprintf(`x1="%s" y1="%s" x2="%s" y2="%s"`, at(x1), at(y1), at(x2), at(y2)), attributes, "")
}

// Polyline adds a line through points.
func (d *Drawing) Polyline(points []Point, attributes string) {
	d.element("polyline", attributes, `points="`+list(points)+`"`, "")
}

// Polygon adds an area with its corners at the points.
func (d *Drawing) Polygon(points []Point, attributes string) {
	d.element("polygon", attributes, `points="`+list(points)+`"`, "")
}

// Path adds a path of SVG's commands.
func (d *Drawing) Path(commands, attributes string) {
	d.element("path", attributes, `d="`+commands+`"`, "")
}

// Raw adds SVG as it is.
func (d *Drawing) Raw(svg string) { d.body.WriteString(svg) }

// element adds an element with attributes, with more attributes unless those are empty, and with
// content, which is SVG.
func (d *Drawing) element(name, attributes, more, content string) {
	end := "/>"
	if content != "" {
		end = ">" + content + "</" + name + ">"
	}
	fmt.Fprintf(&d.body, "<%s %s%s%s\n", name, attributes, spaced(more), end)
}

// Point is a place in a drawing.
type Point struct{ X, Y float64 }

func list(points []Point) string {
	texts := make([]string, len(points))
	for i, p := range points {
		texts[i] = at(p.X) + "," + at(p.Y)
	}
	return strings.Join(texts, " ")
}

func titleElement(title string) string {
	if title == "" {
		return ""
	}
	return "<title>" + html.EscapeString(title) + "</title>"
}

func spaced(attributes string) string {
	if attributes == "" {
		return ""
	}
	return " " + attributes
}

// at returns a coordinate to a tenth of a pixel.
func at(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// keySize is the side of a legend's squares.
const keySize = 11

// Key adds a legend entry, a square and a label, and returns the x of the next entry. The baseline
// of the label is y; fill is a CSS color.
func (d *Drawing) Key(x, y float64, fill, label string) (next float64) {
	d.Rect(x, y-10, keySize, keySize, `rx="2" fill="`+fill+`"`, "")
	d.Text(x+16, y, "", label)
	return x + 34 + 7*float64(len(label))
}
