package chart

import "math"

// Scale is the range of an axis: both ends are multiples of the step between its labels.
type Scale struct{ Low, High, Step float64 }

// NewScale returns the smallest scale around low and high that has a step of 1, 2 or 5 times a power
// of ten, and at most so many such steps between low and high. The range of a single
// value gets room above and below.
func NewScale(low, high float64, steps int) Scale {
	if high <= low {
		pad := max(math.Abs(low)*0.1, 1)
		low, high = low-pad, high+pad
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(steps))))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*factor) <= float64(steps) {
			step *= factor
			break
		}
	}
	return Scale{math.Floor(low/step) * step, math.Ceil(high/step-1e-9) * step, step}
}

// Share returns the place of a value on the axis: 0 at Low, 1 at High, and less than 0 or more than
// 1 for a value outside.
func (s Scale) Share(v float64) float64 { return (v - s.Low) / (s.High - s.Low) }

// Values returns the values at which the axis has labels, from Low to High.
func (s Scale) Values() (values []float64) {
	for i := 0; ; i++ {
		v := s.Low + float64(i)*s.Step
		if v > s.High+s.Step/2 {
			return values
		}
		values = append(values, v)
	}
}

// Frame is the area between the axes, by the coordinates of its edges.
type Frame struct{ Left, Right, Top, Bottom float64 }

// X returns the x coordinate of a share of the frame's width, from 0 at its left edge to 1.
func (f Frame) X(share float64) float64 { return f.Left + (f.Right-f.Left)*share }

// Y returns the y coordinate of a value on a vertical axis with the scale. A value above the scale
// lies on the upper edge.
func (f Frame) Y(s Scale, v float64) float64 {
	return f.Bottom - min(s.Share(v), 1)*(f.Bottom-f.Top)
}

// ValueAxis adds the labels of a scale to the left of the frame, and a line across it at each. line
// and text are CSS classes, for the style of the image; label formats a value.
func (d *Drawing) ValueAxis(f Frame, s Scale, line, text string, label func(float64) string) {
	for _, v := range s.Values() {
		y := f.Y(s, v)
		d.Line(f.Left, y, f.Right, y, `class="`+line+`"`)
		d.Text(f.Left-8, y+4, `text-anchor="end" class="`+text+`"`, label(v))
	}
}
