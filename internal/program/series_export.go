package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
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
	o := Export{Segments: c.Segments, Rows: c.Rows, Eventual: c.Eventual}
	if err := c.bound(&o, time.Now); err != nil { // wrong flags are found without the endpoint
		return err
	}
	to, err := openArchive(ctx, c.To, logFlags{}.logger(s.err))
	if err != nil {
		return misused(err, "mayfly series export --help")
	}
	e, series, err := c.openSeries(ctx)
	if err != nil {
		return err
	}
	if err := c.bound(&o, func() time.Time { return e.now(ctx) }); err != nil {
		return err
	}
	p := newProgress(s.err)
	total, err := series.Count(ctx)
	if err != nil {
		return e.adviseSeries(err, c.Name)
	}
	o.Progress = func(r Exported) {
		text := fmt.Sprintf("%d samples read, %d written, %.0f/s", r.Read, r.Written, p.perSecond(max(r.Read, r.Written)))
		p.show(r.Read+r.Written, 2*max(total, r.Read), text)
	}
	report, err := to.Export(ctx, series, o)
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
	fmt.Fprintf(s.out, "%s in %s in %s, in %s\n", counted(int(report.Written), "sample"), counted(int(report.Files), "file"), to, p.took())
	if report.Kept > 0 {
		fmt.Fprintf(s.out, "%d of them were in the files already and have left the table\n", report.Kept)
	}
	return nil
}

// bound sets the range of an export.
func (c seriesExportCommand) bound(o *Export, now func() time.Time) error {
	zone, err := readZone(c.Zone)
	if err != nil {
		return err
	}
	if o.From, err = readBound("--from", c.From, zone, now); err != nil {
		return err
	}
	o.To, err = readBound("--until", c.Until, zone, now)
	return err
}

// bucketScheme is the prefix of a bucket's address.
const bucketScheme = "s3://"

// openArchive returns the archive in a directory, or under a prefix in a bucket.
func openArchive(ctx context.Context, place string, l *slog.Logger) (Archive, error) {
	return parts.Archive(ctx, place, l)
}

// adviseArchive returns an error of an archive with the next step.
func (e *endpoint) adviseArchive(err error, name string) error {
	if isAdvised(err) {
		return err
	}
	return e.adviseSeries(err, name)
}
