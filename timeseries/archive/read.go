package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// read gives the rows of a file; with a device only its own, in row groups that may have some. Its metrics get numbers in m.
func (a *Archive) read(ctx context.Context, name, device string, m *metrics) iter.Seq2[*row, error] {
	return func(yield func(*row, error) bool) {
		fail := func(err error) { yield(nil, fmt.Errorf("read %s in %s: %w", name, a.store, err)) }
		file, err := a.store.Open(ctx, name)
		if err != nil {
			fail(err)
			return
		}
		defer file.Close()
		if file.Size() > fileMax {
			fail(fmt.Errorf("it has %d bytes, and %d are the most", file.Size(), int64(fileMax)))
			return
		}
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
		for _, group := range p.RowGroups() {
			if device != "" && !mayHold(group.ColumnChunks()[l.device], device) {
				continue
			}
			for r, err := range l.rows(group) {
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

// openParquet reads the end of a file. What is broken is an error, also where the library does not expect it.
func openParquet(file File) (p *parquet.File, err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("it is broken: %v", e)
		}
	}()
	return parquet.OpenFile(file, file.Size(), parquet.SkipBloomFilters(true))
}

// mayHold reports whether a value may be in a column.
func mayHold(chunk parquet.ColumnChunk, text string) bool {
	index, err := chunk.ColumnIndex()
	if err != nil || index.NumPages() == 0 {
		return true
	}
	for i := range index.NumPages() {
		low, high := index.MinValue(i), index.MaxValue(i)
		if low.IsNull() || high.IsNull() {
			return true
		}
		// A bound may be cut short: then the greatest is a prefix of what it was, or above it.
		if string(low.ByteArray()) <= text && (text <= string(high.ByteArray()) || strings.HasPrefix(text, string(high.ByteArray()))) {
			return true
		}
	}
	return false
}

// layout says which column of a file is what.
type layout struct {
	device, key, tags int
	metric            map[int]int // number of the metric of a column
}

func newLayout(schema *parquet.Schema, m *metrics) (l layout, err error) {
	l = layout{-1, -1, -1, map[int]int{}}
	for i, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		kind := leaf.Node.Type().Kind()
		switch name := path[0]; {
		case len(path) != 1 || leaf.MaxRepetitionLevel > 0:
			return l, fmt.Errorf("the column %q is nested: the file is none of this package's", strings.Join(path, "."))
		case name == columnDevice && kind == parquet.ByteArray:
			l.device = i
		case name == columnKey && kind == parquet.ByteArray:
			l.key = i
		case name == columnMetadata && kind == parquet.ByteArray:
			l.tags = i
		case name == columnTime: // the key has it to the nanosecond
		case kind == parquet.Double:
			if l.metric[i], err = m.of(name); err != nil {
				return l, err
			}
		}
	}
	if l.device < 0 || l.key < 0 {
		return l, errors.New("it has no columns deviceId and sample_key: it is none of this package's")
	}
	return l, nil
}

// rows gives the rows of a row group.
func (l *layout) rows(group parquet.RowGroup) iter.Seq2[*row, error] {
	return func(yield func(*row, error) bool) {
		from := group.Rows()
		defer from.Close()
		buffer := make([]parquet.Row, 512)
		for {
			n, err := readRows(from, buffer)
			for _, values := range buffer[:n] {
				r := &row{}
				for _, v := range values {
					l.set(r, v)
				}
				if len(r.key) < len("2006-01-02") {
					yield(nil, fmt.Errorf("%q is no sort key of a sample", r.key))
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
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("it is broken: %v", e)
		}
	}()
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
