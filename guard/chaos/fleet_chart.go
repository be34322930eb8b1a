package main

import (
	"fmt"
	"math"
	"os"

	"github.com/mayflydb/mayfly/internal/chart"
)

const (
	pictureWidth  = 900
	pictureHeight = 460
	pictureStyle  = `text{font:12px system-ui,sans-serif;fill:#111827}.label{fill:#4b5563}.grid{stroke:#e5e7eb}.event{stroke:#111827;stroke-dasharray:4 3}polyline{fill:none;stroke-width:1.3}`
)

var (
	lateFrame    = chart.Frame{Left: 70, Right: pictureWidth - 20, Top: 70, Bottom: 300}
	removedFrame = chart.Frame{Left: 70, Right: pictureWidth - 20, Top: 330, Bottom: 420}
)

// lines are the curves of the upper chart.
var curves = []struct {
	name, color string
	ms          func(lateness) int64
}{
	{"max", "#dc2626", func(l lateness) int64 { return l.Max }},
	{"p99", "#f59e0b", func(l lateness) int64 { return l.P99 }},
	{"p50", "#2563eb", func(l lateness) int64 { return l.P50 }},
}

// draw writes the picture of the run to a file.
func (r *fleetReport) draw(file string) error {
	if err := os.WriteFile(file, []byte(r.picture()), 0o644); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// picture returns the lateness and the removals over time as SVG. The lateness has a logarithmic
// scale; less than a millisecond is drawn as one.
func (r *fleetReport) picture() string {
	var d chart.Drawing
	d.Rect(0, 0, pictureWidth, pictureHeight, `fill="#fff"`, "")
	d.Text(lateFrame.Left, 24, `font-weight="bold"`, fmt.Sprintf("Lateness of removals by the second of the deadline: %d a second, %d pending", r.Rate, r.Pending))
	x := lateFrame.Left
	for _, l := range curves {
		x = d.Key(x, 46, l.color, l.name)
	}
	seconds := chart.NewScale(0, float64(max(len(r.Seconds), 1)), 10)
	decades := chart.Scale{Low: 0, High: math.Ceil(math.Log10(float64(max(r.Late.Max, 10)))), Step: 1}
	d.ValueAxis(lateFrame, decades, "grid", "label", func(v float64) string {
		if v >= 3 {
			return fmt.Sprintf("%g s", math.Pow(10, v-3))
		}
		return fmt.Sprintf("%g ms", math.Pow(10, v))
	})
	for _, l := range curves {
		var points []chart.Point
		for i, s := range r.Seconds {
			if s.Late.Count > 0 {
				y := lateFrame.Y(decades, math.Log10(float64(max(l.ms(s.Late), 1))))
				points = append(points, chart.Point{X: lateFrame.X(seconds.Share(float64(i))), Y: y})
			}
		}
		d.Polyline(points, `stroke="`+l.color+`"`)
	}
	most := 1
	var points []chart.Point
	for _, s := range r.Seconds {
		most = max(most, s.Removed)
	}
	rates := chart.NewScale(0, float64(most), 3)
	d.Text(removedFrame.Left, removedFrame.Top-10, "", "Removals in each second")
	d.ValueAxis(removedFrame, rates, "grid", "label", func(v float64) string { return fmt.Sprintf("%g", v) })
	for i, s := range r.Seconds {
		points = append(points, chart.Point{X: removedFrame.X(seconds.Share(float64(i))), Y: removedFrame.Y(rates, float64(s.Removed))})
	}
	d.Polyline(points, `stroke="#059669"`)
	for _, v := range seconds.Values() {
		d.Text(removedFrame.X(seconds.Share(v)), removedFrame.Bottom+18, `text-anchor="middle" class="label"`, fmt.Sprintf("%g s", v))
	}
	for _, e := range r.Events {
		at := lateFrame.X(seconds.Share(e.Second))
		d.Line(at, lateFrame.Top, at, removedFrame.Bottom, `class="event"`)
		d.Text(at, lateFrame.Top-6, `text-anchor="middle"`, "a worker "+e.What)
	}
	return d.SVG(pictureWidth, pictureHeight, chart.Namespace(pictureWidth, pictureHeight), "Lateness of a fleet's removals over time", pictureStyle)
}
