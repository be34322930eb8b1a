package program

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"

	"github.com/mayflydb/mayfly/timeseries"
)

type seriesLatestCommand struct {
	seriesFlags
	Devices []string `arg:"" optional:"" help:"Devices. Default: all."`
	Strong  bool     `help:"Read with strong consistency, at twice the cost."`
	Limit   int      `help:"Most devices to show if none is named." default:"1000"`
	JSON    bool     `name:"json" help:"Print JSON lines."`
}

func (seriesLatestCommand) Help() string {
	return `Examples:

    mayfly series latest weather
    mayfly series latest weather roof cellar --json`
}

// Run prints the newest samples.
func (c seriesLatestCommand) Run(ctx context.Context, s streams) error {
	e, series, err := c.openSeries(ctx)
	if err != nil {
		return err
	}
	r := series.Reader(timeseries.ReaderOptions{Strong: c.Strong})
	var samples []timeseries.Sample
	more := false
	if len(c.Devices) > 0 {
		latest, err := r.Latest(ctx, c.Devices...)
		if err != nil {
			return e.adviseSeries(err, c.Name)
		}
		for _, device := range c.Devices {
			if sample, ok := latest[device]; ok {
				samples = append(samples, sample)
			} else {
				fmt.Fprintf(s.err, "mayfly: device %s has no sample\n", oneLine(device))
			}
		}
	} else {
		for sample, err := range r.AllLatest(ctx) {
			if err != nil {
				return e.adviseSeries(err, c.Name)
			}
			if more = len(samples) == c.Limit; more {
				break
			}
			samples = append(samples, sample)
		}
		sort.Slice(samples, func(i, j int) bool { return samples[i].Device < samples[j].Device })
	}
	if more {
		fmt.Fprintf(s.err, "mayfly: there are more than %d devices; raise --limit\n", c.Limit)
	}
	metrics := metricsOf(samples)
	heading := append([]string{"Device", "Time"}, metrics...)
	shown := listing{table: table{heading: heading}, plural: "samples", json: c.JSON}
	for _, sample := range samples {
		cells := append([]string{sample.Device, timeText(sample.Time)}, cellsOf(sample, metrics)...)
		if err := shown.show(s, sampleJSONOf(sample), cells...); err != nil {
			return err
		}
	}
	return shown.end(s)
}

// metricsOf returns the sorted metrics of all samples.
func metricsOf(samples []timeseries.Sample) []string {
	seen := map[string]bool{}
	for _, s := range samples {
		for name := range s.Values {
			seen[name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// cellsOf returns a sample's values, in the order of metrics.
func cellsOf(s timeseries.Sample, metrics []string) []string {
	cells := make([]string, len(metrics))
	for i, name := range metrics {
		if v, ok := s.Values[name]; ok {
			cells[i] = numberText(v)
		}
	}
	return cells
}

// numberText returns the shortest text that parses as the same number.
func numberText(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
