package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// read returns the rows of a file; with a device only its rows, from row groups that may have some.
// It numbers the metrics in m.
func (a *Archive) read(ctx context.Context, name, device string, m *metrics) iter.Seq2[*row, error] {
	return func(yield func(*row, error) bool) {
		fail := func(err error) { yield(nil, fmt.Errorf("read %s in %s: %w", name, a.store, err)) }
		file, err := a.store.Open(ctx, name)
		if err != nil {
			fail(err)
			return
		}
		defer file.Close()
		p, err := openParquet(file)
		if err != nil {
			fail(err)
			return
		}
		l, err := newLayout(p.Schema(), m)
		if err != nil {
			fail(err)
			return
		}
		for i, group := range p.RowGroups() {
			meta := &p.Metadata().RowGroups[i]
			if device != "" && !mayHold(&meta.Columns[l.device].MetaData.Statistics, device) {
				continue
			}
			if err := checkGroup(ctx, file, meta, l.optional); err != nil {
				fail(err)
				return
			}
			for r, err := range l.rows(group, meta.NumRows) {
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					fail(err)
					return
				}
				if (device == "" || r.device == device) && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// mayHold reports whether a column with these statistics may contain a text.
func mayHold(bounds *format.Statistics, text string) bool {
	if len(bounds.MinValue) == 0 || len(bounds.MaxValue) == 0 {
		return true // the writer stored no statistics
	}
	low, high := string(bounds.MinValue), string(bounds.MaxValue)
	// A bound may be truncated: then the greatest is a prefix of the true one, or above it.
	return low <= text && (text <= high || strings.HasPrefix(text, high))
}

// layout maps a file's columns to the parts of a sample.
type layout struct {
	device, key, tags int
	metric            map[int]int // metric number by column
	optional          []bool      // by column: values may be missing
}

func newLayout(schema *parquet.Schema, m *metrics) (l layout, err error) {
	defer broken(&err) // the library panics for some valid schemas
	l = layout{device: -1, key: -1, tags: -1, metric: map[int]int{}}
	for i, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		kind := leaf.Node.Type().Kind()
		l.optional = append(l.optional, leaf.MaxDefinitionLevel > 0)
		switch name := path[0]; {
		case len(path) != 1 || leaf.MaxRepetitionLevel > 0:
			return l, fmt.Errorf("the column %q is nested: mayfly did not write this file", strings.Join(path, "."))
		case name == columnDevice && kind == parquet.ByteArray:
			l.device = i
		case name == columnKey && kind == parquet.ByteArray:
			l.key = i
		case name == columnMetadata && kind == parquet.ByteArray:
			l.tags = i
		case name == columnTime: // the key has nanoseconds
		case kind == parquet.Double:
			if l.metric[i], err = m.of(name); err != nil {
				return l, err
			}
		}
	}
	if l.device < 0 || l.key < 0 {
		return l, errors.New("the columns deviceId and sample_key are missing: mayfly did not write this file")
	}
	return l, nil
}

// rows returns the rows of a row group with this many rows.
func (l *layout) rows(group parquet.RowGroup, left int64) iter.Seq2[*row, error] {
	return func(yield func(*row, error) bool) {
		from := group.Rows()
		defer from.Close()
		buffer := make([]parquet.Row, 512)
		for {
			n, err := readRows(from, buffer)
			left -= int64(n)
			if n == 0 && err == nil || left < 0 || left > 0 && errors.Is(err, io.EOF) {
				n, err = 0, errors.New("it is broken: a row group has another number of rows than it says")
			}
			for _, values := range buffer[:n] {
				r := &row{}
				for _, v := range values {
					l.set(r, v)
				}
				if err := r.check(); err != nil {
					yield(nil, err)
					return
				}
				if !yield(r, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

func readRows(from parquet.Rows, buffer []parquet.Row) (n int, err error) {
	defer broken(&err)
	return from.ReadRows(buffer)
}

func (l *layout) set(r *row, v parquet.Value) {
	if v.IsNull() {
		return
	}
	switch i := v.Column(); i {
	case l.device:
		r.device = string(v.ByteArray())
	case l.key:
		r.key = string(v.ByteArray())
	case l.tags:
		r.metadata = string(v.ByteArray())
	default:
		if n, ok := l.metric[i]; ok {
			r.values = append(r.values, value{n, v.Double()})
		}
	}
}
