package engine

import (
	"math"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// From the commit that adds an index to the description, every write updates it: a write decided
// under the earlier description is stale there. A backfill adds the entries of the existing items,
// and reads return an error until it ends. The commit that removes an index from the description
// deletes all its entries, and no entry can follow, for the same reason. An index number is never
// used again.

// changeIndexes numbers the indexes that a change of the description adds, and deletes the entries
// of those that it removes. On a full disk it returns ErrDiskFull for an added index. The caller is
// inside the commit section.
func (e *Engine) changeIndexes(b *kv.Batch, old, d *TableDesc, now Instant, full bool) error {
	for i := range d.Indexes {
		ix := &d.Indexes[i]
		if ix.ID != 0 {
			continue
		}
		switch {
		case d.NextIndex > math.MaxUint16:
			return ErrIndexesUsedUp
		case full:
			return ErrDiskFull
		}
		ix.ID, ix.Created, ix.Building, ix.Units = uint16(d.NextIndex), now, true, newUnits(e.points, d.Name, ix.Name)
		d.NextIndex++
	}
	for i := range old.Indexes {
		before := &old.Indexes[i]
		after := d.indexByID(before.ID)
		if after == nil {
			b.DeleteRange(indexSpan(d.ID, before.ID))
		}
		if before.Building && (after == nil || !after.Building) {
			b.Delete(buildKey(d.ID, before.ID))
		}
	}
	return nil
}

// firstFreeIndex returns the next index id of a table whose description does not store it, because
// none of its indexes has ever been removed.
func (d *TableDesc) firstFreeIndex() uint32 {
	next := uint32(1)
	for i := range d.Indexes {
		next = max(next, uint32(d.Indexes[i].ID)+1)
	}
	return next
}

// readable checks that an index from an earlier description can be read. It returns an *IndexError.
func (d *TableDesc) readable(was *IndexDesc) error {
	ix := d.indexByID(was.ID)
	if ix == nil || was.Building || ix.Building {
		return &IndexError{Index: was.Name, Building: ix != nil}
	}
	return nil
}

// readableIndexes returns the numbers of the finished indexes.
func (d *TableDesc) readableIndexes() (ids []uint16) {
	for i := range d.Indexes {
		if !d.Indexes[i].Building {
			ids = append(ids, d.Indexes[i].ID)
		}
	}
	return ids
}

// needsBackfill reports whether existing items need a backfill, or items of a backup are missing.
func (d *TableDesc) needsBackfill() bool {
	return d.Restore.Running || d.TTL.Backfill || d.index(func(ix IndexDesc) bool { return ix.Building }) != nil
}

// indexBackfill returns the backfill that adds the entries of an index.
func (t *Table) indexBackfill(d *TableDesc, ix *IndexDesc) *backfill {
	return &backfill{
		t: t, d: d, progress: buildKey(d.ID, ix.ID),
		item: func(p *plan, k Key, h header, stored dynamo.Item) { t.addEntry(p, d, ix, k, h, stored) },
		setDone: func(now *TableDesc) error {
			built := now.indexByID(ix.ID)
			if built == nil {
				return errStale
			}
			built.Building = false
			return nil
		},
	}
}

// addEntry adds an item's entry to an index, unless the item lacks a key attribute or has one of
// another type. An expired item has its entry like any other: reads judge it by its header, and the
// reaper removes both.
func (t *Table) addEntry(p *plan, d *TableDesc, ix *IndexDesc, k Key, h header, stored dynamo.Item) {
	key, ok := d.appendIndexKey(nil, ix, stored, k)
	if !ok {
		return
	}
	p.batch.Set(key, d.indexValue(ix, stored, h))
	// The reaper trusts the deadline entry: without the flag it would leave this index entry
	// behind. A deadline that no longer counts may have lost its entry already, and the reaper
	// reads items of earlier generations anyway.
	if d.deadlineOf(h) == Never || invariant.Injected(invariant.ForgetIndexed) {
		return
	}
	entry := deadlineEntry{generation: h.generation, size: h.size, indexed: true}
	p.batch.Set(appendDeadlineKey(nil, d.ID, h.removal, k.suffix()), entry.append(nil))
	// As for a write that arms: a pass of the reaper that read the old entry must not raise the
	// mark over it.
	p.writes = append(p.writes, planned{w: &Write{Table: t, Key: k}, desc: d, removal: h.removal})
}
