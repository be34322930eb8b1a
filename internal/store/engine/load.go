package engine

import (
	"context"
	"encoding/json"
	"sort"

	"github.com/cespare/xxhash/v2"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// A table under import is hidden like one under restore. No call reads or changes it, and it has
// neither TTL nor a stream, so its items need none of the locks and checks of other writes.

// BeginImport creates a table under import together with the row of the import, with the details that
// it gets for them. It returns ErrTableExists, ErrTooManyJobs or ErrDiskFull.
func (e *Engine) BeginImport(ctx context.Context, d TableDesc, details func(Begun) json.RawMessage) (job *Job, err error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	if err := e.makeRoomForJob(); err != nil {
		return nil, err
	}
	id := e.newBackupID(e.Now())
	d.Restore = RestoreDesc{Import: id, Running: true}
	_, err = e.createTable(ctx, d, func(c *commit, created *TableDesc) {
		job = &Job{ID: id, Kind: JobImport, Running: true, Details: details(Begun{ID: id, Now: c.now, Table: created})}
		e.setJob(c, job)
	})
	return job, err
}

// TableOf returns the table of an import in progress, or ErrTableNotFound.
func (e *Engine) TableOf(job *Job) (*Table, error) {
	for _, t := range e.Tables() {
		if d := t.Desc(); d.Restore.Running && d.Restore.Import == job.ID {
			return t, nil
		}
	}
	return nil, ErrTableNotFound
}

// Clear removes the items of a table under import, before an interrupted import begins again. Until
// then Load must not be called.
func (t *Table) Clear() error {
	if err := t.e.enter(); err != nil {
		return err
	}
	defer t.e.leave()
	t.loading.Lock()
	defer t.loading.Unlock()
	t.loaded = seen{}
	return t.e.commitNew(func(c *commit) error {
		d := t.desc.Load()
		if d == nil || !d.Restore.Running {
			return ErrTableNotFound
		}
		for _, space := range []byte{spaceItems, spaceIndexes} {
			c.batch.DeleteRange(tableSpan(space, d.ID))
		}
		return nil
	}, nil)
}

// EndImport writes the last row of an import, and makes its table usable or removes it. t may be nil
// for a table that is missing.
func (e *Engine) EndImport(_ context.Context, job *Job, t *Table, keep bool, details func(now Instant) json.RawMessage) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	end := func(c *commit) {
		e.setJob(c, &Job{ID: job.ID, Kind: JobImport, Details: details(c.now)})
	}
	if t == nil {
		return e.commitNew(func(c *commit) error { end(c); return nil }, nil)
	}
	t.loading.Lock()
	defer t.loading.Unlock()
	t.loaded = seen{}
	if !keep {
		return e.drop(t, t.Desc(), nil, end)
	}
	next := t.Desc().clone()
	next.Restore = RestoreDesc{}
	next.Version++
	return e.commitNew(func(c *commit) error {
		setDesc(c.batch, next, e.catalogue.ids)
		e.change(t, next)
		end(c)
		return nil
	}, nil)
}

// RemoveOrphans removes tables under import whose import is not in progress: its row was damaged.
func (e *Engine) RemoveOrphans(context.Context) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	for _, t := range e.Tables() {
		d := t.Desc()
		if !d.Restore.Running || d.Restore.Import == "" || e.jobRunning(d.Restore.Import) {
			continue
		}
		e.log.Error("a table is removed, because its import is unknown", "table", d.Name, "import", d.Restore.Import)
		if err := e.drop(t, d, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Loaded is an item for a table under import, with its key.
type Loaded struct {
	Key  Key
	Item dynamo.Item
}

// LoadedOf checks an item for a table, and returns it with its key. Its error is a *KeyError.
func (d *TableDesc) LoadedOf(item dynamo.Item) (l Loaded, err error) {
	if l.Key, err = d.KeyOf(item); err != nil {
		return l, err
	}
	l.Item = item
	return l, d.CheckIndexKeys(item, nil)
}

// Load puts items into a table under import, durable when it returns. It sorts them. An item replaces
// an earlier one of the same key. It is safe for concurrent use. It returns ErrDiskFull, and ErrTableNotFound after
// EndImport.
func (t *Table) Load(items []Loaded) error {
	e := t.e
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if e.full() {
		return ErrDiskFull
	}
	b := e.kv.NewBatch()
	defer e.release(b)
	t.loading.Lock() // from the reading of the replaced items to the batch
	c, err := func() (*commit, error) {
		defer t.loading.Unlock()
		d := t.Desc()
		if !d.Restore.Running {
			return nil, ErrTableNotFound
		}
		// Keys in order go faster into the store's memtable.
		sort.SliceStable(items, func(i, j int) bool { return items[i].Key.enc < items[j].Key.enc })
		for i := range items {
			if i+1 < len(items) && items[i].Key.enc == items[i+1].Key.enc {
				continue // of the items with the same key, only the last one
			}
			if err := t.load(d, b, &items[i]); err != nil {
				return nil, err
			}
		}
		return e.commitSection(b, func(*commit) error {
			if t.desc.Load() != d {
				return ErrTableNotFound
			}
			return nil
		})
	}()
	if err != nil {
		return err
	}
	return e.finish(c)
}

// seen is a set of keys in bounded memory, a Bloom filter with three hashes. For up to about ten
// million keys, some per cent of those that it reports are not in it, and more beyond that.
type seen struct{ bits []uint64 }

const seenBits = 1 << 26 // 8 MB

// add adds a key, and reports whether it may have been there before.
func (s *seen) add(key string) (maybe bool) {
	if s.bits == nil {
		s.bits = make([]uint64, seenBits/64)
	}
	maybe = true
	h := xxhash.Sum64String(key)
	for range 3 {
		word, bit := &s.bits[h%seenBits/64], uint64(1)<<(h%64)
		maybe = maybe && *word&bit != 0
		*word |= bit
		h = h>>26 | h<<38
	}
	return maybe
}

// load adds an item to a batch. Only the entries of indexes need the item that it replaces.
func (t *Table) load(d *TableDesc, b *kv.Batch, l *Loaded) error {
	var oldHeader header
	var old dynamo.Item
	if len(d.Indexes) > 0 && t.loaded.add(l.Key.enc) {
		value, found, err := get(t.e.kv, l.Key.bytes())
		if err == nil && found {
			oldHeader, old, err = splitStored(value)
		}
		if err != nil {
			return err
		}
	}
	d.putItem(b, l.Key, old, l.Item, oldHeader, noDeadline(0, l.Item.Size()), nil)
	return nil
}
