package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/store/due"
)

// Table is an open table. It stays valid after a drop; calls then return ErrTableNotFound.
type Table struct {
	e  *Engine
	id uint32
	// replaced inside the commit section, never edited; nil once the table is dropped
	desc atomic.Pointer[TableDesc]
	last atomic.Pointer[TableDesc] // like desc, and the last one after a drop
	due  *due.Handle               // runs the reaper
	soon *due.Handle               // runs the preparer
	// changed is the number of the last commit that changed the description; 0: none since Open. It
	// is set before that description is visible, so a reader of the description finds a number at
	// least as high.
	changed atomic.Uint64

	marks    marks // guarded by the commit section (Engine.order)
	prepared preparations
	history  historyState

	collections *collections // nil: the table has no local indexes

	ahead  map[string]*ahead // by a backfill's progress key; touched by runBackfills only
	source *source           // of a restore under way, once it is open; touched by runBackfills only

	loading sync.Mutex // held by an import from the reading of the items it replaces to the commit
	loaded  seen       // the keys of an import; guarded by loading

	count struct {
		sync.Mutex
		stats   TableStats
		at      Instant  // when stats were counted; 0: never
		large   bool     // too large to count during a call
		indexes []uint16 // the indexes counted in stats; another set requires a new count
		running bool
	}
}

// newTable returns a table with its reaper and its preparer, which a write wakes as soon as it can
// find the table.
func (e *Engine) newTable(d *TableDesc, mark Instant) *Table {
	t := &Table{e: e, id: d.ID, marks: newMarks(mark), collections: newCollections(d, e.opts.CollectionBytesMax)}
	t.prepared.room = &e.room
	t.due, t.soon = e.queue.Add(&reaper{t: t}), e.soon.Add(&preparer{t: t})
	return t
}

// stop ends the background work of a table that is gone.
func (t *Table) stop() {
	t.due.Remove()
	t.soon.Remove()
	if trim := t.history.trim.Load(); trim != nil {
		trim.Remove()
	}
	t.prepared.clear()
}

// Describe returns the table's present description once it is durable, or ErrTableNotFound after a
// drop.
func (t *Table) Describe() (*TableDesc, error) {
	d, err := t.live()
	if err := t.e.waitCatalogue(&t.changed); err != nil {
		return nil, err
	}
	return d, err
}

// Desc returns the table's present description, or the last one after a drop.
func (t *Table) Desc() *TableDesc { return t.last.Load() }

// live returns the description to decide with, or ErrTableNotFound after a drop.
func (t *Table) live() (*TableDesc, error) {
	d := t.desc.Load()
	if d == nil {
		return nil, ErrTableNotFound
	}
	return d, nil
}

// needsOld reports whether a change needs the previous item: for its deadline, its index entries,
// its record or the table's history.
func (d *TableDesc) needsOld() bool {
	return d.TTL.Generation != 0 || d.streams() > 0 || len(d.Indexes) > 0 || d.History.Days != 0
}

// TableStats counts the items and bytes of a table, and of each index by name.
type TableStats struct {
	Items, Bytes int64
	Indexes      map[string]IndexStats
}

// IndexStats counts the entries of an index.
type IndexStats struct{ Items, Bytes int64 }

const (
	countNow = 100_000 // entries counted during the call
	// ms after which a large table is counted again, as often as Amazon does
	countMaxAge = 6 * 60 * 60 * 1000
)

// Stats returns the number of items and bytes. Up to 100,000 entries the count is exact at every
// call. A larger table is counted in the background at most every six hours, or after an index was
// built or removed; until the first count ends, Stats returns the part counted so far.
func (t *Table) Stats(ctx context.Context) (TableStats, error) {
	if err := t.e.enter(); err != nil {
		return TableStats{}, err
	}
	defer t.e.leave()
	d, err := t.live()
	if err != nil {
		return TableStats{}, err
	}
	t.count.Lock()
	defer t.count.Unlock()
	now := t.e.Now()
	if t.count.running || t.count.large && now-t.count.at < countMaxAge && slices.Equal(t.count.indexes, d.readableIndexes()) {
		return t.count.stats, nil
	}
	stats, complete, err := t.e.countTable(ctx, d, now, countNow)
	if err != nil {
		return TableStats{}, err
	}
	t.count.large = false
	if !complete {
		if t.count.stats.Items > stats.Items {
			stats = t.count.stats
		}
		t.count.running, t.count.large = true, true
		t.e.background.Go(func() { t.countAll(d) })
	}
	t.count.stats, t.count.at, t.count.indexes = stats, now, d.readableIndexes()
	return stats, nil
}

// countAll counts a large table and stores the result. It stops when the engine closes.
func (t *Table) countAll(d *TableDesc) {
	now := t.e.Now()
	stats, complete, err := t.e.countTable(t.e.life, d, now, int(^uint(0)>>1))
	t.count.Lock()
	defer t.count.Unlock()
	t.count.running = false
	if err == nil && complete {
		t.count.stats, t.count.at, t.count.indexes = stats, now, d.readableIndexes()
	}
}

// countTable counts the items alive at now, up to limit entries in all.
func (e *Engine) countTable(ctx context.Context, d *TableDesc, now Instant, limit int) (stats TableStats, complete bool, err error) {
	stats.Indexes = map[string]IndexStats{}
	count := func(lower, upper []byte) (n IndexStats) {
		if err != nil || limit <= 0 {
			return n
		}
		err = eachReadable(e.kv, lower, upper, func(_, value []byte) (more bool, err error) {
			limit--
			if limit%1024 == 0 && ctx.Err() != nil {
				return false, ctx.Err()
			}
			h, _, err := splitStored(value)
			if err == nil && !d.expired(h, now) {
				n.Items++
				n.Bytes += int64(h.size)
			}
			return limit > 0, err
		}, func([]byte, error) {})
		return n
	}
	items := count(tableSpan(spaceItems, d.ID))
	stats.Items, stats.Bytes = items.Items, items.Bytes
	for i := range d.Indexes {
		ix := &d.Indexes[i]
		stats.Indexes[ix.Name] = count(indexSpan(d.ID, ix.ID))
	}
	return stats, limit > 0, err
}
