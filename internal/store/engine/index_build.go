package engine

import (
	"math"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// An index that is added to a table is kept in step by every write from the commit on that describes it: a write that was decided under the
// description before is stale there. What the table held already gets its entries from a backfill, and nobody reads the index before that
// has come to its end. An index that is removed goes with all its entries in the batch of the commit that describes it no more, and for the same
// reason no entry can come after. Its number is never used again.

// changeIndexes numbers the indexes that a change of the description has added, and takes away the entries of those that it has removed. It is
// called inside the commit section; full says that nothing may grow.
func changeIndexes(b *kv.Batch, old, d *TableDesc, now Instant, full bool) error {
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
		ix.ID, ix.Created, ix.Building, ix.Units = uint16(d.NextIndex), now, true, &Units{}
		d.NextIndex++
	}
	for i := range old.Indexes {
		was := &old.Indexes[i]
		is := d.indexByID(was.ID)
		if is == nil {
			b.DeleteRange(indexSpan(d.ID, was.ID))
		}
		if was.Building && (is == nil || !is.Building) {
			b.Delete(buildKey(d.ID, was.ID))
		}
	}
	return nil
}

// firstFreeIndex is the id of the next index of a table whose description does not say it: no index of it has ever been removed.
func (d *TableDesc) firstFreeIndex() uint32 {
	next := uint32(1)
	for i := range d.Indexes {
		next = max(next, uint32(d.Indexes[i].ID)+1)
	}
	return next
}

// indexByID finds a secondary index by number; nil when there is none.
func (d *TableDesc) indexByID(id uint16) *IndexDesc {
	for i := range d.Indexes {
		if d.Indexes[i].ID == id {
			return &d.Indexes[i]
		}
	}
	return nil
}

// readable says whether an index, as an earlier description had it, can be read; its error is an *IndexError.
func (d *TableDesc) readable(was *IndexDesc) error {
	ix := d.indexByID(was.ID)
	if ix == nil || was.Building || ix.Building {
		return &IndexError{Index: was.Name, Building: ix != nil}
	}
	return nil
}

// readableIndexes gives the numbers of the indexes that are built.
func (d *TableDesc) readableIndexes() (ids []uint16) {
	for i := range d.Indexes {
		if !d.Indexes[i].Building {
			ids = append(ids, d.Indexes[i].ID)
		}
	}
	return ids
}

// wantsBackfill says whether there is something to do for items that are there already.
func (d *TableDesc) wantsBackfill() bool {
	for i := range d.Indexes {
		if d.Indexes[i].Building {
			return true
		}
	}
	return d.TTL.Backfill
}

// indexBackfill gives every item its entry in an index that is being built.
func (t *Table) indexBackfill(d *TableDesc, ix *IndexDesc) *backfill {
	return &backfill{
		t: t, d: d, progress: buildKey(d.ID, ix.ID),
		item: func(p *plan, k Key, h header, stored dynamo.Item) { t.addEntry(p, d, ix, k, h, stored) },
		end: func(now *TableDesc) error {
			is := now.indexByID(ix.ID)
			if is == nil {
				return errStale
			}
			is.Building = false
			return nil
		},
	}
}

// addEntry puts an item's entry into an index; an item that lacks a key attribute, or has one of another type, gets none. An expired item gets
// its entry like any other: reads judge it by its header, and the reaper takes both.
func (t *Table) addEntry(p *plan, d *TableDesc, ix *IndexDesc, k Key, h header, stored dynamo.Item) {
	key, ok := d.appendIndexKey(nil, ix, stored, k)
	if !ok {
		return
	}
	p.batch.Set(key, d.indexValue(ix, stored, h))
	// The reaper goes by the deadline entry: one that says nothing of index entries would leave this one behind. A deadline that no longer
	// counts may have lost its entry already, and the reaper reads the items of earlier generations anyway.
	if d.deadlineOf(h) == Never || invariant.Injected(invariant.ForgetIndexed) {
		return
	}
	entry := deadlineEntry{generation: h.generation, size: h.size, indexed: true}
	p.batch.Set(appendDeadlineKey(nil, d.ID, h.removal, k.suffix()), entry.append(nil))
	// As for a write that arms: a pass of the reaper that took the entry as it was must not raise the mark over it.
	p.writes = append(p.writes, planned{w: &Write{Table: t, Key: k}, desc: d, removal: h.removal})
}
