package archive

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/timeseries"
)

// ExportOptions configure Export. The zero value is valid.
type ExportOptions struct {
	// From is the first instant, and To the first one after the range. Zero: no bound.
	From, To time.Time
	// Segments is the number of parts of the table that are read concurrently. Default: 4. Range: 1
	// to 100.
	Segments int
	// Rows is the number of samples in memory, about 500 bytes each; more go to sorted files in
	// TempDir, which are merged later. Default: 250,000. Range: 1 to 10,000,000.
	Rows int
	// TempDir is the directory of these files. Default: the machine's directory for temporary
	// files.
	TempDir string
	// Eventual reads may miss the latest writes, at half the cost. Default: strong reads.
	Eventual bool
	// Progress is called from time to time. Default: no calls.
	Progress func(Report)
}

// Report counts the samples of an export.
type Report struct {
	Read    int64 `json:"read"`    // samples in the live table
	Written int64 `json:"written"` // samples in the files
	// samples of Written that only the archive had, because the table no longer has them or the
	// options' range excludes them
	Kept  int64 `json:"kept"`
	Files int64 `json:"files"` // files, one per day
	Done  bool  `json:"-"`     // the table is read
}

const (
	rowsDefault     = 250_000
	rowsMax         = 10_000_000
	bytesPerRow     = 500
	segmentsDefault = 4
	segmentsMax     = 100
	scanBatch       = 500
)

// Export writes the live table's samples to one file per day, and keeps samples that existing files
// have. Repeating it makes the same files. When interrupted, each day's file is complete or as
// before. Exports into one archive must not run concurrently.
func (a *Archive) Export(ctx context.Context, s *timeseries.Series, o ExportOptions) (Report, error) {
	if o.Rows == 0 {
		o.Rows = rowsDefault
	}
	if o.Segments == 0 {
		o.Segments = segmentsDefault
	}
	switch {
	case o.Rows < 1 || o.Rows > rowsMax:
		return Report{}, fmt.Errorf("the option Rows: %d is not between 1 and %d", o.Rows, rowsMax)
	case o.Segments < 1 || o.Segments > segmentsMax:
		return Report{}, fmt.Errorf("the option Segments: %d is not between 1 and %d", o.Segments, segmentsMax)
	case !o.From.IsZero() && !o.To.IsZero() && o.To.Before(o.From):
		return Report{}, fmt.Errorf("the range ends at %s, before it begins at %s", o.To.Format(time.RFC3339Nano), o.From.Format(time.RFC3339Nano))
	}
	days, err := a.files(ctx)
	if err == nil {
		err = a.mixed(days, kindExported)
	}
	if err != nil {
		return Report{}, err
	}
	e := &export{a: a, o: o, metrics: newMetrics(), devices: map[string]string{}, there: days}
	defer e.close()
	if err := e.read(ctx, s); err != nil {
		return e.report, err
	}
	return e.report, e.write(ctx)
}

// export is the state of one Export.
type export struct {
	a       *Archive
	o       ExportOptions
	metrics *metrics
	devices map[string]string // interned names
	there   map[string][]string
	rows    []*row
	bytes   int // of rows, an estimate
	runs    []*run
	report  Report
}

func (e *export) close() {
	for _, r := range e.runs {
		_ = r.close() // its rows are merged or not needed
	}
}

func (e *export) tell() {
	if e.o.Progress != nil {
		e.o.Progress(e.report)
	}
}

// read reads the table.
func (e *export) read(ctx context.Context, s *timeseries.Series) error {
	ctx, cancel := context.WithCancel(ctx)
	batches := make(chan []timeseries.Sample, e.o.Segments)
	failed := make(chan error, e.o.Segments)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	reader := s.Reader(timeseries.ReaderOptions{Strong: !e.o.Eventual})
	for i := range e.o.Segments {
		wait.Go(func() { failed <- scan(ctx, reader.Scan(ctx, i, e.o.Segments), batches) })
	}
	for left := e.o.Segments; left > 0; {
		select {
		case batch := <-batches:
			if err := e.add(batch); err != nil {
				return err
			}
		case err := <-failed:
			if left--; err != nil {
				return err
			}
		}
	}
	for len(batches) > 0 {
		if err := e.add(<-batches); err != nil {
			return err
		}
	}
	e.rows = sortRows(e.rows)
	e.report.Done = true
	return nil
}

// scan sends the samples of a segment in slices.
func scan(ctx context.Context, samples iter.Seq2[timeseries.Sample, error], to chan<- []timeseries.Sample) error {
	var batch []timeseries.Sample
	send := func() error {
		select {
		case to <- batch:
			batch = make([]timeseries.Sample, 0, scanBatch)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for sample, err := range samples {
		if err != nil {
			return err
		}
		if batch = append(batch, sample); len(batch) == scanBatch {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

func (e *export) add(batch []timeseries.Sample) error {
	for i := range batch {
		s := &batch[i]
		e.report.Read++
		if !e.o.From.IsZero() && s.Time.Before(e.o.From) || !e.o.To.IsZero() && !s.Time.Before(e.o.To) {
			continue
		}
		r, err := e.metrics.row(s)
		if err != nil {
			return err
		}
		r.device = e.intern(r.device)
		e.bytes += r.bytes()
		if e.rows = append(e.rows, &r); len(e.rows) >= e.o.Rows || e.bytes >= e.o.Rows*bytesPerRow {
			if err := e.setAside(); err != nil {
				return err
			}
		}
	}
	e.tell()
	return nil
}

const internMax = 100_000

func (e *export) intern(device string) string {
	if known, ok := e.devices[device]; ok {
		return known
	}
	if len(e.devices) < internMax {
		e.devices[device] = strings.Clone(device)
	}
	return device
}

func (e *export) setAside() error {
	r, err := newRun(e.o.TempDir, sortRows(e.rows))
	if err != nil {
		return err
	}
	e.runs, e.rows, e.bytes = append(e.runs, r), e.rows[:0], 0
	clear(e.rows[:cap(e.rows)])
	return nil
}

// write merges the rows and writes the file of each day.
func (e *export) write(ctx context.Context) error {
	sources := []iter.Seq2[*row, error]{fromSlice(e.rows)}
	for _, r := range e.runs {
		sources = append(sources, r.rows())
	}
	next, stop := iter.Pull2(merged(byDay, sources...))
	defer stop()
	r, err, more := next()
	for more && err == nil {
		day := r.day()
		rest := func(yield func(*row, error) bool) { // yields the rows of the day
			for more && err == nil && r.day() == day {
				if !yield(r, nil) {
					return
				}
				r, err, more = next()
			}
			if err != nil {
				yield(nil, err)
			}
		}
		if err := e.day(ctx, day, rest); err != nil {
			return err
		}
	}
	return err
}

// day writes the file of a day, including the rows of the existing file.
func (e *export) day(ctx context.Context, day string, live iter.Seq2[*row, error]) error {
	name := dayDir(day) + exported
	kept, source := int64(0), live
	if slices.Contains(e.there[day], name) {
		if err := e.learn(ctx, name); err != nil {
			return err
		}
		fresh := int64(0)
		counting := func(yield func(*row, error) bool) {
			for r, err := range live {
				if err == nil {
					fresh++
				}
				if !yield(r, err) {
					return
				}
			}
		}
		defer func() { e.report.Kept += kept }()
		source = func(yield func(*row, error) bool) {
			all := int64(0)
			for r, err := range merged(inFile, counting, e.a.read(ctx, name, "", e.metrics)) {
				all++
				if !yield(r, err) {
					return
				}
			}
			kept = all - fresh
		}
	}
	counted := func(yield func(*row, error) bool) {
		for r, err := range source {
			if err == nil {
				if e.report.Written++; e.report.Written%rowsUntilLook == 0 {
					e.tell()
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
	if err := e.a.put(ctx, name, e.metrics.names, counted); err != nil {
		return fmt.Errorf("export the day %s: %w", day, err)
	}
	e.report.Files++
	e.tell()
	return nil
}

// learn reads the metrics of an existing file: the columns must be known before the first row.
func (e *export) learn(ctx context.Context, name string) error {
	file, err := e.a.store.Open(ctx, name)
	if err != nil {
		return fmt.Errorf("read %s in %s: %w", name, e.a.store, err)
	}
	defer file.Close()
	p, err := openParquet(file)
	if err == nil {
		_, err = newLayout(p.Schema(), e.metrics)
	}
	if err != nil {
		return fmt.Errorf("read %s in %s: %w", name, e.a.store, err)
	}
	return nil
}
