package kv

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mayflydb/mayfly/internal/clock"
)

// A full disk heals by itself. Deletes and expiry free nothing at once: they add to the log, and a
// table keeps the removed data until its compaction. So while the disk is full a goroutine flushes
// the memtables, which frees their logs, and compacts the tables, a slice of the keys at a time,
// until the disk has the room that FullReason names. While the disk is not full there is no such
// goroutine.

const (
	// healEvery is the pause between two steps.
	healEvery = time.Second
	// stillFullEvery is the pause between two log lines about the full disk.
	stillFullEvery = time.Minute
	// healPatience is the longest wait for a slice that Pebble delays, because it prefers a
	// compaction of its own.
	healPatience = 10 * time.Second
	// stuckAfter is the number of compactions in a row for which Pebble has found no room, after
	// which the healer starts none.
	stuckAfter = 4
	// healSlice is the size of the tables compacted at once. Their new tables need room beside
	// them.
	healSlice = 4 << 20
)

// startHealing starts a healer, unless one runs.
func (db *DB) startHealing() {
	if !db.opened.Load() || !db.healing.CompareAndSwap(false, true) {
		return
	}
	db.background.start(func(ctx context.Context) {
		db.heal(ctx)
		db.healing.Store(false)
		if db.Full() && ctx.Err() == nil && db.writable() == nil {
			db.startHealing() // full again after the last check
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

// done reports whether the healing is finished. Until then it logs at intervals that the disk is
// full.
func (h *healer) done(ctx context.Context) bool {
	if ctx.Err() != nil || h.db.writable() != nil || h.db.TryRestore() {
		return true
	}
	if h.said() >= stillFullEvery {
		h.said = clock.Stopwatch()
		h.db.reserve.sayStillFull()
	}
	return false
}

// healer is the progress of the healing of a full disk.
type healer struct {
	db   *DB
	said clock.Elapsed // since the last log line about the full disk
	// closed when the memtables are flushed; nil while no flush is under way
	flushing <-chan struct{}
	flushed  bool          // the memtables have been flushed once
	written  uint64        // bytes in the log when that flush began
	compact  bool          // the tables are to be compacted
	looked   clock.Elapsed // since the last pass over the tables; nil: none since the flush
	size     int64         // bytes in the tables after it
	free     uint64        // bytes on the disk before or after it, whichever is more
}

// step flushes the memtables, and once that is done compacts the tables. It does neither again
// until more data is written, or a failed compaction is worth another attempt.
func (h *healer) step(ctx context.Context) {
	switch m := h.db.pebble.Metrics(); {
	case h.flushing != nil:
		select {
		case <-h.flushing:
			h.flushing, h.flushed, h.compact, h.looked = nil, true, true, nil
		default: // Pebble retries until it has the room
		}
	case h.compact && h.worthwhile():
		before := h.db.reserve.free() // what failed compactions wrote is removed later
		ended, roomless := h.compactAll(ctx)
		h.compact = !ended || roomless
		h.looked, h.size, h.free = clock.Stopwatch(), h.tables(), max(before, h.db.reserve.free())
		// While Pebble retries a compaction without room, the next attempt would fill the disk again.
		if ended && h.db.compactions.short.failures.Load() == 0 {
			h.db.reserve.tidy.Store(true)
		}
	// a second memtable is being flushed already
	case h.flushed && m.WAL.BytesIn == h.written || m.MemTable.Count > 1:
	default:
		if flushed, err := h.db.pebble.AsyncFlush(); err == nil {
			h.flushing, h.written = flushed, m.WAL.BytesIn
			h.db.reserve.tidy.Store(false)
		}
	}
}

// worthwhile reports whether a failed compaction may find room now.
func (h *healer) worthwhile() bool {
	if h.stuck() {
		return false
	}
	if h.looked == nil || h.looked() >= stillFullEvery {
		return true
	}
	return h.size-h.tables() >= healSlice/4 || h.db.reserve.free() >= h.free+healSlice/4
}

// stuck reports whether there is no room for the compaction that Pebble wants first. Pebble tries
// it again after a flush, since it may need less with the deletes in it, and once a minute. All
// others wait for it.
func (h *healer) stuck() bool { return h.db.compactions.short.failures.Load() >= stuckAfter }

// tables returns the size of the tables in bytes.
func (h *healer) tables() int64 {
	total := h.db.pebble.Metrics().Total()
	return int64(total.AggregateSize())
}

// compactAll compacts every table, slice by slice, until the disk is no longer full. It reports
// whether it ended with the last slice, and whether it left out slices for which there is no room:
// Pebble adds every overlapping table, so one slice may need as much room as all. After each slice
// compactAll leaves the disk to the calls for as long as the slice took, a second at most.
func (h *healer) compactAll(ctx context.Context) (ended, roomless bool) {
	levels, err := h.db.pebble.SSTables()
	if err != nil {
		h.db.log.Warn("cannot list the tables to compact them on a full disk", "error", err)
		return false, false
	}
	ended = true
	var tooLarge []keyRange
	for _, s := range cutTables(slices.Concat(levels...)) {
		if slices.ContainsFunc(tooLarge, func(r keyRange) bool { return r.contains(s.lower) }) {
			continue
		}
		took := clock.Stopwatch()
		patient, cancel := context.WithTimeout(ctx, healPatience)
		err := h.db.pebble.Compact(patient, s.lower, s.upper, false)
		cancel()
		switch {
		case errors.Is(err, errNoRoom):
			tooLarge = append(tooLarge, *h.db.compactions.roomless.Load())
			h.db.compactions.short.forgive() // the failure of a slice holds nothing else up
		case err != nil:
			ended = false
			h.db.log.Debug("compaction on a full disk", "error", err)
		}
		if h.done(ctx) || h.stuck() {
			return false, len(tooLarge) > 0
		}
		clock.Pause(min(took(), healEvery), ctx.Done())
	}
	return ended, len(tooLarge) > 0
}

// keyRange is a part of the keys.
type keyRange struct{ lower, upper []byte }

func (r keyRange) contains(key []byte) bool {
	return bytes.Compare(r.lower, key) <= 0 && bytes.Compare(key, r.upper) < 0
}

// inputRange returns the keys of the tables that a compaction reads.
func inputRange(info pebble.CompactionInfo) *keyRange {
	var r keyRange
	for _, level := range info.Input {
		for _, table := range level.Tables {
			lower, last := table.Smallest.UserKey, table.Largest.UserKey
			if r.lower == nil || bytes.Compare(lower, r.lower) < 0 {
				r.lower = lower
			}
			if bytes.Compare(r.upper, last) <= 0 {
				r.upper = append(slices.Clone(last), 0)
			}
		}
	}
	return &r
}

// cutTables divides the keys of tables so that each part has about healSlice bytes.
func cutTables(tables []pebble.SSTableInfo) (parts []keyRange) {
	if len(tables) == 0 {
		return nil
	}
	sort.Slice(tables, func(i, j int) bool { return bytes.Compare(tables[i].Smallest.UserKey, tables[j].Smallest.UserKey) < 0 })
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
