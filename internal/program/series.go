package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/timeseries"
)

// seriesCommand manages series: readings of devices in a table.
type seriesCommand struct {
	Create  seriesCreateCommand  `cmd:"" help:"Create a series: its tables, retention and settings."`
	Ingest  seriesIngestCommand  `cmd:"" help:"Read CSV, JSON lines or InfluxDB line protocol into a series, from files or a broker."`
	Latest  seriesLatestCommand  `cmd:"" help:"Show the latest sample of each device."`
	Range   seriesRangeCommand   `cmd:"" help:"Show a device's samples or rollups as a table, JSON, CSV, plot or SVG."`
	Archive seriesArchiveCommand `cmd:"" help:"Write expiring samples to Parquet files, until stopped."`
	Export  seriesExportCommand  `cmd:"" help:"Write a series to Parquet files, one a day, for Athena, Spark and DuckDB."`
	Shards  seriesShardsCommand  `cmd:"" help:"Show or change the number of partitions of a hot device."`
}

func (seriesCommand) Help() string {
	return `Examples:

    mayfly series create weather --retention 30d
    mayfly series ingest weather readings.csv
    mayfly series range weather roof --last 7d --every 1h --format plot

It works with any endpoint that has the DynamoDB API: docs/time-series.md.`
}

// seriesFlags select a series and its endpoint.
type seriesFlags struct {
	Name string `arg:"" help:"Name of the series, which is also the name of its table."`
	endpointFlags
}

// openSeries opens the series with the endpoint's clock.
func (f seriesFlags) openSeries(ctx context.Context) (*endpoint, *timeseries.Series, error) {
	e, err := f.connect(ctx, serviceDynamoDB)
	if err != nil {
		return nil, nil, err
	}
	e.widen(seriesParallel)
	e.askClock(ctx)
	series, err := timeseries.Open(ctx, e.DynamoDB(), timeseries.Spec{Table: f.Name, Now: func() time.Time { return e.now(ctx) }})
	return e, series, e.adviseSeries(err, f.Name)
}

// seriesParallel is the number of parallel calls.
const seriesParallel = 64

// seriesFlagNames maps the settings of a series to the arguments of the command line.
var seriesFlagNames = map[string]string{"Table": "series name", "Metrics": "--index", "MetricShards": "--index-shards", "CacheFor": "--cache", "Retention": "--retention", "Ahead": "--ahead"}

// adviseSeries returns an error of package timeseries with the next step.
func (e *endpoint) adviseSeries(err error, name string) error {
	var unfit *timeseries.SpecError
	switch {
	case errors.As(err, &unfit):
		return misusedOptions(unfit.Err, func(setting string) string { return cmp.Or(seriesFlagNames[setting], setting) }, "mayfly series create --help")
	case errors.Is(err, timeseries.ErrNoSeries):
		return advise(fmt.Errorf("series %q not found at %s", name, e.name()), "mayfly series create %s --retention 30d", name)
	case errors.Is(err, timeseries.ErrSettings):
		return advise(err, "use the same settings, or another name: the samples of %s can be exported with mayfly series export and ingested there", name)
	case errors.Is(err, timeseries.ErrNoLatest):
		return advise(err, "give the names of devices")
	case errors.Is(err, timeseries.ErrPlace):
		return advise(err, "use the --after value that an earlier mayfly series range printed for the same device and order")
	}
	return e.advise(err)
}
