package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// formatVersion names the storage format, which FORMAT.md describes. Open upgrades a directory of
// an earlier version and refuses one of a later version.
const (
	formatName    = "mayfly format "
	formatVersion = formatName + "5"
)

type tableName struct{ namespace, name string }

// catalogue holds the open tables. Their descriptions are stored as JSON, because they are small,
// rarely change and gain members over time.
type catalogue struct {
	mu     sync.RWMutex
	tables map[tableName]*Table

	changing sync.Mutex    // serializes changes of descriptions
	ids      ids           // guarded by changing
	commit   atomic.Uint64 // number of the last commit that changed a table's description
}

// ids holds the last identifier of each kind. None is ever used twice.
type ids struct {
	Table    uint32
	Stream   uint32
	Revision Instant `json:",omitzero"` // of resource policies
}

// isFormatBefore reports whether Open upgrades this format version.
func isFormatBefore(version string) bool {
	return version == formatName+"1" || version == formatName+"2" || version == formatName+"3" || version == formatName+"4"
}

// isJournaled reports whether a directory of this format version has a journal of its files.
func isJournaled(version string) bool {
	return version == formatVersion || version == formatName+"3" || version == formatName+"4"
}

// checkFormat writes the format version into a store that is empty or of an earlier version. It
// returns an error for any other version.
func (e *Engine) checkFormat() error {
	v, ok, err := get(e.kv, catalogueKey(catFormat))
	if err != nil {
		return err
	}
	if isJournaled(string(v)) && e.kv.Unjournaled() {
		e.log.Warn("the journal of the directory's files was lost and is created again; files that were lost with it went unnoticed", "file", kv.JournalName)
	}
	switch {
	case string(v) == formatVersion:
		return nil
	case ok && !isFormatBefore(string(v)):
		number, err := strconv.ParseUint(strings.TrimPrefix(string(v), formatName), 10, 32)
		if err != nil || number == 0 || string(v) != formatName+strconv.FormatUint(number, 10) {
			return corrupt("%q is no format version", v)
		}
		return fmt.Errorf("%w: the directory has format %q, this program writes %q; open it with the version of mayfly that wrote it", ErrFormat, v, formatVersion)
	case !ok:
		if err := e.checkEmpty(); err != nil {
			return err
		}
	}
	b := e.kv.NewBatch()
	defer b.Close()
	b.Set(catalogueKey(catFormat), []byte(formatVersion))
	if err := e.kv.Apply(b); err != nil {
		return err
	}
	return e.kv.Wait(b)
}

// checkEmpty returns an error if the store holds anything.
func (e *Engine) checkEmpty() error {
	it := e.kv.NewIter(nil, nil)
	defer it.Close()
	if it.First() {
		return corrupt("the store holds data without a format version")
	}
	return it.Error()
}

// clockIn returns the last instant in a state of the store, and the last sequence number before it.
func (e *Engine) clockIn(r kv.Reader) (Instant, uint64, error) {
	v, ok, err := get(r, catalogueKey(catClock))
	if err != nil || !ok {
		return minInstant, 0, err
	}
	if len(v) != 2*instantLen {
		return 0, 0, corrupt("clock key has %d bytes", len(v))
	}
	return readInstant(v), binary.BigEndian.Uint64(v[instantLen:]), nil
}

// loadTables opens every table of the catalogue.
func (e *Engine) loadTables() error {
	key := catalogueKey(catIDs)
	v, ok, err := get(e.kv, key)
	if err != nil {
		return err
	}
	if ok {
		if err := json.Unmarshal(v, &e.catalogue.ids); err != nil {
			return corrupt("catalogue key %q: %v", key, err)
		}
	}
	return e.eachCatalogue(catTable, func(_, value []byte) error {
		d := &TableDesc{}
		if err := json.Unmarshal(value, d); err != nil {
			return corrupt("table description: %v", err)
		}
		return e.openTable(d)
	})
}

// openTable creates the Table of a description.
func (e *Engine) openTable(d *TableDesc) error {
	stored := minInstant
	v, ok, err := get(e.kv, idKey(catMark, d.ID))
	if err != nil {
		return err
	}
	if ok {
		if len(v) != instantLen {
			return corrupt("low-water mark has %d bytes", len(v))
		}
		stored = readInstant(v)
	}
	t := e.newTable(d, stored)
	d.countUnits(e.points)
	if d.NextIndex == 0 { // written before tables could add and remove indexes
		d.NextIndex = d.firstFreeIndex()
	}
	if err := t.openHistory(d); err != nil {
		return err
	}
	e.publish(t, d)
	t.due.Wake(int64(stored))
	t.soon.Wake(int64(minInstant))
	if d.needsBackfill() {
		e.requestBackfill()
	}
	return nil
}

func (e *Engine) publish(t *Table, d *TableDesc) {
	t.desc.Store(d)
	t.last.Store(d)
	e.catalogue.mu.Lock()
	e.catalogue.tables[tableName{d.Namespace, d.Name}] = t
	e.catalogue.mu.Unlock()
}

// change makes d the table's description from the present commit on; nil drops the table. The
// caller is inside the commit section. Plans under the earlier description are stale from here on.
func (e *Engine) change(t *Table, d *TableDesc) {
	n := e.lastCommit.Load() + 1
	e.catalogue.commit.Store(n)
	t.changed.Store(n)
	if d != nil {
		e.publish(t, d)
		return
	}
	last := t.Desc()
	t.desc.Store(nil)
	e.catalogue.mu.Lock()
	delete(e.catalogue.tables, tableName{last.Namespace, last.Name})
	e.catalogue.mu.Unlock()
}

// waitCatalogue waits until the commit numbered changed is durable. Read the descriptions before:
// a change that is published sets its number first, so none that was read is missed.
func (e *Engine) waitCatalogue(changed *atomic.Uint64) error {
	if err := e.ready(); err != nil {
		return err
	}
	return e.waitDurable(changed.Load())
}

// Table returns a table by name, once the last change of its description is durable. It returns
// ErrTableCreating for a table under restore.
func (e *Engine) Table(namespace, name string) (*Table, error) {
	t, err := e.TableToDescribe(namespace, name)
	if err == nil && t.Desc().Restore.Running {
		return nil, ErrTableCreating
	}
	return t, err
}

// TableToDescribe is Table for descriptions: it also returns a table under restore.
func (e *Engine) TableToDescribe(namespace, name string) (*Table, error) {
	e.catalogue.mu.RLock()
	t := e.catalogue.tables[tableName{namespace, name}]
	e.catalogue.mu.RUnlock()
	if err := e.waitCatalogue(&e.catalogue.commit); err != nil {
		return nil, err
	}
	if t == nil {
		return nil, ErrTableNotFound
	}
	return t, nil
}

// UnitsOf returns the counters of a table, or nil. Table waits until the table's description is
// durable; UnitsOf does not, since no answer depends on these counts.
func (e *Engine) UnitsOf(namespace, name string) *Units {
	if d := e.DescOf(namespace, name); d != nil {
		return d.Units
	}
	return nil
}

// DescOf returns the present description of a table, or nil. Like UnitsOf it does not wait.
func (e *Engine) DescOf(namespace, name string) *TableDesc {
	e.catalogue.mu.RLock()
	defer e.catalogue.mu.RUnlock()
	if t := e.catalogue.tables[tableName{namespace, name}]; t != nil {
		return t.Desc()
	}
	return nil
}

// TableNames returns up to limit table names of a namespace that follow after, in ascending order,
// and reports whether more exist. Like Table it waits until the answer is durable.
func (e *Engine) TableNames(namespace, after string, limit int) (names []string, more bool, err error) {
	e.catalogue.mu.RLock()
	for n := range e.catalogue.tables {
		if n.namespace == namespace && n.name > after {
			names = append(names, n.name)
		}
	}
	e.catalogue.mu.RUnlock()
	if err := e.waitCatalogue(&e.catalogue.commit); err != nil {
		return nil, false, err
	}
	sort.Strings(names)
	if len(names) > limit {
		return names[:limit], true, nil
	}
	return names, false, nil
}

// Tables returns every open table, in no order.
func (e *Engine) Tables() []*Table {
	e.catalogue.mu.RLock()
	defer e.catalogue.mu.RUnlock()
	return slices.Collect(maps.Values(e.catalogue.tables))
}

// CreateTable creates a table from a description, and fills in the identifiers, the creation time,
// the stream and the policy's revision. It returns ErrTableExists if the name is taken. A table
// whose Restore is Running gets the items of the backup in the background; for it CreateTable may
// return ErrBackupNotFound or ErrTooManyRestores.
func (e *Engine) CreateTable(ctx context.Context, d TableDesc) (*Table, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	return e.createTable(ctx, d, nil)
}

// createTable is CreateTable for a caller that holds changing. also adds changes to the commit; nil:
// none.
func (e *Engine) createTable(_ context.Context, d TableDesc, also func(c *commit, created *TableDesc)) (*Table, error) {
	if _, err := e.TableToDescribe(d.Namespace, d.Name); err == nil {
		return nil, ErrTableExists
	} else if err != ErrTableNotFound {
		return nil, err
	}
	if e.full() {
		return nil, ErrDiskFull
	}
	if d.Restore.Running && d.Restore.Import == "" {
		if err := e.checkRestore(d.Restore.Backup); err != nil {
			return nil, err
		}
	}
	next := e.catalogue.ids
	next.Table++
	d.ID, d.UUID, d.Version = next.Table, newUUID(), 1
	d.Indexes = slices.Clone(d.Indexes)
	d.countUnits(e.points)
	t := e.newTable(&d, Never)
	err := e.commitNew(func(c *commit) error {
		d.Created = c.now
		for i := range d.Indexes {
			d.Indexes[i].ID, d.Indexes[i].Created = uint16(i+1), c.now
		}
		d.NextIndex = d.firstFreeIndex()
		if d.TTL.Attribute != "" {
			d.TTL.Generation = 1
		}
		if d.Stream.ViewType != "" {
			next.Stream++
			e.startStream(c.batch, ownStream, &d, next.Stream, c.now)
		}
		next.revise(&d.API.Policy, ResourcePolicy{}, c.now)
		c.batch.Set(idKey(catMark, d.ID), appendInstant(nil, Never))
		setDesc(c.batch, &d, next)
		e.change(t, &d)
		if also != nil {
			also(c, &d)
		}
		return nil
	}, func() {
		e.catalogue.ids = next
		if d.needsBackfill() {
			e.requestBackfill()
		}
	})
	if err != nil {
		t.stop()
		return nil, err
	}
	return t, nil
}

// setDesc writes a description and the identifiers.
func setDesc(b *kv.Batch, d *TableDesc, next ids) {
	setJSON(b, tableCatalogueKey(d.Namespace, d.Name), d)
	setJSON(b, catalogueKey(catIDs), next)
}

// setJSON writes a description, whose type always marshals.
func setJSON(b *kv.Batch, key []byte, desc any) {
	value, err := json.Marshal(desc)
	invariant.Check(err == nil, "%T does not marshal: %v", desc, err)
	b.Set(key, value)
}

// Alter changes a table's description. change edits a copy: TTL.Attribute (empty: off), TTL.Expiry,
// Stream.ViewType (empty: off), Stream.Shards, Feed.Destination (empty: off), Feed.Precision,
// History.Days (0: off), API, and Indexes, where it adds entries with ID 0 or removes entries. The
// engine derives the TTL generation, the stream, the feed, the backfills, the indexes' numbers and
// the policy's revision. An added index is Building until a backfill has added an entry for every
// item.
//
// Alter returns an error of change unchanged, and then alters nothing. For an added index it may
// return ErrDiskFull or ErrIndexesUsedUp.
func (e *Engine) Alter(ctx context.Context, namespace, name string, change func(d *TableDesc, now Instant) error) (*TableDesc, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	t, err := e.Table(namespace, name)
	if err != nil {
		return nil, err
	}
	old, err := t.live()
	if err != nil {
		return nil, err
	}
	next, full := e.catalogue.ids, e.full()
	d := old.clone()
	err = e.commitNew(func(c *commit) error {
		if err := change(d, c.now); err != nil {
			return err
		}
		d.Version++
		next.revise(&d.API.Policy, old.API.Policy, c.now)
		if d.TTL.Attribute != old.TTL.Attribute || d.TTL.Attribute != "" && d.TTL.Expiry != old.TTL.Expiry {
			e.startGeneration(c.batch, old, d, c.now)
		}
		if err := e.changeIndexes(c.batch, old, d, c.now, full); err != nil {
			return err
		}
		t.changeHistory(c.batch, old, d, c.now)
		if d.Stream.ViewType != old.Stream.ViewType {
			if old.Stream.ViewType != "" {
				e.disableStream(c.batch, old.Stream.ID, c.now)
			}
			if d.Stream.ViewType != "" {
				next.Stream++
				e.startStream(c.batch, ownStream, d, next.Stream, c.now)
			}
		}
		e.changeFeed(c.batch, old, d, &next, c.now)
		setDesc(c.batch, d, next)
		e.change(t, d)
		return nil
	}, func() {
		e.catalogue.ids = next
		t.soon.Wake(int64(minInstant)) // removals may need the items from now on
		if trim := t.history.trim.Load(); trim != nil && d.History.Days != old.History.Days {
			trim.Wake(int64(minInstant)) // a shorter period has aged records
		}
		if d.needsBackfill() {
			e.requestBackfill()
		}
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// startGeneration begins the TTL generation of d at now, and asks for the backfill that moves the
// items of earlier generations to it. Until then their deadlines count as d.TTL.Ended says.
func (e *Engine) startGeneration(b *kv.Batch, old, d *TableDesc, now Instant) {
	for i := range d.TTL.Ended {
		d.TTL.Ended[i].At = min(d.TTL.Ended[i].At, now)
	}
	end := GenerationEnd{Generation: old.TTL.Generation, At: now}
	switch {
	case old.TTL.Generation == 0: // no item of generation 0 has a deadline
	case old.TTL.Expiry.Mode == ExpiryStrict:
		d.TTL.Ended = append(d.TTL.Ended, end)
	case d.TTL.Expiry.Mode == ExpiryStrict && d.TTL.Attribute == old.TTL.Attribute:
		end.At = Never // strict from this instant on, not only after the backfill
		d.TTL.Ended = append(d.TTL.Ended, end)
	default: // aws expiry has hidden nothing that must stay hidden
	}
	d.TTL.Generation = old.TTL.Generation + 1
	d.TTL.Since = now
	d.TTL.Backfill = true
	b.Delete(idKey(catBackfill, d.ID))
}

// clone returns a copy deep enough to edit.
func (d *TableDesc) clone() *TableDesc {
	c := *d
	c.Indexes = slices.Clone(d.Indexes)
	c.TTL.Ended = slices.Clone(d.TTL.Ended)
	c.History.TTL = slices.Clone(d.History.TTL)
	c.API.Definitions = slices.Clone(d.API.Definitions)
	c.API.Tags = maps.Clone(d.API.Tags)
	return &c
}

// DropTable deletes a table with all its items in one batch. It returns an error of allow
// unchanged, and then deletes nothing; a nil allow permits the deletion. The stream is disabled and
// stays readable until its records age out. For a table with a history DropTable makes a backup of
// kind BackupDeleted.
func (e *Engine) DropTable(ctx context.Context, namespace, name string, allow func(d *TableDesc) error) (*TableDesc, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	t, err := e.Table(namespace, name)
	if err != nil {
		return nil, err
	}
	var stats TableStats
	if t.Desc().History.Days != 0 { // its backup shows its size; no other change waits for the count
		if stats, err = t.Stats(ctx); err != nil {
			return nil, err
		}
	}
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	if now, err := e.Table(namespace, name); err != nil {
		return nil, err
	} else if now != t { // dropped, and another one created
		return nil, ErrTableNotFound
	}
	d := t.Desc() // stable: this call holds changing
	if allow != nil {
		if err := allow(d); err != nil {
			return nil, err
		}
	}
	last, err := e.backUpDeleted(d, stats)
	if err != nil {
		return nil, err
	}
	if err := e.drop(t, d, last, nil); err != nil {
		return nil, err
	}
	if last != nil {
		e.expiring.Wake(int64(last.Expires))
	}
	return d, nil
}

// drop deletes a table, and completes its last backup, if there is one. also adds changes to the
// commit; nil: none. The caller holds changing.
func (e *Engine) drop(t *Table, d *TableDesc, last *BackupDesc, also func(*commit)) error {
	err := e.commitNew(func(c *commit) error {
		b := c.batch
		b.Delete(tableCatalogueKey(d.Namespace, d.Name))
		b.Delete(idKey(catMark, d.ID))
		b.Delete(idKey(catBackfill, d.ID))
		b.Delete(idKey(catRestore, d.ID))
		b.Delete(idKey(catUndo, d.ID))
		b.DeleteRange(idKey(catBuild, d.ID), idKey(catBuild, d.ID+1))
		for _, space := range []byte{spaceItems, spaceIndexes, spaceDeadlines, spaceHistory} {
			b.DeleteRange(tableSpan(space, d.ID))
		}
		if d.Stream.ViewType != "" {
			e.disableStream(b, d.Stream.ID, c.now)
		}
		e.endFeeds(b, d, c.now)
		if last != nil {
			e.setBackup(b, last)
		}
		if also != nil {
			also(c)
		}
		e.change(t, nil)
		return nil
	}, t.stop)
	if err == nil && e.opts.OnDrop != nil {
		e.opts.OnDrop(d.Namespace, d.Name)
	}
	return err
}

// get returns a copy of a key's value, so that it pins nothing of the store.
func get(r kv.Reader, key []byte) (value []byte, ok bool, err error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	value = bytes.Clone(v)
	return value, true, closer.Close()
}

// newUUID returns a random (version 4) UUID.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// eachCatalogue calls fn for every catalogue entry of a kind.
func (e *Engine) eachCatalogue(kind byte, fn func(key, value []byte) error) error {
	it := e.kv.NewIter(catalogueKey(kind), catalogueKey(kind+1))
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := fn(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Error()
}
