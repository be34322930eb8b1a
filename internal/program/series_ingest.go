package program

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/timeseries"
)

type seriesIngestCommand struct {
	seriesFlags
	Files         []string          `arg:"" optional:"" help:"Files to read, plain or gzip (.gz); - for standard input."`
	From          string            `help:"Broker to read instead of files: nats://host:4222/STREAM, kafka://host:9092/TOPIC, kinesis://STREAM, or a YAML file of settings; see docs/time-series.md." placeholder:"URL"`
	UntilCaughtUp bool              `help:"With --from: end when nothing is left to read. Default: run until stopped."`
	Lease         time.Duration     `help:"With --from: time after which the leases, session and messages of a dead process are taken over." default:"10s"`
	Format        timeseries.Format `help:"Format: csv, ndjson or influx. Default: from the file name; with --from, ndjson." enum:"csv,ndjson,influx," default:"" placeholder:"FORMAT"`
	Device        string            `help:"Column, field or tag with the device. Default: the first of deviceId, device, sensor, station, host, id, name and similar." placeholder:"NAME"`
	As            string            `help:"Device of all readings." placeholder:"DEVICE"`
	Time          string            `help:"Column or field with the time. Default: the first of timestamp, time, date and similar." placeholder:"NAME"`
	Metrics       []string          `help:"Metrics to read; the others are ignored. Default: all numbers." placeholder:"NAME,…"`
	Tags          []string          `help:"Columns and fields to keep as text even if they look like numbers." placeholder:"NAME,…"`
	Measurement   bool              `help:"Line protocol: prefix field names with the measurement, as in cpu_idle."`
	TimeFormat    string            `help:"Format of times: auto, s, ms, us, ns, or a Go layout such as '02.01.2006 15:04'. Default: auto; with influx, ns." placeholder:"FORMAT"`
	Zone          string            `help:"Time zone of times without one." default:"UTC"`
	Comma         string            `help:"Separator of CSV values. Default: a comma, or a tab in .tsv." placeholder:"CHARACTER"`
	Header        []string          `help:"Names of the CSV columns. Default: the first line." placeholder:"NAME,…"`
	Rejects       string            `help:"File for unusable lines. Default: the name of the file, stream or topic, and .rejects." placeholder:"FILE"`
	Checkpoint    string            `help:"Name of the checkpoint; with --from, of the durable consumer, consumer group or leases. Default: the file's path; with --from, mayfly- and the series." placeholder:"NAME"`
	Restart       bool              `help:"Ignore the checkpoint and begin at the start."`
	Parallel      int               `help:"Parallel calls." default:"32"`
	JSON          bool              `name:"json" help:"Print the report as JSON, one line a file."`
	logFlags
}

func (seriesIngestCommand) Help() string {
	return `Examples:

    mayfly series ingest weather readings.csv
    mayfly series ingest weather hourly.csv.gz --as seattle --zone America/Los_Angeles
    mayfly series ingest weather metrics.lp --device host
    zcat old.ndjson.gz | mayfly series ingest weather --format ndjson -
    mayfly series ingest weather --from nats://127.0.0.1:4222/READINGS
    mayfly series ingest weather --from kafka://127.0.0.1:9092/readings --format csv --header device,time,temperature
    mayfly series ingest weather --from kinesis://readings --until-caught-up

An unusable line goes to the rejects file with its number and the reason; the others are stored. Stopped and started again, it continues.`
}

// Run ingests the files one by one.
func (c seriesIngestCommand) Run(ctx context.Context, s streams) error {
	mapping, err := c.mapping()
	if err != nil {
		return err
	}
	if c.From != "" {
		return c.fromBroker(ctx, s, mapping)
	}
	if len(c.Files) == 0 || c.UntilCaughtUp {
		return misused(errors.New("nothing to read: give files, or --from a broker (--until-caught-up works only with --from)"), "mayfly series ingest --help")
	}
	if len(c.Files) > 1 && (c.Rejects != "" || c.Checkpoint != "") {
		return misused(errors.New("--rejects and --checkpoint work with one file only"), "drop them, or give one file")
	}
	e, series, err := c.openSeries(ctx)
	if err != nil {
		return err
	}
	w, err := c.writer(ctx, e, series)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, name := range c.Files {
		if err := c.file(ctx, s, e, w, name, mapping); err != nil {
			return err
		}
	}
	return nil
}

// writer returns a writer with the options of the flags.
func (c seriesIngestCommand) writer(ctx context.Context, e *endpoint, series *timeseries.Series) (*timeseries.Writer, error) {
	o := timeseries.WriterOptions{Parallel: c.Parallel}
	if e.isMayfly(ctx) {
		o.ShardRate = -1 // a server of one process has no partitions
	}
	w, err := series.Writer(ctx, o)
	if err != nil {
		return nil, misused(err, "")
	}
	return w, nil
}

func (c seriesIngestCommand) mapping() (m timeseries.Mapping, err error) {
	m = timeseries.Mapping{
		Device: c.Device, As: c.As, Time: c.Time, Metrics: c.Metrics, Tags: c.Tags, Measurement: c.Measurement, TimeFormat: timeseries.TimeFormat(c.TimeFormat), Header: c.Header,
	}
	if m.Zone, err = time.LoadLocation(c.Zone); err != nil {
		return m, misused(fmt.Errorf("--zone: unknown time zone %q; use a name such as Europe/Berlin", c.Zone), "mayfly series ingest --help")
	}
	if c.Comma == `\t` || c.Comma == "tab" {
		c.Comma = "\t"
	}
	if c.Comma != "" {
		r, n := utf8.DecodeRuneInString(c.Comma)
		if n != len(c.Comma) {
			return m, misused(fmt.Errorf("--comma: %q is not a single character", c.Comma), "mayfly series ingest --help")
		}
		m.Comma = r
	}
	return m, nil
}

// file ingests one file.
func (c seriesIngestCommand) file(ctx context.Context, s streams, e *endpoint, w *timeseries.Writer, name string, m timeseries.Mapping) error {
	from, err := openIngested(name)
	if err != nil {
		return err
	}
	defer from.Close()
	format := c.Format
	if format == "" {
		format = timeseries.FormatOf(name)
	}
	if format == "" {
		return misused(fmt.Errorf("cannot tell the format of %s from its name", name), "set --format csv, ndjson or influx")
	}
	if m.Comma == 0 && strings.HasSuffix(strings.TrimSuffix(strings.ToLower(name), ".gz"), ".tsv") {
		m.Comma = '\t'
	}
	rejects := &rejectsFile{path: c.Rejects}
	if rejects.path == "" {
		if rejects.path = name + ".rejects"; name == "-" {
			rejects.path = "stdin.rejects"
		}
	}
	defer rejects.Close()
	p := newProgress(s.err)
	report, err := timeseries.Ingest(ctx, w, from, timeseries.IngestOptions{
		Format: format, Mapping: m, Checkpoint: c.checkpointName(name), Restart: c.Restart, Rejects: rejects,
		Progress: func(r timeseries.Report) { p.show(from.read.Load(), from.size, ingestText(p, name, r)) },
	})
	p.clear()
	if c.JSON {
		if err := json.NewEncoder(s.out).Encode(struct {
			File string `json:"file"`
			timeseries.Report
		}{name, report}); err != nil {
			return err
		}
	} else if report.Lines > 0 {
		c.print(s, name, report, rejects, p.took())
	}
	switch {
	case err == nil:
		return rejects.Close()
	case ctx.Err() != nil:
		return advise(fmt.Errorf("interrupted at line %d of %s", report.Lines, name), "run it again to continue from its checkpoint")
	case errors.Is(err, timeseries.ErrMapping):
		return misused(fmt.Errorf("%s: %w", name, err), "set --device (or --as NAME for all readings) and --time")
	}
	return fmt.Errorf("%s: %w", name, e.adviseSeries(err, c.Name))
}

// ingestText returns the text about an ingest in progress.
func ingestText(p *progress, name string, r timeseries.Report) string {
	rate := p.perSecond(r.Lines - r.Resumed)
	return fmt.Sprintf("%s: %d samples, %d rejected, %.0f/s", name, r.Written, r.Rejected, rate)
}

// checkpointName returns the name under which the position in the file is stored. Standard input
// has none, unless --checkpoint names it.
func (c seriesIngestCommand) checkpointName(name string) string {
	if c.Checkpoint != "" || name == "-" {
		return c.Checkpoint
	}
	if path, err := filepath.Abs(name); err == nil {
		return path
	}
	return name
}

func (c seriesIngestCommand) print(s streams, name string, r timeseries.Report, rejects *rejectsFile, took time.Duration) {
	if r.Resumed > 0 && r.Resumed == r.Lines {
		fmt.Fprintf(s.out, "%s: nothing new after line %d; earlier runs wrote %s\n", name, r.Resumed, counted(int(r.Written), "sample"))
		return
	}
	if r.Resumed > 0 {
		fmt.Fprintf(s.out, "%s: continued after line %d; earlier runs wrote %s\n", name, r.Resumed, counted(int(r.ResumedWritten), "sample"))
	}
	fmt.Fprintf(s.out, "%s: %s written of %s, in %s\n", name, counted(int(r.Written-r.ResumedWritten), "sample"), counted(int(r.Lines-r.Resumed), "line"), took)
	c.printDetails(s, r, rejects.path)
}

// printDetails prints the remaining details of a report.
func (c seriesIngestCommand) printDetails(s streams, r timeseries.Report, rejects string) {
	if r.OutOfOrder > 0 {
		fmt.Fprintf(s.out, "%d were out of order and are sorted now\n", r.OutOfOrder)
	}
	for _, unknown := range slices.Sorted(maps.Keys(r.Unknown)) {
		fmt.Fprintf(s.out, "%d values of %q were skipped\n", r.Unknown[unknown], unknown)
	}
	if r.Rejected == 0 {
		return
	}
	fmt.Fprintf(s.out, "put aside %s in %s:\n", counted(int(r.Rejected), "line"), rejects)
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		fmt.Fprintf(s.out, "  %d %s\n", r.Reasons[reason], reason)
	}
	for _, x := range r.First {
		at := fmt.Sprintf("line %d", x.Line)
		if x.From != "" {
			at = oneLine(x.From) + " " + at
		}
		fmt.Fprintf(s.out, "  %s: %s\n", at, oneLine(x.Message))
	}
	if int(r.Rejected) > len(r.First) {
		fmt.Fprintf(s.out, "  and %d more\n", int(r.Rejected)-len(r.First))
	}
}

// ingested is a file, unpacked if necessary, that counts the bytes read.
type ingested struct {
	io.Reader
	file io.ReadCloser
	size int64 // bytes; 0: unknown
	read atomic.Int64
}

func openIngested(name string) (in *ingested, err error) {
	in = &ingested{}
	if in.file, in.size, err = openInput(name); err != nil {
		return nil, err
	}
	in.Reader = countedReader{in}
	if strings.HasSuffix(strings.ToLower(name), ".gz") {
		z, err := gzip.NewReader(in.Reader)
		if err != nil {
			in.file.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		in.Reader = z
	}
	return in, nil
}

func (in *ingested) Close() error { return in.file.Close() }

type countedReader struct{ in *ingested }

func (r countedReader) Read(b []byte) (int, error) {
	n, err := r.in.file.Read(b)
	r.in.read.Add(int64(n))
	return n, err
}

// rejectsFile creates its file at the first rejected line. It appends, also while another process
// writes to the file.
type rejectsFile struct {
	path string
	file *os.File
}

func (r *rejectsFile) open() (err error) {
	if r.file == nil {
		r.file, err = os.OpenFile(r.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	}
	return err
}

func (r *rejectsFile) Write(b []byte) (int, error) {
	if err := r.open(); err != nil {
		return 0, err
	}
	return r.file.Write(b)
}

// Truncate cuts the file. If another process removed or cut it, writing continues at its present
// end.
func (r *rejectsFile) Truncate(size int64) error {
	info, err := os.Stat(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = r.open()
	}
	if err != nil || !info.Mode().IsRegular() { // a device such as /dev/null has no size
		return err
	}
	return r.file.Truncate(min(size, info.Size()))
}

func (r *rejectsFile) Seek(int64, int) (int64, error) {
	if r.file == nil {
		return 0, nil
	}
	if info, err := r.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	return r.file.Seek(0, io.SeekEnd)
}

// Close removes the file if it is empty. A device or a pipe stays.
func (r *rejectsFile) Close() error {
	if r.file == nil {
		return nil
	}
	info, err := r.file.Stat()
	if err = errors.Join(err, r.file.Close()); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		err = os.Remove(r.path)
	}
	r.file = nil
	return err
}
