package kv

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mayflydb/mayfly/internal/clock"
)

// A full disk heals by itself. Deletes and expiry free nothing at once: they add to the log, and a table keeps what they removed until
// it is compacted. So while the disk is full a goroutine flushes the memtables, which frees their logs, and compacts the tables, a
// slice of the keys at a time, until the reserve fits again. While the disk is not full there is no such goroutine.

const (
	// healEvery is the pause between two steps.
	healEvery = time.Second
	// stillFullEvery is how often the log says that the disk is still full.
	stillFullEvery = time.Minute
	// healPatience is how long the healer waits for a slice that Pebble does not get to, because it prefers a compaction of its own.
	healPatience = 10 * time.Second
	// healSlice is the size of the tables that are compacted at once. Their new tables need room beside them.
	healSlice = 4 << 20
)

// startHealing begins to heal the store, unless that is under way.
func (db *DB) startHealing() {
	if !db.opened.Load() || !db.healing.CompareAndSwap(false, true) {
		return
	}
	db.background.start(func(ctx context.Context) {
		db.heal(ctx)
		db.healing.Store(false)
		if db.Full() && ctx.Err() == nil && db.writable() == nil {
			db.startHealing() // it became full again after the last look
		}
	})
}

// heal returns when the disk is no longer full, or when the store ends.
func (db *DB) heal(ctx context.Context) {
	h := healer{db: db, said: clock.Stopwatch()}
	for {
		clock.Pause(healEvery, ctx.Done())
		if h.done(ctx) {
			return
		}
		h.step(ctx)
	}
}

// done reports whether there is nothing left to heal. Until then it says once in a while that the disk is full.
func (h *healer) done(ctx context.Context) bool {
	if ctx.Err() != nil || h.db.writable() != nil || h.db.TryRestore() {
		return true
	}
	if h.said() >= stillFullEvery {
		h.said = clock.Stopwatch()
		h.db.reserve.sayFull("disk is still full")
	}
	return false
}

// healer knows how far the healing of a full disk is.
type healer struct {
	db        *DB
	said      clock.Elapsed   // since the log said that the disk is full
	flushing  <-chan struct{} // closed when the memtables are flushed; nil while no flush is under way
	written   uint64          // bytes in the log when that flush began
	compact   bool            // the tables are to be compacted
	compacted bool            // they have been
}

// step flushes the memtables, or compacts the tables. It does nothing if nothing was written since it last did both.
func (h *healer) step(ctx context.Context) {
	switch {
	case h.flushing != nil:
		select {
		case <-h.flushing:
			h.flushing, h.compact = nil, true
		default: // Pebble tries again until it has the room
		}
	case h.compact:
		h.compact, h.compacted = false, true
		h.compactAll(ctx)
	default:
		m := h.db.pebble.Metrics()
		if h.compacted && m.WAL.BytesIn == h.written || m.MemTable.Count > 1 { // a second memtable is being flushed already
			return
		}
		if flushed, err := h.db.pebble.AsyncFlush(); err == nil {
			h.flushing, h.written = flushed, m.WAL.BytesIn
		}
	}
}

// compactAll compacts every table, slice by slice, until the disk is no longer full. After each slice it leaves the disk to the calls
// for as long as the slice took. A slice that fails is left for the next time.
func (h *healer) compactAll(ctx context.Context) {
	levels, err := h.db.pebble.SSTables()
	if err != nil {
		return
	}
	for _, s := range cutTables(slices.Concat(levels...)) {
		took := clock.Stopwatch()
		patient, cancel := context.WithTimeout(ctx, healPatience)
		err := h.db.pebble.Compact(patient, s.lower, s.upper, false)
		cancel()
		if h.done(ctx) {
			return
		}
		if err != nil {
			h.db.log.Debug("compaction on a full disk", "error", err)
		}
		clock.Pause(took(), ctx.Done())
	}
}

// keyRange is a part of the keys.
type keyRange struct{ lower, upper []byte }

// cutTables divides the keys of tables so that each part has about healSlice bytes.
func cutTables(tables []pebble.SSTableInfo) (parts []keyRange) {
	if len(tables) == 0 {
		return nil
	}
	slices.SortFunc(tables, func(a, b pebble.SSTableInfo) int { return bytes.Compare(a.Smallest.UserKey, b.Smallest.UserKey) })
	lower, last, size := tables[0].Smallest.UserKey, tables[0].Largest.UserKey, uint64(0)
	for _, table := range tables {
		if next := table.Smallest.UserKey; size >= healSlice && bytes.Compare(lower, next) < 0 {
			parts = append(parts, keyRange{lower, next})
			lower, size = next, 0
		}
		size += table.Size
		if bytes.Compare(last, table.Largest.UserKey) < 0 {
			last = table.Largest.UserKey
		}
	}
	return append(parts, keyRange{lower, append(slices.Clone(last), 0)})
}
