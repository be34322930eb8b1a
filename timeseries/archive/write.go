package archive

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/mayflydb/mayfly/timeseries"
)

// Limits of a row group, which a writer holds in memory: rows, values, bytes.
const (
	groupRows   = 100_000
	groupValues = 16_000_000
	groupBytes  = 64 << 20
	batchRows   = 2000    // rows per write to the columns
	chunksMax   = 200_000 // columns of all row groups: readers accept no larger metadata
)

// writer writes rows into a Parquet file, column by column.
type writer struct {
	file    *parquet.GenericWriter[any]
	columns []*parquet.ColumnWriter
	device  column
	key     column
	time    column
	tags    column
	metrics []column // by the number of a metric
	rows    int      // in the columns' batches
	group   int      // rows of this row group before the batch
	bytes   int      // of this row group, an estimate
	groups  int      // finished row groups
	total   int64
}

// column collects the values of a batch.
type column struct {
	index  int
	values []parquet.Value
}

func newWriter(to io.Writer, names []string) *writer {
	group := parquet.Group{
		columnDevice: parquet.Encoded(parquet.String(), &parquet.RLEDictionary), columnTime: parquet.Timestamp(parquet.Microsecond),
		columnKey: parquet.String(), columnMetadata: parquet.Optional(parquet.Encoded(parquet.String(), &parquet.RLEDictionary)),
	}
	for _, name := range names {
		group[name] = parquet.Optional(parquet.Leaf(parquet.DoubleType))
	}
	schema := parquet.NewSchema("sample", group)
	w := &writer{file: parquet.NewGenericWriter[any](to, schema, parquet.Compression(&parquet.Snappy), parquet.CreatedBy("mayfly", "1", ""),
		// its bounds would be as long as values, and no reader searches it
		parquet.SkipPageStatistics(columnMetadata))}
	w.columns = w.file.ColumnWriters()
	find := func(name string) column {
		leaf, ok := schema.Lookup(name)
		if !ok {
			panic("a column of the schema is not in it: " + name)
		}
		return column{index: leaf.ColumnIndex}
	}
	w.device, w.key, w.time, w.tags = find(columnDevice), find(columnKey), find(columnTime), find(columnMetadata)
	for _, name := range names {
		w.metrics = append(w.metrics, find(name))
	}
	return w
}

func (w *writer) write(r *row) error {
	at, _, err := timeseries.ReadKey(r.key)
	if err != nil {
		return err
	}
	w.device.add(parquet.ByteArrayValue([]byte(r.device)), 0)
	w.key.add(parquet.ByteArrayValue([]byte(r.key)), 0)
	w.time.add(parquet.Int64Value(at.UnixMicro()), 0)
	if r.metadata == "" {
		w.tags.null()
	} else {
		w.tags.add(parquet.ByteArrayValue([]byte(r.metadata)), 1)
	}
	for _, v := range r.values {
		w.metrics[v.column].add(parquet.DoubleValue(v.number), 1)
	}
	w.rows++
	w.total++
	w.bytes += r.bytes()
	for i := range w.metrics {
		if len(w.metrics[i].values) < w.rows {
			w.metrics[i].null()
		}
	}
	if w.rows == batchRows || w.bytes >= groupBytes {
		return w.flush()
	}
	return nil
}

func (c *column) add(v parquet.Value, definition int) {
	c.values = append(c.values, v.Level(0, definition, c.index))
}

func (c *column) null() { c.values = append(c.values, parquet.NullValue().Level(0, 0, c.index)) }

// flush passes the batch to the columns, and ends a full row group.
func (w *writer) flush() error {
	all := append([]*column{&w.device, &w.key, &w.time, &w.tags}, make([]*column, len(w.metrics))...)
	for i := range w.metrics {
		all[4+i] = &w.metrics[i]
	}
	for _, c := range all {
		if _, err := w.columns[c.index].WriteRowValues(c.values); err != nil {
			return fmt.Errorf("encode a column: %w", err)
		}
		c.values = c.values[:0]
	}
	w.group += w.rows
	w.rows = 0
	if w.group < min(groupRows, groupValues/len(w.columns)) && w.bytes < groupBytes {
		return nil
	}
	w.group, w.bytes = 0, 0
	if w.groups++; w.groups*len(w.columns) > chunksMax {
		return fmt.Errorf("the file would have more than %d row groups of %d columns; use mayfly series archive, whose files are small", w.groups-1, len(w.columns))
	}
	return w.file.Flush()
}

// close writes the remaining rows and the footer.
func (w *writer) close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.file.Close()
}
