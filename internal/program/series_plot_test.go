package program

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/timeseries"
)

func bucketsOf(values ...float64) (points []timeseries.Bucket) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, v := range values {
		if !math.IsNaN(v) {
			stats := map[string]timeseries.Stat{"t<0>": {Count: 1, Min: v - 1, Max: v + 1, Mean: v}}
			points = append(points, timeseries.Bucket{Start: start.Add(time.Duration(i) * time.Hour), Stats: stats})
		}
	}
	return points
}

// A plot has a column for each bucket, as high as its mean, and nothing where nothing was measured.
func TestPlot(t *testing.T) {
	all := plotColumns(bucketsOf(0, 1, 2, math.NaN(), 4, 5), 80, timeseries.Query{}, time.Hour)
	var b strings.Builder
	if err := writePlot(&b, all[0], 5, time.UTC); err != nil {
		t.Fatal(err)
	}
	want := `
           t<0>
         5      █
               ██
       2.5     ██
             █ ██
         0 ▁██ ██
           2030-01-01 00:00 2030-01-01 06:00
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// One value, many values in one column, and huge ones are drawn as well.
func TestPlotOfExtremes(t *testing.T) {
	for _, values := range [][]float64{{7}, {7, 7}, {-1e125, 1e125}, {1e-130}, {0}, {-5, math.NaN(), 5}} {
		for _, width := range []int{1, 3, 200} {
			for _, every := range []time.Duration{0, time.Hour} {
				all := plotColumns(bucketsOf(values...), width, timeseries.Query{}, every)
				if err := errors.Join(writePlot(io.Discard, all[0], 1, time.UTC), writePlot(io.Discard, all[0], 7, time.UTC)); err != nil {
					t.Error(err)
				}
				checkSVG(t, all)
			}
		}
	}
	checkSVG(t, nil)
}

func checkSVG(t *testing.T, all []*plotted) {
	t.Helper()
	var b strings.Builder
	if err := writePlotSVG(&b, "roof & <cellar>", all, 300, 200, time.UTC); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
		t.Errorf("it has numbers that are none: %.2000s", b.String())
	}
	for decoder := xml.NewDecoder(strings.NewReader(b.String())); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in %s", err, b.String())
		}
	}
}
