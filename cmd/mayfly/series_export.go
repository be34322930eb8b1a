package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mayflydb/mayfly/timeseries/archive"
	"github.com/mayflydb/mayfly/timeseries/archive/bucket"
)

type seriesExportCommand struct {
	seriesFlags
	To       string `help:"Directory or s3://bucket/prefix for the files: dt=2030-01-01/samples.parquet and so on." required:"" placeholder:"DIR"`
	From     string `help:"Begin of the range. Default: the first sample." placeholder:"TIME"`
	Until    string `help:"End of the range, exclusive. Default: after the last sample." placeholder:"TIME"`
	Zone     string `help:"Time zone of --from and --until. The days of the files are always in UTC." default:"UTC"`
	Segments int    `help:"Number of table segments read in parallel, 1 to 100." default:"4"`
	Rows     int    `help:"Most samples in memory; the others go to temporary files." default:"250000"`
	Eventual bool   `help:"Read with eventual consistency, at half the cost; the latest writes may be missing."`
	JSON     bool   `name:"json" help:"Print the report as JSON."`
}

func (seriesExportCommand) Help() string {
	return `Examples:

    mayfly series export weather --to /data/weather
    mayfly series export weather --to /data/weather --from 2030-01-01 --until 2030-02-01
    AWS_ENDPOINT_URL_S3=http://127.0.0.1:9000 mayfly series export weather --to s3://archive/weather

It writes one Parquet file a day, for Athena, Spark and DuckDB. Repeated, it replaces the files and keeps the samples in them that have left the table.`
}

// Run exports a series.
func (c seriesExportCommand) Run(ctx context.Context, s streams) error {
	o := archive.ExportOptions{Segments: c.Segments, Rows: c.Rows, Eventual: c.Eventual}
	store, err := openStore(ctx, c.To, logFlags{}.logger(s.err))
	if err != nil {
		return misused(err, "mayfly series export --help")
	}
	e, series, err := c.openSeries(ctx)
	if err != nil {
		return err
	}
	zone, err := readZone(c.Zone)
	if err != nil {
		return err
	}
	now := func() time.Time { return e.now(ctx) }
	if o.From, err = readBound("--from", c.From, zone, now); err != nil {
		return err
	}
	if o.To, err = readBound("--until", c.Until, zone, now); err != nil {
		return err
	}
	p := newProgress(s.err)
	total, err := series.Count(ctx)
	if err != nil {
		return e.adviseSeries(err, c.Name)
	}
	o.Progress = func(r archive.Report) {
		text := fmt.Sprintf("%d samples read, %d written, %.0f/s", r.Read, r.Written, p.perSecond(max(r.Read, r.Written)))
		p.show(r.Read+r.Written, 2*max(total, r.Read), text)
	}
	report, err := archive.New(store).Export(ctx, series, o)
	p.clear()
	if err != nil {
		if ctx.Err() != nil {
			return advise(errors.New("interrupted"), "run it again; each day's file is unchanged or complete")
		}
		return e.adviseArchive(err, c.Name)
	}
	if c.JSON {
		return json.NewEncoder(s.out).Encode(report)
	}
	fmt.Fprintf(s.out, "%s in %s in %s, in %s\n", counted(int(report.Written), "sample"), counted(int(report.Files), "file"), store, p.took())
	if report.Kept > 0 {
		fmt.Fprintf(s.out, "%d of them were in the files already and have left the table\n", report.Kept)
	}
	return nil
}

// openStore returns the archive's store: a directory, or a prefix in a bucket.
func openStore(ctx context.Context, place string, l *slog.Logger) (archive.Store, error) {
	if bucket.Is(place) {
		return bucket.Open(ctx, place, l)
	}
	return archive.Dir(place), nil
}

// adviseArchive returns an error of package archive with the next step.
func (e *endpoint) adviseArchive(err error, name string) error {
	if _, ok := errors.AsType[*archive.MixedError](err); ok {
		return advise(err, "use another directory; mayfly series range --archive reads either kind")
	}
	return e.adviseSeries(err, name)
}
