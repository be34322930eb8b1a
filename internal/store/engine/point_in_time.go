package engine

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// A restore to an instant begins like one from a backup: a checkpoint, here with the history too,
// and a table under restore. Its first half copies each item of the checkpoint that existed at the
// instant, as far as its present form shows. The second half goes through the history records after
// the instant, newest first, and undoes the change of each. So the last record that it applies for a
// key is the first change after the instant.
//
// Both halves judge an item by the table's TTL setting at the instant, and both keep the table's
// index entries right, so no third half needs to build them.

// RestoreToInstant creates a table with the items that another one had at an instant: every change
// at that instant or before it is in, and no later one. At Never it takes the present instant. target
// returns the description of the new table; its error is returned unchanged.
//
// It returns ErrTableNotFound, ErrTableCreating, ErrNoHistory or ErrRestoreInstant about the source,
// and the errors of CreateTable.
func (e *Engine) RestoreToInstant(ctx context.Context, namespace, source string, at Instant, target func(d *TableDesc) (TableDesc, error)) (*Table, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	t, err := e.Table(namespace, source)
	if err != nil {
		return nil, err
	}
	next, err := target(t.Desc())
	if err != nil {
		return nil, err
	}
	if _, err := e.TableToDescribe(namespace, next.Name); err == nil {
		return nil, ErrTableExists
	}
	point := historyPoint{kind: backupRestore, at: at, since: Never}
	b, err := e.restorePoint(t, &point)
	if err != nil {
		return nil, err
	}
	at = point.at
	next.Restore = RestoreDesc{Backup: b.ID, Table: source, At: at, Running: true, ToInstant: true}
	created, err := e.CreateTable(ctx, next)
	if err != nil {
		e.catalogue.changing.Lock()
		defer e.catalogue.changing.Unlock()
		return nil, errors.Join(err, e.endToInstant(&next))
	}
	return created, nil
}

// historyPoint is an instant in the history of a table, for which a checkpoint is made.
type historyPoint struct {
	kind  BackupKind // of the checkpoint
	at    Instant    // Never: the present one; checkpointAt replaces it
	since Instant    // the history is needed from here on; Never: from the instant on
	// the checkpoint has the deadlines too, and Never means the last instant that has passed: no
	// change at it follows
	deadlines bool
}

// restorePoint makes the checkpoint of a restore to an instant.
func (e *Engine) restorePoint(t *Table, p *historyPoint) (*BackupDesc, error) {
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	return e.checkpointAt(t, p, nil)
}

// checkpointAt makes the checkpoint for an instant. also adds changes to the commit that completes it;
// nil: none. The caller holds changing.
func (e *Engine) checkpointAt(t *Table, p *historyPoint, also func(c *commit, b *BackupDesc)) (*BackupDesc, error) {
	d, err := t.live()
	switch {
	case err != nil:
		return nil, err
	case d.History.Days == 0:
		return nil, ErrNoHistory
	case e.full():
		return nil, ErrDiskFull
	}
	spaces := []byte{spaceItems, spaceHistory}
	if p.deadlines {
		spaces = append(spaces, spaceDeadlines)
	}
	b := &BackupDesc{Kind: p.kind, Table: *d.clone()}
	err = e.beginBackup(b, func(now Instant) error {
		if p.at == Never {
			if p.at = now; p.deadlines {
				p.at--
			}
		}
		earliest := d.History.Earliest(now)
		if p.at > now || p.deadlines && p.at == now || p.at < earliest || p.since < earliest {
			return ErrRestoreInstant
		}
		return nil
	}, spaces...)
	if err != nil {
		return nil, err
	}
	err = e.commitNew(func(c *commit) error {
		// records that are needed may have gone before the checkpoint
		if t.history.trimmed > p.at || t.history.trimmed >= p.since {
			return ErrRestoreInstant
		}
		e.setBackup(c.batch, b)
		if also != nil {
			also(c, b)
		}
		return nil
	}, nil)
	if err != nil {
		return nil, errors.Join(err, e.deleteBackup(b.ID))
	}
	return b, nil
}

// endToInstant removes the checkpoint of a restore to an instant, which has ended. A crash before it
// leaves that to the next start. The caller holds changing.
func (e *Engine) endToInstant(d *TableDesc) error {
	if !d.Restore.ToInstant {
		return nil
	}
	return e.deleteBackup(d.Restore.Backup)
}

// undoStep applies one slice of history records. It reports whether no record was left.
func (t *Table) undoStep(d *TableDesc) (done bool, err error) {
	before, last, err := t.undoSlice(d)
	if err != nil || last == nil {
		return err == nil, err
	}
	b := t.e.kv.NewBatch()
	defer t.e.release(b)
	for _, suffix := range slices.Sorted(maps.Keys(before)) {
		if err := t.putBack(b, d, []byte(suffix), before[suffix]); err != nil {
			return false, err
		}
	}
	b.Set(idKey(catUndo, d.ID), last)
	c, err := t.e.commitSection(b, func(*commit) error {
		if t.desc.Load() != d {
			return errStale
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	return false, t.e.finish(c)
}

// undoSlice reads the next history records, newest first. It returns what each key held before the
// oldest of them, and the last record's key behind its table, or nil if there is none.
func (t *Table) undoSlice(d *TableDesc) (before map[string][]byte, last []byte, err error) {
	id := t.source.d.ID
	_, upper := tableSpan(spaceHistory, id)
	after, ok, err := get(t.e.kv, idKey(catUndo, d.ID))
	if err != nil {
		return nil, nil, err
	}
	if ok {
		upper = append(appendTablePrefix(nil, spaceHistory, id), after...)
	}
	defer func() { err = damagedSource(err) }() // from here on only the source is read
	it := t.source.store.NewIter(appendHistoryKey(nil, id, t.source.at+1, 0), upper)
	defer it.Close()
	before = map[string][]byte{}
	size := 0
	for ok := it.Last(); ok && len(before) < t.e.backfillItems && size < sliceBytes; ok = it.Prev() {
		value := it.Value()
		if it.Error() != nil {
			break
		}
		suffix, stored, err := splitHistory(value)
		if err != nil {
			return nil, nil, err
		}
		before[string(suffix)] = bytes.Clone(stored)
		size += len(value)
		last = append(last[:0], it.Key()[tablePrefixLen:]...)
	}
	return before, last, it.Error()
}

// putBack undoes one change in the table under restore: it stores the former item if that existed at
// the instant, and otherwise deletes the present one.
func (t *Table) putBack(b *kv.Batch, d *TableDesc, suffix, stored []byte) error {
	k, err := d.keyFromSuffix(suffix)
	if err != nil {
		return damagedSource(err)
	}
	var nowHeader, wasHeader header
	var now, was dynamo.Item
	value, found, err := get(t.e.kv, k.bytes())
	if err != nil {
		return err
	}
	if found {
		if nowHeader, now, err = splitStored(value); err != nil {
			return err
		}
	}
	if len(stored) > 0 {
		if wasHeader, was, err = splitStored(stored); err != nil {
			return damagedSource(err)
		}
		if t.source.d.expired(wasHeader, t.source.at) {
			was = nil
		} else {
			t.source.checkRestored(d, wasHeader)
			wasHeader = noDeadline(0, wasHeader.size)
		}
	}
	if now == nil && was == nil {
		return nil
	}
	d.putItem(b, k, now, was, nowHeader, wasHeader, nil)
	return nil
}
