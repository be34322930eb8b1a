package console

import (
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/chart"
)

// firing is something that happens at an instant to come.
type firing struct {
	at   time.Time
	name string
}

// firingsChart draws firings on an axis from now to the last of them. Nothing is drawn for none.
func firingsChart(all []firing, now time.Time) node {
	last := now
	for _, one := range all {
		if one.at.After(last) {
			last = one.at
		}
	}
	if last.Equal(now) {
		return nil
	}
	whole := last.Sub(now)
	return el("div", drawingOf("Next firings", firingsHeight, func(p plot, d *chart.Drawing) {
		p.frame.Left = float64(p.width) - p.frame.Right // there are no values at this axis
		f := p.frame
		d.Line(f.Left, f.Bottom, f.Right, f.Bottom, `class="grid"`)
		for _, one := range all {
			x := f.X(min(max(float64(one.at.Sub(now))/float64(whole), 0), 1))
			d.Circle(x, f.Bottom-16, 6, `class="bar"`, fmt.Sprintf("%s: %s", one.name, utc(one.at)))
		}
		p.timeAxis(d, now, last)
	}))
}

// firingsHeight is the height of the drawing: it has one line of dots.
const firingsHeight = 72
