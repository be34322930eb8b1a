package program

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/timeseries"
)

type seriesRangeCommand struct {
	seriesFlags
	Device  string   `arg:"" help:"The device."`
	From    string   `help:"Begin of the range: 2030-01-01T12:00:00, 2030-01-01 or an RFC 3339 time. Default: the first sample." placeholder:"TIME"`
	Until   string   `was:"to" help:"End of the range, exclusive. Default: after the last sample." placeholder:"TIME"`
	Last    span     `help:"The time up to now, such as 7d, instead of --from and --until." placeholder:"TIME"`
	Zone    string   `help:"Time zone of --from and --until, and of days in --every 1d." default:"UTC"`
	Metric  []string `help:"Metrics to show. Default: all." placeholder:"NAME,…"`
	Every   span     `help:"Roll up into buckets of 1m, 1h, 1d or another length: count, minimum, maximum and mean." placeholder:"TIME"`
	Newest  bool     `help:"Newest first."`
	Limit   int      `help:"Most rows to show; 0 shows all. Default: 100 in a table, otherwise all." default:"-1" placeholder:"N"`
	After   string   `help:"Continue where an earlier call ended; it printed this value." placeholder:"PLACE"`
	Format  string   `help:"Output format: table, json, csv, plot or svg." enum:"table,json,csv,plot,svg" default:"table"`
	Archive string   `help:"Directory or s3://bucket/prefix of mayfly series export or archive, whose samples are shown too." placeholder:"DIR"`
	Strong  bool     `help:"Read with strong consistency, at twice the cost."`
	Width   int      `help:"Width in columns of a plot or pixels of an SVG. Default: the terminal's width; 960." placeholder:"N"`
	Height  int      `help:"Height of each metric in rows of a plot or pixels of an SVG. Default: 10; 240." placeholder:"N"`
}

func (seriesRangeCommand) Help() string {
	return `Examples:

    mayfly series range weather roof --last 1d
    mayfly series range weather roof --from 2030-01-01 --until 2030-02-01 --every 1d
    mayfly series range weather roof --newest --limit 10 --format json
    mayfly series range weather roof --metric temperature --format plot
    mayfly series range weather roof --every 1d --format svg >year.svg`
}

const (
	tableRows    = 100
	plottedMax   = 2_000_000 // samples
	metricsAhead = 1000      // samples that determine the columns of a table
)

// Run prints or draws a range.
func (c seriesRangeCommand) Run(ctx context.Context, s streams) error {
	if _, _, err := c.query(time.Now()); err != nil { // wrong flags are found without the endpoint
		return err
	}
	e, series, err := c.openSeries(ctx)
	if err != nil {
		return err
	}
	q, zone, err := c.query(e.now(ctx))
	if err != nil {
		return err
	}
	r, err := c.reader(ctx, series)
	if err != nil {
		return misused(err, "mayfly series range --help")
	}
	if c.Format == "plot" || c.Format == "svg" {
		return e.adviseSeries(c.draw(ctx, s, r, q, zone), c.Name)
	}
	limit := c.Limit
	if limit < 0 {
		limit = 0
		if c.Format == "table" {
			limit = tableRows
		}
	}
	if c.Every > 0 {
		return e.adviseSeries(c.showBuckets(ctx, s, r, q, zone, limit), c.Name)
	}
	return e.adviseSeries(c.showSamples(ctx, s, r, q, limit), c.Name)
}

// samplesReader reads samples from the live table, or also from an archive.
type samplesReader interface {
	Range(ctx context.Context, q timeseries.Query) iter.Seq2[timeseries.Sample, error]
}

// archivedReader reads both.
type archivedReader struct {
	archive Archive
	live    *timeseries.Reader
}

func (r archivedReader) Range(ctx context.Context, q timeseries.Query) iter.Seq2[timeseries.Sample, error] {
	return r.archive.Union(ctx, r.live, q)
}

func (c seriesRangeCommand) reader(ctx context.Context, series *timeseries.Series) (samplesReader, error) {
	live := series.Reader(timeseries.ReaderOptions{Strong: c.Strong})
	if c.Archive == "" {
		return live, nil
	}
	from, err := openArchive(ctx, c.Archive, logFlags{}.logger(os.Stderr))
	if err != nil {
		return nil, err
	}
	return archivedReader{from, live}, nil
}

// query returns the query of the flags.
func (c seriesRangeCommand) query(now time.Time) (q timeseries.Query, zone *time.Location, err error) {
	if zone, err = readZone(c.Zone); err != nil {
		return q, nil, err
	}
	q = timeseries.Query{Device: c.Device, Metrics: c.Metric, Newest: c.Newest, After: c.After}
	if c.Last > 0 && (c.From != "" || c.Until != "") {
		return q, nil, misused(errors.New("--last cannot be used with --from or --until"), "")
	}
	if q.From, err = readBound("--from", c.From, zone, func() time.Time { return now }); err != nil {
		return q, nil, err
	}
	if q.To, err = readBound("--until", c.Until, zone, func() time.Time { return now }); err != nil {
		return q, nil, err
	}
	if c.Last > 0 {
		q.From = now.Add(-time.Duration(c.Last))
	}
	if !q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From) {
		return q, nil, misused(fmt.Errorf("--until %s is before --from %s", c.Until, c.From), "")
	}
	if c.Every > 0 && c.After != "" {
		return q, nil, misused(errors.New("--after cannot be used with --every"), "use --from instead")
	}
	return q, zone, nil
}

// showSamples prints samples as they are read.
func (c seriesRangeCommand) showSamples(ctx context.Context, s streams, r samplesReader, q timeseries.Query, limit int) error {
	if limit > 0 {
		q.Limit = limit + 1 // one more shows whether the limit cuts the range
	}
	shown := &shownSamples{to: s.out, format: c.Format, columns: c.Metric, left: map[string]bool{}}
	var last timeseries.Sample
	count := 0
	for sample, err := range r.Range(ctx, q) {
		if err != nil {
			return err
		}
		if count++; limit > 0 && count > limit {
			fmt.Fprintf(s.err, "mayfly: more rows follow; raise --limit, or continue with --after %s\n", timeseries.PlaceAfter(q, last))
			break
		}
		last = sample
		if err := shown.add(sample); err != nil {
			return err
		}
	}
	if count == 0 && c.Format == "table" {
		return c.showNone(ctx, s.out, r, q)
	}
	for _, name := range slices.Sorted(maps.Keys(shown.left)) {
		fmt.Fprintf(s.err, "mayfly: %s is missing in the first %d samples and was skipped; show it with --metric\n", name, metricsAhead)
	}
	return shown.end()
}

// showNone says why a range is empty: the device has no samples at all, none with the metrics, or
// none in the range.
func (c seriesRangeCommand) showNone(ctx context.Context, to io.Writer, r samplesReader, q timeseries.Query) error {
	newest := func(q timeseries.Query) (found *timeseries.Sample, err error) {
		q.Limit, q.Newest, q.After = 1, true, ""
		for sample, err := range r.Range(ctx, q) {
			return &sample, err
		}
		return nil, nil
	}
	text := fmt.Sprintf("no samples: device %q has none", q.Device)
	last, err := newest(timeseries.Query{Device: q.Device})
	if err != nil {
		return err
	}
	if last != nil {
		text = "no samples in the range; the device's latest one is of " + last.Time.UTC().Format(time.RFC3339Nano)
		if len(q.Metrics) > 0 {
			wide := q
			wide.Metrics = nil
			in, err := newest(wide)
			if err != nil {
				return err
			}
			if in != nil {
				text = fmt.Sprintf("no samples with %s; the device's latest one in the range has %s", strings.Join(q.Metrics, ", "), strings.Join(metricsOf([]timeseries.Sample{*in}), ", "))
			}
		}
	}
	_, err = fmt.Fprintln(to, text)
	return err
}

// shownSamples prints samples. The columns of a table are the selected metrics, or those of the
// first samples, which are buffered.
type shownSamples struct {
	to      io.Writer
	format  string
	columns []string
	first   []timeseries.Sample
	rows    *rows
	left    map[string]bool // metrics without a column
}

func (x *shownSamples) add(s timeseries.Sample) error {
	switch {
	case x.format == "json":
		return writeJSON(x.to, sampleJSONOf(s))
	case x.rows != nil:
		return x.row(s)
	}
	if x.first = append(x.first, s); len(x.first) < metricsAhead {
		return nil
	}
	return x.begin()
}

func (x *shownSamples) begin() error {
	if len(x.columns) == 0 {
		x.columns = metricsOf(x.first)
	}
	x.rows = newRows(x.to, x.format, append([]string{"timestamp"}, x.columns...))
	for _, s := range x.first {
		if err := x.row(s); err != nil {
			return err
		}
	}
	x.first = nil
	return nil
}

func (x *shownSamples) row(s timeseries.Sample) error {
	for name := range s.Values {
		if !slices.Contains(x.columns, name) {
			x.left[name] = true
		}
	}
	return x.rows.add(append([]string{timeText(s.Time)}, cellsOf(s, x.columns)...))
}

func (x *shownSamples) end() error {
	if x.format == "json" {
		return nil
	}
	if x.rows == nil {
		if err := x.begin(); err != nil {
			return err
		}
	}
	return x.rows.end()
}

// showBuckets prints rollups.
func (c seriesRangeCommand) showBuckets(ctx context.Context, s streams, r samplesReader, q timeseries.Query, zone *time.Location, limit int) error {
	var buckets []timeseries.Bucket
	for b, err := range timeseries.Rollup(r.Range(ctx, q), time.Duration(c.Every), zone) {
		if err != nil {
			return err
		}
		if limit > 0 && len(buckets) == limit {
			fmt.Fprintf(s.err, "mayfly: there are more than %d buckets; raise --limit\n", limit)
			break
		}
		if c.Format == "json" {
			if err := writeJSON(s.out, jsonBucket(b)); err != nil {
				return err
			}
		}
		if buckets = append(buckets, b); len(buckets) > plottedMax {
			return misused(fmt.Errorf("more than %d buckets to draw", plottedMax), "narrow the range, or raise --every")
		}
	}
	switch {
	case c.Format == "json":
		return nil
	case len(buckets) == 0 && c.Format == "table":
		return c.showNone(ctx, s.out, r, q)
	}
	var metrics []string
	for _, b := range buckets {
		for name := range b.Stats {
			if !slices.Contains(metrics, name) {
				metrics = append(metrics, name)
			}
		}
	}
	slices.Sort(metrics)
	heading := []string{"timestamp"}
	for _, m := range metrics {
		heading = append(heading, m+"_count", m+"_min", m+"_max", m+"_mean")
	}
	shown := newRows(s.out, c.Format, heading)
	for _, b := range buckets {
		cells := []string{timeText(b.Start.In(zone))}
		for _, m := range metrics {
			if x, ok := b.Stats[m]; ok {
				cells = append(cells, fmt.Sprint(x.Count), numberText(x.Min), numberText(x.Max), c.meanText(x.Mean))
			} else {
				cells = append(cells, "0", "", "", "")
			}
		}
		if err := shown.add(cells); err != nil {
			return err
		}
	}
	return shown.end()
}

// meanText returns a mean: rounded in a table, exact in a file.
func (c seriesRangeCommand) meanText(v float64) string {
	if c.Format == "table" {
		return fmt.Sprintf("%.4g", v)
	}
	return numberText(v)
}

// timeText returns an instant in its zone, with its full fraction.
func timeText(t time.Time) string { return t.Format(time.RFC3339Nano) }

type sampleJSON struct {
	Device string             `json:"device"`
	Time   string             `json:"time"`
	Values map[string]float64 `json:"values"`
	Tags   map[string]string  `json:"tags,omitempty"`
}

func sampleJSONOf(s timeseries.Sample) sampleJSON {
	return sampleJSON{s.Device, timeText(s.Time), s.Values, s.Tags}
}

func jsonBucket(b timeseries.Bucket) any {
	type stat struct {
		Count int64   `json:"count"`
		Min   float64 `json:"min"`
		Max   float64 `json:"max"`
		Mean  float64 `json:"mean"`
	}
	stats := make(map[string]stat, len(b.Stats))
	for name, x := range b.Stats {
		stats[name] = stat(x)
	}
	return struct {
		Start string          `json:"start"`
		Stats map[string]stat `json:"stats"`
	}{timeText(b.Start), stats}
}

// rows are printed as a table or as CSV.
type rows struct {
	add func(cells []string) error
	end func() error
}

func newRows(to io.Writer, format string, heading []string) *rows {
	if format == "csv" {
		w := csv.NewWriter(to)
		_ = w.Write(heading) // Flush returns the error
		return &rows{w.Write, func() error { w.Flush(); return w.Error() }}
	}
	t := &table{heading: heading}
	return &rows{func(row []string) error { t.add(row...); return nil }, func() error { return t.write(to) }}
}
