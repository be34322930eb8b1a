package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"sort"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/exportfile"
	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Export begins an export. With the token of an earlier request it returns that one's export, or
// ErrTokenConflict if that request was another one. Other errors: engine.ErrTableNotFound,
// engine.ErrTableCreating, engine.ErrNoHistory, engine.ErrRestoreInstant, engine.ErrTooManyJobs,
// ErrTooManyJobs.
func (r *Runner) Export(ctx context.Context, req ExportRequest) (*Export, error) {
	r.beginning.Lock()
	defer r.beginning.Unlock()
	e := &Export{ExportRequest: req}
	if err := checkSize(req); err != nil {
		return nil, err
	}
	e.Digest = digest(req)
	if earlier, err := admit[Export](ctx, r, engine.JobExport, req.Token, e.Digest, ExportsMax); err != nil || earlier != nil {
		return earlier, err
	}
	since, at := engine.Never, req.At
	if req.Incremental {
		since = req.From
		if at != engine.Never {
			at-- // the end is exclusive
		}
	}
	_, err := r.o.Engine.BeginExport(ctx, r.o.Namespace, req.Table, since, at, func(b engine.Begun) json.RawMessage {
		e.ID, e.Status, e.Begun = b.ID, InProgress, b.Now
		e.TableName, e.TableID = b.Table.Name, b.Table.UUID
		if e.At = b.At; req.Incremental {
			e.At++
		}
		return encode(e)
	})
	if err != nil {
		return nil, err
	}
	r.added()
	return e, nil
}

// FindExport returns an export, or engine.ErrJobNotFound.
func (r *Runner) FindExport(id string) (*Export, error) {
	return find[Export](r, engine.JobExport, id)
}

// Exports returns all exports of the last 90 days, oldest first.
func (r *Runner) Exports() ([]*Export, error) { return all[Export](r, engine.JobExport) }

// runExport writes an export and its last row.
func (r *Runner) runExport(ctx context.Context, job *engine.Job, _ *counts) error {
	e := read[Export](job)
	failed := e.damaged()
	if failed == nil {
		failed = r.export(ctx, job, e)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed != nil {
		r.o.Logger.Error("an export has failed", "export", e.ID, "table", e.TableName, "bucket", e.Bucket, "error", failed)
	}
	return r.o.Engine.EndExport(ctx, job, func(now engine.Instant) json.RawMessage {
		e.end(now, failed)
		return encode(e)
	})
}

// export writes the files of an export, and sets its results.
func (r *Runner) export(ctx context.Context, job *engine.Job, e *Export) (err error) {
	store, err := r.o.Bucket(ctx, e.Bucket)
	if err != nil {
		return err
	}
	defer func() { err = hidePlace(err, store, e.Bucket) }()
	last := e.At
	if e.Incremental {
		last--
	}
	x, err := r.o.Engine.OpenExport(job, last)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	w := exportfile.NewWriter(objects.Below(store, e.Prefix), e.ID, e.Bucket, e.Prefix)
	w.Incremental = e.Incremental
	defer func() {
		if err != nil && ctx.Err() == nil {
			err = errors.Join(err, w.Abandon(ctx))
		}
	}()
	if err := w.Begin(ctx, definition(x.Table())); err != nil {
		return err
	}
	var files []exportfile.DataFile
	if e.Incremental {
		files, err = e.changes(ctx, w, x)
	} else {
		files, err = e.items(ctx, w, x)
	}
	if err != nil {
		return err
	}
	s, err := w.Finish(ctx, e.summary(r.o.TableARN(e.TableName)), files, e.Begun.Time(), r.o.Engine.Now().Time())
	e.Items, e.Manifest = s.ItemCount, path.Join(e.Prefix, exportfile.Folder(e.ID), "manifest-summary.json")
	return err
}

// summary returns what the manifest says of the request.
func (e *Export) summary(arn string) exportfile.Summary {
	s := exportfile.Summary{TableARN: arn, TableID: e.TableID, BilledSizeBytes: e.Bytes}
	optional := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	s.S3SSEAlgorithm, s.S3SSEKMSKeyID = optional(e.Algorithm), optional(e.KMSKey)
	if !e.Incremental {
		s.ExportTime = exportfile.Time(e.At.Time())
		return s
	}
	s.OutputView = exportfile.NewImage
	s.ExportFromTime, s.ExportToTime = exportfile.Time(e.From.Time()), exportfile.Time(e.At.Time())
	if e.OldImages {
		s.OutputView = exportfile.NewAndOldImages
	}
	return s
}

// parts is the number of data files of a full export. Imports read them in parallel.
const parts = 4

// errEmpty keeps a data file without items from being written.
var errEmpty = errors.New("there is no item")

// items writes the data files of a full export, two at a time.
func (e *Export) items(ctx context.Context, w *exportfile.Writer, x *engine.Exporter) (files []exportfile.DataFile, err error) {
	var mu sync.Mutex
	err = parallel(ctx, parts, 2, func(ctx context.Context, part int) error {
		var bytes int64
		f, err := w.Data(ctx, fmt.Sprintf("%04d", part), func(add func([]byte) error) error {
			var line []byte
			err := x.Items(ctx, part, parts, func(item dynamo.Item, size int) error {
				bytes += int64(size)
				line = dynamo.AppendItemJSON(append(line[:0], exportfile.ItemBegin...), item)
				line = append(line, exportfile.ItemEnd...)
				return add(line)
			})
			if err == nil && bytes == 0 {
				err = errEmpty
			}
			return err
		})
		if errors.Is(err, errEmpty) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		files, e.Bytes = append(files, f), e.Bytes+bytes
		return err
	})
	sort.Slice(files, func(i, j int) bool { return files[i].DataFileS3Key < files[j].DataFileS3Key })
	return files, err
}

// changes writes the data file of an incremental export.
func (e *Export) changes(ctx context.Context, w *exportfile.Writer, x *engine.Exporter) ([]exportfile.DataFile, error) {
	records := 0
	f, err := w.Data(ctx, "0000", func(add func([]byte) error) error {
		var line []byte
		err := x.Changes(ctx, e.From, func(c engine.Change) error {
			records++
			line = e.appendChange(line[:0], c)
			e.Bytes += int64(c.Key.Size() + c.New.Size() + c.Old.Size())
			return add(line)
		})
		if err == nil && records == 0 {
			err = errEmpty
		}
		return err
	})
	if errors.Is(err, errEmpty) {
		return nil, nil
	}
	return []exportfile.DataFile{f}, err
}

// appendChange appends the record of a change as JSON, as in Amazon's incremental exports.
func (e *Export) appendChange(dst []byte, c engine.Change) []byte {
	micros := time.UnixMilli(int64(c.At)).UnixMicro()
	dst = fmt.Appendf(dst, `{"Metadata":{"WriteTimestampMicros":{"N":"%d"}},"Keys":`, micros)
	dst = dynamo.AppendItemJSON(dst, c.Key)
	if e.OldImages && c.Old != nil {
		dst = dynamo.AppendItemJSON(append(dst, `,"OldImage":`...), c.Old)
	}
	if c.New != nil {
		dst = dynamo.AppendItemJSON(append(dst, `,"NewImage":`...), c.New)
	}
	return append(dst, '}')
}
