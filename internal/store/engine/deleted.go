package engine

import (
	"context"
	"errors"
)

const (
	// deletedBackup follows the table's name in the name of the backup that its deletion makes.
	deletedBackup = "$DeletedTableBackup"
	// deletedBackupAge is the age at which such a backup is removed, as at Amazon.
	deletedBackupAge = 35 * dayMillis
)

// backUpDeleted makes the backup that the deletion of a table with a history leaves behind. It has
// every write that was acknowledged before the deletion was called. The row is Creating until the
// batch that drops the table, so a crash leaves either the table or the backup. It returns nil for a
// table without a history, and on a full disk, since the deletion makes room. The caller holds
// changing.
func (e *Engine) backUpDeleted(ctx context.Context, t *Table, d *TableDesc) (*BackupDesc, error) {
	if d.History.Days == 0 {
		return nil, nil
	}
	full := func(err error) {
		e.log.Warn("a table with point-in-time recovery is deleted without a backup, because the disk is full", "table", d.Name, "error", err)
	}
	if e.full() {
		full(e.FullReason())
		return nil, nil
	}
	stats, err := t.Stats(ctx)
	if err != nil {
		return nil, err
	}
	b := &BackupDesc{Name: d.Name + deletedBackup, Kind: BackupDeleted, Items: stats.Items, Bytes: stats.Bytes, Table: *d.clone()}
	err = e.beginBackup(b, nil, spaceItems)
	if errors.Is(err, ErrDiskFull) {
		full(err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b.Expires = b.Created + deletedBackupAge
	return b, nil
}

// backupExpirer removes backups that have expired. It is a source of the due queue.
type backupExpirer struct{ e *Engine }

// Drain removes the backups that have expired by now. One in use stays until its restore has ended.
func (x backupExpirer) Drain(_ context.Context, now int64) (next int64, err error) {
	e := x.e
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	e.backups.mu.RLock()
	var expired []string
	left := Never
	for id, b := range e.backups.byID {
		switch {
		case b.Expires == 0:
		case b.Expires > Instant(now):
			left = min(left, b.Expires)
		case e.restoring(id):
			left = min(left, Instant(now)+trimEvery)
		default:
			expired = append(expired, id)
		}
	}
	e.backups.mu.RUnlock()
	for _, id := range expired {
		if err := e.deleteBackup(id); err != nil {
			return 0, err
		}
	}
	return int64(left), nil
}
