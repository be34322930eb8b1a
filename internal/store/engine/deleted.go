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
func (e *Engine) backUpDeleted(d *TableDesc, stats TableStats) (*BackupDesc, error) {
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
	if err := e.makeRoomForDeleted(); err != nil {
		return nil, err
	}
	b := &BackupDesc{Name: d.Name + deletedBackup, Kind: BackupDeleted, Items: stats.Items, Bytes: stats.Bytes, Table: *d.clone()}
	err := e.beginBackup(b, nil, spaceItems)
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

// makeRoomForDeleted removes the oldest backup of a deleted table if there are as many as may be. The
// caller holds changing.
func (e *Engine) makeRoomForDeleted() error {
	deleted := e.backupsOf(BackupDeleted)
	if len(deleted) < backupsMax {
		return nil
	}
	for _, b := range deleted {
		if !e.restoring(b.ID) {
			e.log.Warn("the oldest backup of a deleted table is removed early, because there are too many", "backup", b.ID, "table", b.Table.Name, "most", backupsMax)
			return e.deleteBackup(b.ID)
		}
	}
	return nil
}

// backupExpirer removes backups that have expired. It is a source of the due queue.
type backupExpirer struct{ e *Engine }

// Drain has the backups removed that have expired by now. That may wait for a checkpoint and takes
// disk time, so it happens outside the queue. A backup in use stays until its restore has ended.
func (x backupExpirer) Drain(_ context.Context, now int64) (next int64, err error) {
	e := x.e
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
	if len(expired) > 0 {
		done := e.activity.Begin()
		e.background.Go(func() {
			defer done()
			for _, id := range expired {
				x.remove(id, Instant(now))
			}
		})
	}
	return int64(left), nil
}

// remove removes an expired backup, unless it is in use or gone. A failed store ends the database
// anyway, so there is no other attempt after an error.
func (x backupExpirer) remove(id string, now Instant) {
	e := x.e
	removed, err := e.removeUnused(id)
	switch {
	case err != nil:
		if e.ready() == nil {
			e.log.Error("an expired backup could not be removed; the next start tries again", "backup", id, "error", err)
		}
	case removed:
		e.removeFiles(id)
	default:
		e.expiring.Wake(int64(now + trimEvery))
	}
}

// removeUnused removes a backup's row and reports whether it did, which it does not during a restore
// from it.
func (e *Engine) removeUnused(id string) (removed bool, err error) {
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	if _, err := e.anyBackup(id); err == ErrBackupNotFound {
		return true, nil
	}
	if e.restoring(id) {
		return false, nil
	}
	return true, e.commitNew(func(c *commit) error { e.removeBackup(c.batch, id); return nil }, nil)
}
