package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/exportfile"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Limits of an import.
const (
	filesMax  = 50_000 // as at Amazon
	itemMax   = 400 << 10
	loggedMax = 100 // faults of items in the log, for each import
	loadItems = 8000
	loadBytes = 2 << 20
)

// counts are the results of an import so far.
type counts struct {
	errors, bytes, processed, imported atomic.Int64
}

// Import begins an import: it creates the table, which only descriptions show until the import has
// ended. Tokens are as for Export. Other errors: engine.ErrTableExists, engine.ErrTooManyJobs,
// ErrTooManyJobs.
func (r *Runner) Import(ctx context.Context, req ImportRequest) (*Import, error) {
	r.beginning.Lock()
	defer r.beginning.Unlock()
	i := &Import{ImportRequest: req}
	if err := checkSize(req); err != nil {
		return nil, err
	}
	if f := i.csv(); f != nil {
		if err := f.Check(); err != nil {
			return nil, &RequestError{err}
		}
	}
	asked := req
	asked.Table.API.OnDemandSince = 0 // the present instant
	i.Digest = digest(asked)
	if earlier, err := admit[Import](ctx, r, engine.JobImport, req.Token, i.Digest, ImportsMax); err != nil || earlier != nil {
		return earlier, err
	}
	_, err := r.o.Engine.BeginImport(ctx, req.Table, func(b engine.Begun) json.RawMessage {
		i.ID, i.Status, i.Begun = b.ID, InProgress, b.Now
		i.TableName, i.TableID = b.Table.Name, b.Table.UUID
		return encode(i)
	})
	if err != nil {
		return nil, err
	}
	r.added()
	return i, nil
}

// FindImport returns an import, with its counts so far, or engine.ErrJobNotFound.
func (r *Runner) FindImport(id string) (*Import, error) {
	i, err := find[Import](r, engine.JobImport, id)
	if err == nil && i.Status == InProgress {
		i.count(r.progress(id))
	}
	return i, err
}

// Imports returns all imports of the last 90 days, oldest first, without the counts of those in
// progress.
func (r *Runner) Imports() ([]*Import, error) { return all[Import](r, engine.JobImport) }

func (i *Import) count(c *counts) {
	if c != nil {
		i.Errors, i.ProcessedBytes, i.Processed, i.Imported = c.errors.Load(), c.bytes.Load(), c.processed.Load(), c.imported.Load()
	}
}

// runImport fills a table and writes the import's last row.
func (r *Runner) runImport(ctx context.Context, job *engine.Job, c *counts) error {
	i := read[Import](job)
	t, err := r.o.Engine.TableOf(job)
	if err == nil {
		err = i.damaged()
	}
	if err == nil {
		run := importing{Import: i, counts: c, runner: r, table: t}
		err = run.all(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.o.Logger.Error("an import has failed, and its table is removed", "import", i.ID, "table", i.TableName, "bucket", i.Bucket, "error", err)
	}
	return r.o.Engine.EndImport(ctx, job, t, err == nil, func(now engine.Instant) json.RawMessage {
		i.count(c)
		i.end(now, err)
		if n := i.Errors; err == nil && n > 0 {
			i.FailureCode = "ItemValidationError"
			i.FailureMessage = fmt.Sprintf("Some of the items failed validation checks and were not imported: %d. The server's log names the first %d.", n, min(n, loggedMax))
		}
		return encode(i)
	})
}

// importing is an import that works.
type importing struct {
	*Import
	*counts
	runner *Runner
	table  *engine.Table
}

// all imports all files, two at a time.
func (i *importing) all(ctx context.Context) error {
	store, err := i.runner.o.Bucket(ctx, i.Bucket)
	if err != nil {
		return err
	}
	defer func() { err = hidePlace(err, store, i.Bucket) }()
	source, err := exportfile.Open(ctx, store, i.Prefix, i.format())
	switch {
	case errors.Is(err, exportfile.ErrNoFiles):
		return &fault{"S3NoSuchKey", fmt.Errorf("the bucket %s has no file whose name begins with %q", i.Bucket, i.Prefix)}
	case err != nil:
		return sourceFault(err)
	case source.Summary != nil && source.Summary.ExportType == exportfile.Incremental:
		return &fault{"SourceInvalid", fmt.Errorf("%s is an incremental export; mayfly import applies it to a table that exists", source.Folder)}
	case len(source.Files) > filesMax:
		return &fault{"LimitExceeded", fmt.Errorf("there are %d files; an import reads %d at the most", len(source.Files), filesMax)}
	}
	for _, f := range source.Files { // the client may read no other file
		if !strings.HasPrefix(f.Name, i.Prefix) {
			return &fault{"SourceInvalid", fmt.Errorf("the manifest names %s, which does not begin with the prefix %q", f.Name, i.Prefix)}
		}
	}
	if err := i.table.Clear(); err != nil {
		return err
	}
	err = parallel(ctx, len(source.Files), 2, func(ctx context.Context, n int) error {
		f := loader{importing: i, d: i.table.Desc()}
		contents, err := source.Read(ctx, source.Files[n], func(rec exportfile.Record) error { return f.add(source.Files[n], rec) })
		if err != nil {
			return err
		}
		i.counts.bytes.Add(contents.Bytes - f.read) // of faulty records too
		return f.flush()
	})
	return sourceFault(err)
}

// sourceFault marks a fault of the files.
func sourceFault(err error) error {
	_, damaged := errors.AsType[*exportfile.Error](err)
	_, several := errors.AsType[*exportfile.SeveralError](err)
	_, unfinished := errors.AsType[*exportfile.UnfinishedError](err)
	switch {
	case damaged:
		return &fault{"SourceDamaged", err}
	case several, unfinished:
		return &fault{"SourceInvalid", err}
	}
	return err
}

// format returns how the files are to be read.
func (i *importing) format() exportfile.Format {
	f := exportfile.Format{Compression: i.Compression, Bad: func(bad *exportfile.Error) error {
		i.processed.Add(1)
		i.bad(bad)
		return nil
	}}
	f.CSV, f.FilesMax = i.csv(), filesMax
	return f
}

// csv returns the settings of CSV, or nil for another format.
func (i *Import) csv() *exportfile.CSV {
	if i.Format != "CSV" {
		return nil
	}
	types, keys := kinds(&i.Table)
	f := &exportfile.CSV{Delimiter: ',', Header: i.Header, Types: types, Keys: keys}
	if i.Delimiter != "" {
		f.Delimiter = []rune(i.Delimiter)[0]
	}
	return f
}

// bad records the fault of an item.
func (i *importing) bad(fault *exportfile.Error) {
	if i.errors.Add(1) <= loggedMax {
		i.runner.o.Logger.Warn("an item was not imported", "import", i.ID, "table", i.TableName, "file", fault.File, "line", fault.Line, "error", fault.Err)
	}
}

// loader loads the items of one file.
type loader struct {
	*importing
	d     *engine.TableDesc
	json  dynamo.JSON
	items []engine.Loaded
	bytes int   // of items
	read  int64 // of the records that were counted
}

// add adds a record, or counts its fault.
func (l *loader) add(f exportfile.File, rec exportfile.Record) error {
	l.processed.Add(1)
	l.importing.counts.bytes.Add(int64(rec.Size))
	l.read += int64(rec.Size)
	item, err := l.item(rec.Item)
	if err != nil {
		l.bad(&exportfile.Error{File: f.Name, Line: rec.Line, Err: err})
		return nil
	}
	l.items = append(l.items, item)
	if l.bytes += len(item.Item); len(l.items) < loadItems && l.bytes < loadBytes {
		return nil
	}
	return l.flush()
}

// item reads and checks an item.
func (l *loader) item(text []byte) (engine.Loaded, error) {
	l.json.Reset(text)
	out, invalid, err := l.json.AppendItem(make([]byte, 0, len(text)))
	if err == nil {
		err = l.json.End()
	}
	switch {
	case err != nil:
		return engine.Loaded{}, err
	case invalid != nil:
		return engine.Loaded{}, invalid
	}
	item := dynamo.Item(out)
	if size := item.Size(); size > itemMax {
		return engine.Loaded{}, fmt.Errorf("the item has %d bytes; the limit is %d", size, itemMax)
	}
	return l.d.LoadedOf(item)
}

// flush loads the items so far.
func (l *loader) flush() error {
	if len(l.items) == 0 {
		return nil
	}
	if err := l.table.Load(l.items); err != nil {
		return err
	}
	l.imported.Add(int64(len(l.items)))
	l.items, l.bytes = l.items[:0], 0
	return nil
}

// parallel calls f for each number below n, at most so many at a time, until one fails. It returns the
// first error, when all calls have ended.
func parallel(ctx context.Context, n, most int, f func(ctx context.Context, i int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var working sync.WaitGroup
	for range min(n, most) {
		working.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					stop(err)
				}
			}
		})
	}
	working.Wait()
	return context.Cause(ctx)
}
