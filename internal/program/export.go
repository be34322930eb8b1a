package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/exportfile"
	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

type exportCommand struct {
	Table      string `help:"Table to export." required:"" placeholder:"NAME"`
	To         string `help:"Directory or s3://bucket/prefix. The export is a folder below AWSDynamoDB in it." required:"" placeholder:"DIR"`
	Consistent bool   `help:"Read with strong consistency, at twice the cost."`
	FileMB     int    `name:"file-mb" help:"Most megabytes of JSON in a data file, before it is compressed. A killed export loses at most one file of each segment." default:"64"`
	transferFlags
	endpointFlags
	logFlags
}

func (exportCommand) Help() string {
	return `Examples:

    mayfly export --table orders --to /data/exports
    mayfly export --endpoint aws --table orders --to s3://backup/orders --rate 5000

It writes the files that Amazon's export of a table to S3 writes, in DynamoDB JSON and gzip, and table.json, with which mayfly import creates the
table. It reads the table as it changes: the export has each item as it was at some time during the run. Repeated after an interruption, it continues.`
}

// exportRun identifies a half-finished export. It is kept in the export's folder.
type exportRun struct {
	ID       string    `json:"id"`
	TableARN string    `json:"table_arn"`
	TableID  string    `json:"table_id"`
	Segments int       `json:"segments"`
	Begun    time.Time `json:"begun"`
}

// exportSegment is the state of a segment.
type exportSegment struct {
	Done  bool                  `json:"done"`
	After json.RawMessage       `json:"after,omitempty"` // the key behind which it continues
	Files []exportfile.DataFile `json:"files"`
}

// Names in an export's folder while it runs.
const (
	exportProgress = "progress/"
	exportRunName  = exportProgress + "run.json"
)

// exporting is a running export.
type exporting struct {
	exportCommand
	exportRun
	store    objects.Store
	writer   *exportfile.Writer
	scan     transfer.Scan
	count    *transferred
	segments []exportSegment
}

// Run exports a table.
func (c exportCommand) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.FileMB < 1 || c.FileMB > 4096 {
		return misused(fmt.Errorf("--file-mb %d is not between 1 and 4096", c.FileMB), "for example --file-mb 64")
	}
	if err := needObjects(c.To); err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	e.widen(c.Segments)
	side := c.side(e, c.Table, c.Rate)
	table, err := side.Describe(ctx)
	if err != nil {
		return e.adviseTable(err, c.Table)
	}
	store, bucket, prefix, err := openPlace(ctx, c.To, c.logger(s.err))
	if err != nil {
		return misused(err, "mayfly export --help")
	}
	x := &exporting{exportCommand: c, store: store, scan: transfer.Scan{Side: side, Segments: c.Segments, Consistent: c.Consistent}}
	x.count = newTransferred(s.err, "exported", table.Items)
	if err := x.begin(ctx, table, bucket, prefix); err != nil {
		return err
	}
	err = transfer.Parallel(ctx, c.Segments, c.Segments, x.segment)
	x.count.clear()
	if err != nil {
		return x.count.stopped(ctx, e, err)
	}
	files, err := x.finish(ctx, table)
	if err != nil {
		return x.count.stopped(ctx, e, err)
	}
	folder := joinPlace(c.To, exportfile.Folder(x.ID))
	text := fmt.Sprintf("exported %s in %s to %s", counted(int(x.count.all()), "item"), counted(files, "file"), folder)
	return x.count.report(s, c.JSON, transferReport{Table: c.Table, Files: files, Folder: folder}, text)
}

// begin continues the half-finished export in the store, or begins one.
func (x *exporting) begin(ctx context.Context, table transfer.Described, bucket, prefix string) error {
	x.exportRun = exportRun{TableARN: table.ARN, TableID: table.ID, Segments: x.exportCommand.Segments, Begun: time.Now()}
	x.exportRun.ID = exportfile.NewID(x.Begun)
	x.segments = make([]exportSegment, x.exportRun.Segments)
	found, err := x.find(ctx)
	if err != nil {
		return err
	}
	x.writer = exportfile.NewWriter(x.store, x.ID, bucket, prefix)
	if found {
		return x.load(ctx)
	}
	text, err := json.MarshalIndent(table.Table, "", "  ")
	if err != nil {
		return err
	}
	if err := x.writer.Begin(ctx, append(text, '\n')); err != nil {
		return err
	}
	return x.put(ctx, exportRunName, x.exportRun)
}

func (x *exporting) put(ctx context.Context, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return x.writer.Put(ctx, name, text)
}

// find looks for a half-finished export, and reports whether it is one of this table. A half-finished
// export of another table, or with other segments, is an error.
func (x *exporting) find(ctx context.Context) (bool, error) {
	names, err := x.store.List(ctx, exportfile.Folder(""))
	if err != nil {
		return false, err
	}
	for _, name := range names {
		folder, found := strings.CutSuffix(name, "/"+exportRunName)
		if !found {
			continue
		}
		text, err := readObject(ctx, x.store, name, 1<<20)
		if err != nil {
			return false, err
		}
		var run exportRun
		place := joinPlace(x.To, folder)
		anew := fmt.Sprintf("remove %s to begin anew, or use another --to", place)
		if err := json.Unmarshal(text, &run); err != nil {
			return false, advise(fmt.Errorf("%s: %w", joinPlace(x.To, name), err), "%s", anew)
		}
		switch {
		case run.TableARN != x.TableARN:
			return false, advise(fmt.Errorf("%s is a half-finished export of another table, %s", place, run.TableARN), "finish it with its own command, %s", anew)
		case run.TableID != x.TableID:
			return false, advise(fmt.Errorf("%s is a half-finished export of an earlier table %q, which was deleted", place, x.Table), "%s", anew)
		case run.Segments != x.exportRun.Segments:
			return false, advise(fmt.Errorf("%s is a half-finished export with --segments %d, not %d", place, run.Segments, x.exportRun.Segments), "finish it with --segments %d, %s", run.Segments, anew)
		case run.ID != path.Base(folder):
			return false, advise(fmt.Errorf("%s belongs to the export %q", joinPlace(x.To, name), run.ID), "%s", anew)
		}
		x.exportRun = run
		return true, nil
	}
	return false, nil
}

func segmentName(n int) string { return fmt.Sprintf("%ssegment-%04d.json", exportProgress, n) }

// load reads the states of the segments of a half-finished export.
func (x *exporting) load(ctx context.Context) error {
	for n := range x.segments {
		name := path.Join(exportfile.Folder(x.ID), segmentName(n))
		text, err := readObject(ctx, x.store, name, progressMax)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(text, &x.segments[n])
		}
		if err != nil {
			return advise(fmt.Errorf("%s: %w", joinPlace(x.To, name), err), "remove %s to begin anew", joinPlace(x.To, exportfile.Folder(x.ID)))
		}
		for _, f := range x.segments[n].Files {
			x.count.before += f.ItemCount
		}
	}
	return nil
}

// errFileFull ends a data file.
var errFileFull = errors.New("the data file is full")

// errNothing is the error of a data file that would have no item.
var errNothing = errors.New("there is no item")

// segment exports the rest of a segment.
func (x *exporting) segment(ctx context.Context, n int) error {
	for state := &x.segments[n]; !state.Done; {
		if err := x.file(ctx, n, state); err != nil {
			return err
		}
	}
	return nil
}

// file exports a data file's worth of a segment. If the scan fails or is interrupted, the file has the
// pages before, and the error is returned when its position is saved.
func (x *exporting) file(ctx context.Context, n int, state *exportSegment) error {
	start, err := transfer.ReadKey(state.After)
	if err != nil {
		return err
	}
	var failed error
	next, done := start, false
	kept := context.WithoutCancel(ctx)
	file, err := x.writer.Data(kept, fmt.Sprintf("%04d-%06d", n, len(state.Files)), func(add func([]byte) error) error {
		var line []byte
		size, items := 0, 0
		var broken error // of the file
		failed = x.scan.Segment(ctx, n, start, func(page []attr.Item, behind attr.Item) error {
			for _, item := range page {
				line = transfer.AppendItem(append(line[:0], exportfile.ItemBegin...), item)
				line = append(line, exportfile.ItemEnd...)
				size += len(line)
				if broken = add(line); broken != nil {
					return broken
				}
			}
			items += len(page)
			x.count.add(len(page))
			if next, done = behind, behind == nil; !done && size >= x.FileMB<<20 {
				return errFileFull
			}
			return nil
		})
		switch {
		case broken != nil:
			return broken
		case items == 0:
			return errNothing
		}
		return nil
	})
	if errors.Is(failed, errFileFull) {
		failed = nil
	}
	switch {
	case err == nil:
		state.Files = append(state.Files, file)
	case !errors.Is(err, errNothing):
		return err
	}
	if state.Done = done; !done && next != nil {
		state.After = transfer.AppendItem(nil, next)
	}
	if err := x.put(kept, segmentName(n), state); err != nil {
		return err
	}
	return failed
}

// finish writes the manifests and removes the progress.
func (x *exporting) finish(ctx context.Context, table transfer.Described) (files int, err error) {
	var all []exportfile.DataFile
	for _, s := range x.segments {
		all = append(all, s.Files...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].DataFileS3Key < all[j].DataFileS3Key })
	summary := exportfile.Summary{TableARN: table.ARN, TableID: table.ID, BilledSizeBytes: table.Size}
	if _, err := x.writer.Finish(ctx, summary, all, x.Begun, time.Now()); err != nil {
		return 0, err
	}
	// Without run.json, the first that goes, the export is no longer half-finished.
	gone := []string{exportRunName}
	for n := range x.segments {
		gone = append(gone, segmentName(n))
	}
	for _, name := range gone {
		if err := x.store.Remove(ctx, path.Join(exportfile.Folder(x.ID), name)); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}
