package kv

import "github.com/cockroachdb/pebble/v2"

// BoundBytes returns a number of bytes that the keys and values in the spans, before compression, do
// not exceed, or hardly: the contents of all tables that overlap a span, as their properties record
// them, and the room of all memtables. A table that overlaps two spans counts twice, and so do
// overwritten and deleted values that are still there. Of tables that share a file, the properties
// are estimates. It reads the properties of each table, so it takes microseconds to milliseconds for
// each.
func (db *DB) BoundBytes(spans ...Span) (int64, error) {
	// The memtables come first: what a flush moves in between counts twice, and never not at all.
	bytes := db.pebble.Metrics().MemTable.Size
	for _, s := range spans {
		levels, err := db.pebble.SSTables(pebble.WithProperties(), pebble.WithKeyRangeFilter(s.Start, s.End))
		if err != nil {
			return 0, db.readFailed(err)
		}
		for _, level := range levels {
			for i := range level {
				if p := level[i].Properties; p != nil {
					bytes += p.RawKeySize + p.RawValueSize
				}
			}
		}
	}
	return int64(bytes), nil
}
