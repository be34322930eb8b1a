package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// An export begins like a restore to an instant, with a checkpoint that has the table's history. Most
// items of the checkpoint are as they were at the instant. The others have changed since, and their
// first history records after the instant show how they were. These records are read into memory, up
// to a bound. Beyond it, the export handles the lower half of the keys first, and reads the history
// again for the rest.

// exportBytes bounds the memory for history records of one part of an export.
const exportBytes = 64 << 20

// Begun is what an export or import starts from.
type Begun struct {
	ID    string
	Now   Instant
	At    Instant    // of an export
	Table *TableDesc // the exported table, or the new one
}

// BeginExport makes the checkpoint of an export and its row, with the details that it gets for them.
// The export has the state at an instant; at Never, at the last instant that has passed. since is the
// instant of the first changes of an incremental export; Never: it is a full one.
//
// It returns ErrTableNotFound, ErrTableCreating, ErrNoHistory, ErrRestoreInstant, ErrTooManyJobs or
// ErrDiskFull.
func (e *Engine) BeginExport(_ context.Context, namespace, table string, since, at Instant, details func(Begun) json.RawMessage) (*Job, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	t, err := e.Table(namespace, table)
	if err != nil {
		return nil, err
	}
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	if err := e.makeRoomForJob(); err != nil {
		return nil, err
	}
	point := historyPoint{kind: backupExport, at: at, since: since, deadlines: since != Never}
	var job *Job
	_, err = e.checkpointAt(t, &point, func(c *commit, b *BackupDesc) {
		job = &Job{ID: b.ID, Kind: JobExport, Running: true, Details: details(Begun{b.ID, b.Created, point.at, &b.Table})}
		e.setJob(c, job)
	})
	return job, err
}

// EndExport writes the last row of an export and removes its checkpoint.
func (e *Engine) EndExport(_ context.Context, job *Job, details func(now Instant) json.RawMessage) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	err := e.commitNew(func(c *commit) error {
		e.removeBackup(c.batch, job.ID)
		e.setJob(c, &Job{ID: job.ID, Kind: JobExport, Details: details(c.now)})
		return nil
	}, nil)
	if err == nil {
		e.removeFiles(job.ID)
	}
	return err
}

// Exporter reads the state of a table at an instant. Its methods are safe for concurrent use.
type Exporter struct {
	source
	history HistoryDesc
	// the bound of the memory for history records; tests lower it
	bytes int
}

// OpenExport opens the checkpoint of an export, to read the state at an instant.
func (e *Engine) OpenExport(job *Job, at Instant) (*Exporter, error) {
	b, err := e.anyBackup(job.ID)
	if err != nil {
		return nil, err
	}
	x := &Exporter{source: source{d: b.Table.clone(), at: at}, history: b.Table.History, bytes: exportBytes}
	x.d.TTL = x.history.ttlAt(at)
	x.store, err = e.kv.OpenBelow(backupsDir, b.ID)
	return x, err
}

// Close closes the checkpoint.
func (x *Exporter) Close() error { return x.store.Close() }

// Table returns the table as it was when the export began, with the TTL setting of the instant.
func (x *Exporter) Table() *TableDesc { return x.d }

// Items calls yield for the items of a part of the table, in no order. The parts have about as many
// keys each. An item is valid until yield returns.
func (x *Exporter) Items(ctx context.Context, part, parts int, yield func(item dynamo.Item, size int) error) error {
	from, end := hashBound(part, parts), hashBound(part+1, parts)
	for {
		was, to, err := x.statesAt(ctx, from, end)
		if err == nil {
			err = x.items(ctx, from, to, was, yield)
		}
		if err != nil || bytes.Equal(to, end) {
			return err
		}
		from = to
	}
}

// hashBound returns the first suffix of a part's keys, or nil for the end of all keys.
func hashBound(part, parts int) []byte {
	if part == parts {
		return nil
	}
	return binary.BigEndian.AppendUint32(nil, uint32(uint64(part)<<32/uint64(parts)))
}

// itemKey returns the key of an item, or the end of the table's keys for nil.
func (x *Exporter) itemKey(suffix []byte) []byte {
	if suffix == nil {
		_, upper := tableSpan(spaceItems, x.d.ID)
		return upper
	}
	return append(appendTablePrefix(nil, spaceItems, x.d.ID), suffix...)
}

// eachChange calls fn for the history records since an instant whose keys lie between two suffixes,
// oldest first.
func (x *Exporter) eachChange(ctx context.Context, since Instant, from []byte, fn func(at Instant, suffix, stored []byte) error) error {
	_, upper := tableSpan(spaceHistory, x.d.ID)
	it := x.store.NewIter(appendHistoryKey(nil, x.d.ID, since, 0), upper)
	defer it.Close()
	for ok, n := it.First(), 0; ok; ok, n = it.Next(), n+1 {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		value := it.Value()
		if it.Error() != nil {
			break
		}
		suffix, stored, err := splitHistory(value)
		if err != nil {
			return err
		}
		if bytes.Compare(suffix, from) < 0 {
			continue
		}
		if err := fn(readInstant(it.Key()[tablePrefixLen:]), suffix, stored); err != nil {
			return err
		}
	}
	return it.Error()
}

// lowest is a map by suffix that keeps the lowest keys, within a bound of bytes.
type lowest[V any] struct {
	values map[string]V
	size   func(V) int
	bytes  int
	most   int
	end    []byte // keys from here on are left out
}

// entryOverhead is about what an entry takes in a map besides key and value.
const entryOverhead = 64

// within reports whether the map may have a key.
func (l *lowest[V]) within(suffix []byte) bool {
	return l.end == nil || bytes.Compare(suffix, l.end) < 0
}

// set adds or replaces an entry, and drops the upper half of the keys beyond the bound.
func (l *lowest[V]) set(suffix []byte, v V) {
	old, found := l.values[string(suffix)]
	if found {
		l.bytes -= l.size(old)
	} else {
		l.bytes += len(suffix) + entryOverhead
	}
	l.values[string(suffix)] = v
	if l.bytes += l.size(v); l.bytes <= l.most || len(l.values) < 2 {
		return
	}
	keys := slices.Sorted(maps.Keys(l.values))
	half := keys[len(keys)/2:]
	l.end = []byte(half[0])
	for _, key := range half {
		l.bytes -= len(key) + entryOverhead + l.size(l.values[key])
		delete(l.values, key)
	}
}

// statesAt returns the stored items at the instant of the export, for the keys between two suffixes
// that have changed since; an item that did not exist is empty. to is the end of the keys that the
// result has.
func (x *Exporter) statesAt(ctx context.Context, from, end []byte) (was map[string][]byte, to []byte, err error) {
	l := lowest[[]byte]{values: map[string][]byte{}, size: func(v []byte) int { return len(v) }, most: x.bytes, end: end}
	err = x.eachChange(ctx, x.at+1, from, func(_ Instant, suffix, stored []byte) error {
		if l.within(suffix) {
			if _, found := l.values[string(suffix)]; !found {
				l.set(suffix, bytes.Clone(stored))
			}
		}
		return nil
	})
	return l.values, l.end, err
}

// items yields the items between two suffixes. was has those that have changed since.
func (x *Exporter) items(ctx context.Context, from, to []byte, was map[string][]byte, yield func(item dynamo.Item, size int) error) error {
	show := func(stored []byte) error {
		item, h, err := x.d.shownAt(stored, x.at)
		if err != nil || item == nil {
			return err
		}
		return yield(item, h.size)
	}
	it := x.store.NewIter(x.itemKey(from), x.itemKey(to))
	defer it.Close()
	for ok, n := it.First(), 0; ok; ok, n = it.Next(), n+1 {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		value := it.Value()
		if it.Error() != nil {
			break
		}
		if len(was) > 0 {
			if _, changed := was[string(it.Key()[tablePrefixLen:])]; changed {
				continue
			}
		}
		if err := show(value); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	for _, stored := range was {
		if err := show(stored); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// shownAt returns a stored item and its header, or nil if it did not exist at an instant. stored is
// empty for no item.
func (d *TableDesc) shownAt(stored []byte, at Instant) (dynamo.Item, header, error) {
	if len(stored) == 0 {
		return nil, header{}, nil
	}
	h, item, err := splitStored(stored)
	if err != nil || d.expired(h, at) {
		return nil, h, err
	}
	return item, h, nil
}

// Change is the difference that an incremental export has for one key.
type Change struct {
	At       Instant     // of the last change
	Key      dynamo.Item // the key attributes
	Old, New dynamo.Item // before the first change, and after the last one; nil: no item. They differ
}

// difference is a key with changes since the beginning of an incremental export.
type difference struct {
	changed bool    // at the instant of the export or before; old and last are set
	last    Instant // of the last one
	old     []byte
	later   bool // the item has changed after the instant too, and at it was was
	was     []byte
}

// Changes calls yield for each key whose item was another one before an instant than it is at the
// instant of the export, in the order of the keys. A change is valid until yield returns. The export must have begun
// with this since.
//
// An item whose deadline has passed in that time has changed, even if it was removed only later.
func (x *Exporter) Changes(ctx context.Context, since Instant, yield func(Change) error) error {
	before := x.d.clone()
	before.TTL = x.history.ttlAt(since - 1)
	for from := []byte(nil); ; {
		found, to, err := x.differences(ctx, before, since, from)
		if err != nil {
			return err
		}
		for _, suffix := range slices.Sorted(maps.Keys(found)) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			change, ok, err := x.change(before, since, []byte(suffix), found[suffix])
			if err == nil && ok {
				err = yield(change)
			}
			if err != nil {
				return err
			}
		}
		if to == nil {
			return nil
		}
		from = to
	}
}

// differences returns the keys from a suffix on that may have changed since an instant. to is the end
// of the keys that the result has; nil: it has all.
func (x *Exporter) differences(ctx context.Context, before *TableDesc, since Instant, from []byte) (found map[string]difference, to []byte, err error) {
	l := lowest[difference]{values: map[string]difference{}, size: func(d difference) int { return len(d.old) + len(d.was) }, most: x.bytes}
	err = x.eachChange(ctx, since, from, func(at Instant, suffix, stored []byte) error {
		if !l.within(suffix) {
			return nil
		}
		d := l.values[string(suffix)]
		switch {
		case d.later:
			return nil
		case at > x.at:
			d.later, d.was = true, bytes.Clone(stored)
		case !d.changed:
			d.changed, d.last, d.old = true, at, bytes.Clone(stored)
		default:
			d.last = at
		}
		l.set(suffix, d)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	// Items that have passed their deadlines and wait for the reaper have no record yet. They are
	// armed for an instant that has passed, unless other rules applied when they were armed.
	lower, upper := tableSpan(spaceDeadlines, x.d.ID)
	if before.TTL.Generation == x.d.TTL.Generation {
		upper = appendDeadlineKey(nil, x.d.ID, x.at+1, nil)
	}
	it := x.store.NewIter(lower, upper)
	defer it.Close()
	for ok, n := it.First(), 0; ok; ok, n = it.Next(), n+1 {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		suffix := it.Key()[tablePrefixLen+instantLen:]
		if bytes.Compare(suffix, from) < 0 || !l.within(suffix) {
			continue
		}
		if _, known := l.values[string(suffix)]; !known {
			l.set(suffix, difference{})
		}
	}
	return l.values, l.end, it.Error()
}

// change returns the change of a key, and reports whether there is one. before is the table as it was
// before since.
func (x *Exporter) change(before *TableDesc, since Instant, suffix []byte, d difference) (c Change, ok bool, err error) {
	stored := d.was
	if !d.later {
		if stored, _, err = get(x.store, x.itemKey(suffix)); err != nil {
			return c, false, err
		}
	}
	now, h, err := x.d.shownAt(stored, x.at)
	if err != nil {
		return c, false, err
	}
	if !d.changed {
		// Without a change, the item has at most reached its deadline.
		old, _, err := before.shownAt(stored, since-1)
		if err != nil || now != nil || old == nil {
			return c, false, err
		}
		d.old, d.last = stored, since
	}
	if now == nil && len(stored) > 0 { // it has expired
		d.last = max(d.last, h.deadline)
	}
	if c.Old, _, err = before.shownAt(d.old, since-1); err != nil {
		return c, false, err
	}
	if c.Key, err = keyItem(x.d.Key, suffix); err != nil {
		return c, false, err
	}
	c.At, c.New = d.last, now
	return c, !bytes.Equal(c.Old, c.New), nil
}

// IsDamage reports whether an error of an Exporter says that a file is damaged.
func IsDamage(err error) bool { return isDamage(err) || errors.Is(err, ErrCorrupt) }
