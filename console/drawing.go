package console

import (
	"math"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/chart"
)

// plot is a size of a drawing. Each drawing is made for wide and for narrow windows, and the style
// sheet shows one: a drawing that is scaled down for a telephone has texts of four pixels.
type plot struct {
	class         string
	width, height int
	frame         chart.Frame
	labels        int // intervals between the labels of a time axis
}

var plots = []plot{
	{"wide", 1200, 220, chart.Frame{Left: 60, Right: 1190, Top: 12, Bottom: 190}, 6},
	{"narrow", 360, 220, chart.Frame{Left: 44, Right: 352, Top: 12, Bottom: 190}, 1},
}

// drawing returns what draw draws, in each size.
func drawing(label string, draw func(p plot, d *chart.Drawing)) node {
	return drawingOf(label, plots[0].height, draw)
}

// drawingOf is drawing with another height.
func drawingOf(label string, height int, draw func(p plot, d *chart.Drawing)) node {
	all := make(group, len(plots))
	for i, p := range plots {
		p.frame.Bottom -= float64(p.height - height)
		p.height = height
		d := &chart.Drawing{}
		draw(p, d)
		number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
		all[i] = raw(d.SVG(p.width, p.height, `role="img" class="`+p.class+`" aria-label="`+label+`"`+
			` data-left="`+number(p.frame.Left)+`" data-right="`+number(p.frame.Right)+`"`, "", ""))
	}
	return all
}

// labelWidth is the width that a label such as "100 ms" needs.
const labelWidth = 50

// every returns how many of n places of an axis share a label, so that labels do not overlap.
func (p plot) every(n int) int {
	return int(math.Ceil(labelWidth * float64(n) / (p.frame.Right - p.frame.Left)))
}

// timeAxis labels the time below the bars. The script shows the labels in the visitor's time.
func (p plot) timeAxis(d *chart.Drawing, from, to time.Time) {
	layout, form := "15:04:05", "second"
	switch span := to.Sub(from); {
	case span > 400*24*time.Hour:
		layout, form = "2006-01", "month"
	case span > 3*24*time.Hour:
		layout, form = "2006-01-02", "day"
	case span > 10*time.Minute:
		layout, form = "01-02 15:04", "minute"
	}
	for i := range p.labels + 1 {
		share := float64(i) / float64(p.labels)
		at := from.Add(time.Duration(share * float64(to.Sub(from))))
		anchor := "middle"
		switch i {
		case 0:
			anchor = "start"
		case p.labels:
			anchor = "end"
		}
		d.Text(p.frame.X(share), p.frame.Bottom+20, `text-anchor="`+anchor+`" data-at="`+millis(at)+`" data-form="`+form+`"`, at.UTC().Format(layout))
	}
}
