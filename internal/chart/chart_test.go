package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// Names of users are text, wherever they appear, and the image stays well-formed.
func TestDrawingEscapes(t *testing.T) {
	const name = `<b> & "roof"`
	var d Drawing
	d.Text(1, 2.04, `class="soft"`, name)
	d.Rect(0, 0, 1, 1, "", name)
	d.Circle(1, 1, 1, `fill="red"`, name)
	d.Line(0, 0, 1, 1, "")
	d.Polyline([]Point{{0, 0}, {1.25, 1}}, `class="l"`)
	d.Polygon([]Point{{0, 0}}, "")
	d.Path("M0 0", `class="p"`)
	d.Key(0, 10, "blue", name)
	svg := d.SVG(10, 20, Namespace(10, 20), name, "text{}")
	for _, want := range []string{
		`<svg viewBox="0 0 10 20" xmlns="http://www.w3.org/2000/svg" width="10" height="20">`, "<title>&lt;b&gt; &amp; &#34;roof&#34;</title>",
		`<text x="1" y="2" class="soft">&lt;b&gt;`, `<polyline class="l" points="0,0 1.3,1"/>`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}

// A scale begins and ends at round values, covers its range, and has few labels, at any magnitude.
func TestScale(t *testing.T) {
	for _, x := range []struct {
		low, high float64
		want      []float64
	}{
		{0, 5, []float64{0, 1, 2, 3, 4, 5}}, {0, 4280, []float64{0, 1000, 2000, 3000, 4000, 5000}}, {-3, 7, []float64{-4, -2, 0, 2, 4, 6, 8}}, {10, 10, []float64{9, 9.5, 10, 10.5, 11}},
	} {
		if got := NewScale(x.low, x.high, 5).Values(); !slices.Equal(got, x.want) {
			t.Errorf("%v to %v: %v, want %v", x.low, x.high, got, x.want)
		}
	}
	for _, x := range [][2]float64{{-1e125, 1e125}, {1e-130, 2e-130}, {7, math.Nextafter(7, 8)}, {0, 1e-9}} {
		s := NewScale(x[0], x[1], 5)
		tolerance := s.Step * 1e-6
		if n := len(s.Values()); s.Low > x[0]+tolerance || s.High < x[1]-tolerance || n < 2 || n > 12 {
			t.Errorf("%v: %+v with %d labels", x, s, n)
		}
	}
}
