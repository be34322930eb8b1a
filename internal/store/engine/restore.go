package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// A table under restore is in the catalogue, and only its description is shown: Table returns
// ErrTableCreating, so that no call reads or changes it. The loop of the backfills copies the items
// that exist in the backup, slice by slice, each with its index entries and the position in one
// batch. They get TTL generation 0 and no deadline, since the new table has no TTL. So an item
// whose deadline has passed since the backup is alive until TTL is enabled, and expires then as any
// overdue item does. No stream exists, so no record is written.

// RestoreDesc says from which backup or import a table is made. The zero value means from none.
type RestoreDesc struct {
	Backup  string  // its ID; it may have been deleted
	Table   string  // the source table
	At      Instant // when the backup was created, or the instant of a restore to an instant
	Running bool    `json:",omitzero"` // items are missing, so the table cannot be used
	// the table is a copy of its source at At; Backup is empty when the restore has ended
	ToInstant bool `json:",omitzero"`
	// the table is under import, by the job of this ID; all but Running is then empty
	Import string `json:",omitzero"`
}

// source says from what a table under restore or import is made.
func (r *RestoreDesc) source() string {
	if r.Import != "" {
		return "import " + r.Import
	}
	return "restore from the backup " + r.Backup
}

// source is a backup that a table is restored from.
type source struct {
	store *kv.ReadOnly
	d     *TableDesc // the backup's table
	at    Instant    // of the backup's last commit, or the one to restore to
}

// sourcesMax bounds the backups that are open at once, and with them the memory for the log that
// each of them replays. Further restores wait until one of them is closed.
const sourcesMax = 2

// errRestoreFailed marks errors that end a restore for good.
var errRestoreFailed = errors.New("the backup cannot be read")

// damagedSource marks an error that comes from a source, if it is about damage, as errRestoreFailed.
// Damage of the store that holds the new table may be tried again.
func damagedSource(err error) error {
	if isDamage(err) {
		return fmt.Errorf("%w: %w", errRestoreFailed, err)
	}
	return err
}

// checkRestore checks that a restore may begin. The caller holds catalogue.changing.
func (e *Engine) checkRestore(id string) error {
	if _, err := e.anyBackup(id); err != nil {
		return err
	}
	running := 0
	for _, t := range e.Tables() {
		if d := t.Desc(); d.Restore.Running && d.Restore.Import == "" {
			running++
		}
	}
	if running >= restoresMax {
		return ErrTooManyRestores
	}
	return nil
}

// restoreRound copies the next items, or ends the restore. It reports whether another round is
// needed. If the backup is damaged, it removes the table: a part of a backup must not pass for all.
// After any other error the restore may continue, and meanwhile its source is closed.
func (t *Table) restoreRound(ctx context.Context, d *TableDesc) (more bool, err error) {
	if t.source == nil && t.e.openSources >= sourcesMax {
		t.e.sourceAwaited = true
		return false, ctx.Err()
	}
	done, err := t.restoreStep(d)
	if done && err == nil && d.Restore.ToInstant {
		done, err = t.undoStep(d)
	}
	switch {
	case errors.Is(err, errRestoreFailed):
		t.closeSource()
		t.e.log.Error("a restore has failed, and its table is removed", "table", d.Name, "backup", d.Restore.Backup, "error", err)
		return false, t.abandonRestore(d)
	case err != nil:
		t.closeSource()
		return false, err
	case done:
		t.closeSource()
		return false, t.endRestore(d)
	}
	return true, ctx.Err()
}

// openSource opens the backup of a restore.
func (t *Table) openSource(d *TableDesc) error {
	b, err := t.e.anyBackup(d.Restore.Backup)
	if err == nil {
		t.source = &source{d: &b.Table}
		t.e.openSources++
		t.source.store, err = t.e.kv.OpenBelow(backupsDir, b.ID)
	}
	if err == nil {
		if t.source.at, _, err = t.e.clockIn(t.source.store); err == nil && t.source.at == minInstant {
			err = corrupt("it has no clock key")
		}
	}
	if err == nil && d.Restore.ToInstant {
		t.source.at = d.Restore.At
		t.source.d = b.Table.clone()
		t.source.d.TTL = b.Table.History.ttlAt(d.Restore.At)
	}
	if err != nil {
		t.closeSource()
	}
	if errors.Is(err, ErrBackupNotFound) || isDamage(err) {
		return fmt.Errorf("%w: %w", errRestoreFailed, err)
	}
	return err
}

// closeSource closes the backup of a restore, if it is open. If another restore waits for that, it
// asks for the backfills again.
func (t *Table) closeSource() {
	if t.source == nil {
		return
	}
	if t.source.store != nil {
		if err := t.source.store.Close(); err != nil {
			t.e.log.Warn("closing a backup failed", "table", t.Desc().Name, "error", err)
		}
	}
	t.source = nil
	t.e.openSources--
	if t.e.sourceAwaited {
		t.e.sourceAwaited = false
		t.e.requestBackfill()
	}
}

// restoreStep copies one slice of items. It reports whether no item was left.
func (t *Table) restoreStep(d *TableDesc) (done bool, err error) {
	if t.source == nil {
		if err := t.openSource(d); err != nil {
			return false, err
		}
	}
	b := t.e.kv.NewBatch()
	defer t.e.release(b)
	last, err := t.copySlice(b, d)
	if err != nil || last == nil {
		return err == nil, err
	}
	b.Set(idKey(catRestore, d.ID), last)
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

// copySlice adds the next items to a batch. It returns the suffix of the last key that it read, or
// nil if there is none.
func (t *Table) copySlice(b *kv.Batch, d *TableDesc) (last []byte, err error) {
	lower, upper := tableSpan(spaceItems, t.source.d.ID)
	after, ok, err := get(t.e.kv, idKey(catRestore, d.ID))
	if err != nil {
		return nil, err
	}
	if ok {
		lower = append(append(lower, after...), 0)
	}
	defer func() { err = damagedSource(err) }() // from here on only the source is read
	it := t.source.store.NewIter(lower, upper)
	defer it.Close()
	for ok, n := it.First(), 0; ok && n < t.e.backfillItems && b.Size() < sliceBytes; ok, n = it.Next(), n+1 {
		value := it.Value()
		if it.Error() != nil {
			break
		}
		last = append(last[:0], it.Key()[tablePrefixLen:]...)
		h, item, err := splitStored(value)
		if err != nil {
			return nil, err
		}
		if t.source.d.expired(h, t.source.at) && !invariant.Injected(invariant.RestoreExpired) {
			continue
		}
		k, err := d.keyFromSuffix(last)
		if err != nil {
			return nil, err
		}
		t.source.checkRestored(d, h)
		d.putItem(b, k, nil, bytes.Clone(item), header{}, noDeadline(0, h.size), nil)
	}
	return last, it.Error()
}

// endRestore makes the table usable.
func (t *Table) endRestore(d *TableDesc) error {
	e := t.e
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	if t.desc.Load() != d {
		return errStale
	}
	next := d.clone()
	next.Restore.Running = false
	if next.Restore.ToInstant {
		next.Restore.Backup = ""
	}
	next.Version++
	err := e.commitNew(func(c *commit) error {
		c.batch.Delete(idKey(catRestore, d.ID))
		c.batch.Delete(idKey(catUndo, d.ID))
		setDesc(c.batch, next, e.catalogue.ids)
		e.change(t, next)
		return nil
	}, nil)
	if err != nil {
		return err
	}
	return e.endToInstant(d)
}

// abandonRestore removes the table of a restore that has failed.
func (t *Table) abandonRestore(d *TableDesc) error {
	t.e.catalogue.changing.Lock()
	defer t.e.catalogue.changing.Unlock()
	if t.desc.Load() != d {
		return errStale
	}
	if err := t.e.drop(t, d, nil, nil); err != nil {
		return err
	}
	return t.e.endToInstant(d)
}

// closeSources closes the backups of all restores under way.
func (e *Engine) closeSources() {
	for _, t := range e.Tables() {
		t.closeSource()
	}
}
