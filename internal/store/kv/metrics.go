package kv

// Metrics holds the figures of a store. Counters count since Open.
type Metrics struct {
	DiskBytes            uint64 // all files: tables, log, manifest, obsolete ones not yet removed
	TableBytes           uint64 // live tables
	TableCount           int64
	MemTableBytes        uint64 // memtables and large batches
	LogBytes             uint64 // live part of the log
	LogWrittenBytes      uint64 // counter
	CacheBytes           int64
	CacheHits            int64 // counter
	CacheMisses          int64 // counter
	Flushes              int64 // counter
	Compactions          int64 // counter
	CompactionsRunning   int64
	CompactionDebtBytes  uint64 // bytes to compact until the levels have their shape
	CompactionReadBytes  uint64 // counter
	CompactionWriteBytes uint64 // counter, flushes included
	ReadAmplification    int    // the number of tables that a point read may have to visit
	Tombstones           uint64
	Snapshots            int // open ones
	ReserveGivenUp       bool
}

// Metrics returns the present figures. It takes microseconds to milliseconds, growing with the
// number of tables.
func (db *DB) Metrics() Metrics {
	m := db.pebble.Metrics()
	total := m.Total()
	return Metrics{
		DiskBytes:            m.DiskSpaceUsage(),
		TableBytes:           uint64(total.TablesSize),
		TableCount:           total.TablesCount,
		MemTableBytes:        m.MemTable.Size,
		LogBytes:             m.WAL.Size,
		LogWrittenBytes:      m.WAL.BytesWritten,
		CacheBytes:           m.BlockCache.Size,
		CacheHits:            m.BlockCache.Hits,
		CacheMisses:          m.BlockCache.Misses,
		Flushes:              m.Flush.Count,
		Compactions:          m.Compact.Count,
		CompactionsRunning:   m.Compact.NumInProgress,
		CompactionDebtBytes:  m.Compact.EstimatedDebt,
		CompactionReadBytes:  total.TableBytesRead,
		CompactionWriteBytes: total.TableBytesFlushed + total.TableBytesCompacted,
		ReadAmplification:    m.ReadAmp(),
		Tombstones:           m.Keys.TombstoneCount,
		Snapshots:            m.Snapshots.Count,
		ReserveGivenUp:       db.Full(),
	}
}
