package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/store/due"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// The history of a table with point-in-time recovery is an undo log. Each batch that changes an
// item also appends the item as it was before, under the commit's instant. A restore copies the
// present items and then applies the records backwards, down to the wanted instant
// (point_in_time.go).
//
// The alternative is a log of the new items. It would need a full copy of the table to begin with,
// and another one from time to time, because a restore would read everything since the last copy.
// An undo log needs none, and its old records are deleted by one range deletion.

// HistoryDesc is a table's setting for point-in-time recovery. The zero value means off.
type HistoryDesc struct {
	Days  int     // the recovery period, 1 to 35; 0: off
	Since Instant // when the history began; it can only be restored from here on
	// TTL holds the table's TTL settings since then, ascending by their Since. The first one may be
	// older. A restore judges by them which items existed.
	TTL []TTLDesc
}

const (
	dayMillis      = 24 * 60 * 60 * 1000
	historyDaysMax = 35
)

// period returns the recovery period in milliseconds.
func (h *HistoryDesc) period() Instant { return Instant(h.Days) * dayMillis }

// Earliest returns the earliest instant to which the table can be restored.
func (h *HistoryDesc) Earliest(now Instant) Instant { return max(h.Since, now-h.period()) }

// ttlAt returns the TTL setting at an instant.
func (h *HistoryDesc) ttlAt(at Instant) TTLDesc {
	ttl := h.TTL[0]
	for _, next := range h.TTL[1:] {
		if next.Since <= at {
			ttl = next
		}
	}
	return ttl
}

// addTTL adds a new TTL setting, and removes those that ended before the recovery period.
func (h *HistoryDesc) addTTL(ttl TTLDesc, now Instant) {
	h.TTL = append(h.TTL, ttl)
	for len(h.TTL) > 1 && h.TTL[1].Since <= h.Earliest(now) {
		h.TTL = h.TTL[1:]
	}
}

// historyState is the state of a table's history in memory.
type historyState struct {
	last    uint64                     // the number of the last record; guarded by the commit section
	trimmed Instant                    // records up to here are gone; guarded by the commit section
	trim    atomic.Pointer[due.Handle] // runs the trimmer; nil: there has been no history since Open
}

// undo is a history record that waits for its key.
type undo struct {
	table *Table // nil: no record
	value []byte
	days  int // of the table's recovery period
}

// remember adds the history record of one change to the plan.
func (p *plan) remember(w *planned) {
	if w.desc.History.Days != 0 {
		p.undos = append(p.undos, w.w.Table.undoOf(w.desc, w.w.Key, w.oldHeader, w.stored))
	}
}

// undoOf returns the history record of a change of an item, which is nil if there was none.
func (t *Table) undoOf(d *TableDesc, key Key, h header, old dynamo.Item) undo {
	if d.History.Days == 0 {
		return undo{}
	}
	suffix := key.suffix()
	value := binary.AppendUvarint(make([]byte, 0, len(suffix)+len(old)+32), uint64(len(suffix)))
	value = append(value, suffix...)
	if old != nil {
		value = append(h.append(value), old...)
	}
	return undo{table: t, value: value, days: d.History.Days}
}

// splitHistory splits a history record into the suffix of the item's key and the stored item, which
// is empty if there was none.
func splitHistory(value []byte) (suffix, stored []byte, err error) {
	size, n := binary.Uvarint(value)
	if n <= 0 || size < hashLen || size > uint64(len(value)-n) {
		return nil, nil, corrupt("a history record of %d bytes has no key", len(value))
	}
	return value[n : n+int(size)], value[n+int(size):], nil
}

// historyKeyLen is the length of a history record's key: keyspace, table, instant, number.
const historyKeyLen = tablePrefixLen + instantLen + 8

func appendHistoryKey(dst []byte, table uint32, at Instant, number uint64) []byte {
	dst = appendInstant(appendTablePrefix(dst, spaceHistory, table), at)
	return binary.BigEndian.AppendUint64(dst, number)
}

// appendHistory adds history records to the batch. The caller is inside the commit section.
func (e *Engine) appendHistory(b *kv.Batch, undos []undo, now Instant) {
	for i := range undos {
		h := &undos[i].table.history
		h.last++
		b.Set(appendHistoryKey(make([]byte, 0, historyKeyLen), undos[i].table.id, now, h.last), undos[i].value)
	}
}

// wakeTrimmers asks for the trimmers at the instant at which history records of now age out.
func wakeTrimmers(undos []undo, now Instant) {
	for i := range undos {
		if trim := undos[i].table.history.trim.Load(); trim != nil {
			trim.Wake(int64(now) + int64(undos[i].days)*dayMillis)
		}
	}
}

// startHistory makes the trimmer ready.
func (t *Table) startHistory(at Instant) {
	if t.history.trim.Load() == nil {
		t.history.trim.Store(t.e.queue.Add(&historyTrimmer{t}))
	}
	t.history.trim.Load().Wake(int64(at))
}

// historyGap is more than the number of any record that a damaged file hides.
const historyGap = 1 << 62

// openHistory reads where the history of a table ends.
func (t *Table) openHistory(d *TableDesc) error {
	if d.History.Days == 0 {
		return nil
	}
	if len(d.History.TTL) == 0 {
		return corrupt("the history of table %s has no TTL setting", d.Name)
	}
	t.history.trimmed = minInstant
	t.startHistory(minInstant)
	it := t.e.kv.NewIter(tableSpan(spaceHistory, d.ID))
	defer it.Close()
	if it.Last() {
		t.history.last = seqOfKey(it.Key())
	}
	if err := it.Error(); isDamage(err) {
		t.e.logDamage(err, "the end of a history cannot be read", "table", d.Name)
		t.history.last = historyGap
		return nil
	}
	return it.Error()
}

// changeHistory applies a change of the description to the history. The caller is inside the commit
// section.
func (t *Table) changeHistory(b *kv.Batch, old, d *TableDesc, now Instant) {
	h := &d.History
	switch {
	case h.Days == 0:
		if *h = (HistoryDesc{}); old.History.Days != 0 {
			b.DeleteRange(tableSpan(spaceHistory, d.ID))
		}
	case old.History.Days == 0:
		*h = HistoryDesc{Days: h.Days, Since: now, TTL: []TTLDesc{d.TTL}}
		t.history.trimmed = minInstant
		t.startHistory(now + h.period())
	default:
		if h.Days != old.History.Days { // a longer period brings nothing back
			h.Since = old.History.Earliest(now)
		}
		if d.TTL.Generation != old.TTL.Generation {
			h.addTTL(d.TTL, now)
		}
	}
}

// historyTrimmer removes a table's history records once they are older than the recovery period. It
// is a source of the due queue: it sleeps until the oldest record ages out.
type historyTrimmer struct{ t *Table }

// Drain removes the records due at now.
func (h *historyTrimmer) Drain(_ context.Context, now int64) (next int64, err error) {
	d, err := h.t.live()
	if err != nil || d.History.Days == 0 {
		return int64(Never), nil
	}
	horizon := Instant(now) - d.History.period()
	few, err := h.aged(d, horizon)
	if err != nil {
		return 0, err
	}
	if len(few) > 0 {
		if err := h.remove(d, horizon, few); errors.Is(err, errStale) {
			return now, nil
		} else if err != nil {
			return 0, err
		}
	}
	oldest, err := h.oldest(d, horizon)
	switch {
	case err != nil:
		return 0, err
	case oldest == Never:
		return int64(Never), nil
	case len(few) > 0: // one range deletion then covers many records
		return max(int64(oldest+d.History.period()), now+trimEvery), nil
	}
	return int64(oldest + d.History.period()), nil
}

// aged returns the keys of the records up to the horizon, but not many more than trimFew.
func (h *historyTrimmer) aged(d *TableDesc, horizon Instant) (few [][]byte, err error) {
	lower, _ := tableSpan(spaceHistory, d.ID)
	it := h.t.e.kv.NewIter(lower, appendHistoryKey(nil, d.ID, horizon+1, 0))
	defer it.Close()
	for ok := it.First(); ok && len(few) <= trimFew; ok = it.Next() {
		few = append(few, bytes.Clone(it.Key()))
	}
	if isDamage(it.Error()) { // the range deletion needs no reading
		return make([][]byte, trimFew+1), nil
	}
	return few, it.Error()
}

// remove removes the records up to the horizon, one by one if they are few: see trimmer.remove.
func (h *historyTrimmer) remove(d *TableDesc, horizon Instant, few [][]byte) error {
	return h.t.e.commitNew(func(c *commit) error {
		if h.t.desc.Load() != d {
			return errStale
		}
		h.t.history.trimmed = max(h.t.history.trimmed, horizon)
		if len(few) > trimFew {
			lower, _ := tableSpan(spaceHistory, d.ID)
			c.batch.DeleteRange(lower, appendHistoryKey(nil, d.ID, horizon+1, 0))
			return nil
		}
		for _, key := range few {
			c.batch.Delete(key)
		}
		return nil
	}, nil)
}

// oldest returns the instant of the first record behind the horizon, or Never.
func (h *historyTrimmer) oldest(d *TableDesc, horizon Instant) (Instant, error) {
	_, upper := tableSpan(spaceHistory, d.ID)
	it := h.t.e.kv.NewIter(appendHistoryKey(nil, d.ID, horizon+1, 0), upper)
	defer it.Close()
	if it.First() {
		return readInstant(it.Key()[tablePrefixLen:]), nil
	}
	if isDamage(it.Error()) {
		return horizon + trimAgain, nil
	}
	return Never, it.Error()
}
