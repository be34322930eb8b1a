package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// A backup is a checkpoint of the store: hard links to the table files that hold the table's items,
// with copies of the log and the MANIFEST, in a subdirectory of the data directory. No write waits
// for it. The catalogue has a row for it, with the table's description.
//
// The row comes first and is marked Creating, then the directory, then the row without the mark. A
// deletion removes the row first. So a directory without a row, and a row that is Creating, are
// leftovers of a crash, and the next start removes them. A name that is not a backup's ID belongs to
// the user, and stays.
//
// The checkpoint also holds the catalogue, because its clock key is the instant of the backup: every
// commit in the checkpoint has that instant or an earlier one, and every other commit has it or a
// later one. A restore copies the items that exist at that instant.

const (
	backupsDir = "backups"
	// backupsMax bounds the number of backups that clients make, and separately of those that
	// deletions make. Each takes some kilobytes of memory, and disk space for data that the table no
	// longer has.
	backupsMax = 10_000
	// restoresMax is the number of tables that may be under restore at once, as at Amazon.
	restoresMax = 50
)

// BackupDesc is a backup's row in the catalogue. A published row is never edited.
type BackupDesc struct {
	// ID names the directory, and orders backups by their creation: the instant in milliseconds
	// with 14 digits, a hyphen, and eight random hexadecimal digits.
	ID       string
	Name     string
	Created  Instant
	Creating bool       `json:",omitzero"` // the directory is incomplete
	Kind     BackupKind `json:",omitzero"`
	Expires  Instant    `json:",omitzero"` // when it is removed; 0: never
	// the table's size at that time; an estimate for a table of more than 100,000 entries
	Items, Bytes int64
	Table        TableDesc // as it was
}

// BackupKind says why a backup was made.
type BackupKind string

const (
	BackupUser    BackupKind = ""        // by CreateBackup
	BackupDeleted BackupKind = "DELETED" // by the deletion of a table with a history
	// by a restore to an instant, until that ends: only the restore sees it
	backupRestore BackupKind = "RESTORE"
	// by an export, until that ends
	backupExport BackupKind = "EXPORT"
)

// backups holds the rows of all backups.
type backups struct {
	mu      sync.RWMutex
	byID    map[string]*BackupDesc
	changed atomic.Uint64 // number of the last commit that changed a row; set before the row changes
}

func backupKey(id string) []byte { return append(catalogueKey(catBackup), id...) }

// newBackupID returns an ID that no backup and no job has. The caller holds catalogue.changing.
func (e *Engine) newBackupID(now Instant) string {
	for {
		var b [4]byte
		rand.Read(b[:])
		id := fmt.Sprintf("%014d-%08x", max(now, 0), binary.BigEndian.Uint32(b[:]))
		if e.backups.byID[id] == nil && e.jobs.byID[id] == nil {
			return id
		}
	}
}

// CreateBackup makes a backup of a table. When it returns, the backup is durable and holds every
// write that was acknowledged before the call. It returns ErrTableNotFound, ErrTableCreating,
// ErrTooManyBackups or ErrDiskFull.
func (e *Engine) CreateBackup(ctx context.Context, namespace, table, name string) (*BackupDesc, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	t, err := e.Table(namespace, table)
	if err != nil {
		return nil, err
	}
	stats, err := t.Stats(ctx)
	if err != nil {
		return nil, err
	}
	e.catalogue.changing.Lock() // the description in the row must be the one in the checkpoint
	defer e.catalogue.changing.Unlock()
	d, err := t.live()
	switch {
	case err != nil:
		return nil, err
	case len(e.backupsOf(BackupUser)) >= backupsMax:
		return nil, ErrTooManyBackups
	case e.full():
		return nil, ErrDiskFull
	}
	b := &BackupDesc{Name: name, Items: stats.Items, Bytes: stats.Bytes, Table: *d.clone()}
	if err := e.beginBackup(b, nil, spaceItems); err != nil {
		return nil, err
	}
	if err := e.commitNew(func(c *commit) error { e.setBackup(c.batch, b); return nil }, nil); err != nil {
		return nil, err
	}
	return b, nil
}

// beginBackup writes a row that is Creating, and makes the checkpoint with some keyspaces of the
// table. b is the row to set when the backup is complete. check may refuse the backup at its
// instant; nil: it does not. The caller holds changing.
func (e *Engine) beginBackup(b *BackupDesc, check func(now Instant) error, spaces ...byte) error {
	b.Table.Units, b.Table.Suspicions = nil, nil
	for i := range b.Table.Indexes {
		b.Table.Indexes[i].Units = nil
	}
	err := e.commitNew(func(c *commit) error {
		if check != nil {
			if err := check(c.now); err != nil {
				return err
			}
		}
		b.Created, b.ID = c.now, e.newBackupID(c.now)
		creating := *b
		creating.Creating = true
		e.setBackup(c.batch, &creating)
		return nil
	}, nil)
	if err != nil {
		return err
	}
	spans := []kv.Span{{Start: []byte{spaceCatalogue}, End: []byte{spaceCatalogue + 1}}}
	for _, space := range spaces {
		start, end := tableSpan(space, b.Table.ID)
		spans = append(spans, kv.Span{Start: start, End: end})
	}
	if err := e.kv.Checkpoint(e.kv.Below(backupsDir, b.ID), spans...); err != nil {
		if errors.Is(err, kv.ErrNoSpace) {
			err = fmt.Errorf("%w: %w", ErrDiskFull, err)
		}
		return errors.Join(err, e.commitNew(func(c *commit) error { e.removeBackup(c.batch, b.ID); return nil }, nil))
	}
	return nil
}

// shown reports whether a backup exists for clients.
func (b *BackupDesc) shown(now Instant) bool {
	switch b.Kind {
	case BackupUser:
		return true
	case BackupDeleted:
		return !b.Creating && now < b.Expires
	default:
		return false
	}
}

// setBackup writes and publishes a row. The caller is inside the commit section.
func (e *Engine) setBackup(batch *kv.Batch, b *BackupDesc) {
	setJSON(batch, backupKey(b.ID), b)
	e.backups.changed.Store(e.lastCommit.Load() + 1)
	e.backups.mu.Lock()
	e.backups.byID[b.ID] = b
	e.backups.mu.Unlock()
}

// removeBackup removes a row. The caller is inside the commit section.
func (e *Engine) removeBackup(batch *kv.Batch, id string) {
	batch.Delete(backupKey(id))
	e.backups.changed.Store(e.lastCommit.Load() + 1)
	e.backups.mu.Lock()
	delete(e.backups.byID, id)
	e.backups.mu.Unlock()
}

// Backups returns all backups, oldest first, once the answer is durable.
func (e *Engine) Backups() ([]*BackupDesc, error) {
	now := e.Now()
	list := e.selectBackups(func(b *BackupDesc) bool { return b.shown(now) })
	return list, e.waitCatalogue(&e.backups.changed)
}

// backupsOf returns the backups of a kind, oldest first.
func (e *Engine) backupsOf(kind BackupKind) []*BackupDesc {
	return e.selectBackups(func(b *BackupDesc) bool { return b.Kind == kind })
}

// selectBackups returns the wanted backups, oldest first.
func (e *Engine) selectBackups(wanted func(b *BackupDesc) bool) (list []*BackupDesc) {
	e.backups.mu.RLock()
	for _, b := range e.backups.byID {
		if wanted(b) {
			list = append(list, b)
		}
	}
	e.backups.mu.RUnlock()
	slices.SortFunc(list, func(a, b *BackupDesc) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Backup returns a backup once the answer is durable, or ErrBackupNotFound.
func (e *Engine) Backup(id string) (*BackupDesc, error) {
	b, err := e.anyBackup(id)
	if err == nil && !b.shown(e.Now()) {
		return nil, ErrBackupNotFound
	}
	return b, err
}

// anyBackup is Backup for every kind, also after its end.
func (e *Engine) anyBackup(id string) (*BackupDesc, error) {
	e.backups.mu.RLock()
	b := e.backups.byID[id]
	e.backups.mu.RUnlock()
	if err := e.waitCatalogue(&e.backups.changed); err != nil {
		return nil, err
	}
	if b == nil {
		return nil, ErrBackupNotFound
	}
	return b, nil
}

// DeleteBackup deletes a backup. It returns ErrBackupNotFound, or ErrBackupInUse while a table is
// restored from it. An error of allow, which sees the backup, is returned unchanged, and then
// nothing is deleted.
func (e *Engine) DeleteBackup(_ context.Context, id string, allow func(*BackupDesc) error) (*BackupDesc, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	b, err := e.Backup(id)
	if err != nil {
		return nil, err
	}
	if err := allow(b); err != nil {
		return nil, err
	}
	if e.restoring(id) {
		return nil, ErrBackupInUse
	}
	if err := e.deleteBackup(id); err != nil {
		return nil, err
	}
	return b, nil
}

// restoring reports whether a table is being restored from a backup.
func (e *Engine) restoring(id string) bool {
	return slices.ContainsFunc(e.Tables(), func(t *Table) bool {
		d := t.Desc()
		return d.Restore.Running && d.Restore.Backup == id
	})
}

// deleteBackup removes a backup with its files.
func (e *Engine) deleteBackup(id string) error {
	if err := e.commitNew(func(c *commit) error { e.removeBackup(c.batch, id); return nil }, nil); err != nil {
		return err
	}
	e.removeFiles(id)
	return nil
}

// removeFiles removes the files of a backup without a row.
func (e *Engine) removeFiles(id string) {
	if err := e.kv.RemoveBelow(backupsDir, id); err != nil {
		e.log.Warn("the files of a deleted backup could not be removed; the next start tries again", "backup", id, "error", err)
	}
}

// isBackupID reports whether a name has the form of newBackupID's result.
func isBackupID(name string) bool {
	millis, random, ok := strings.Cut(name, "-")
	return ok && len(millis) == 14 && len(random) == 8 && strings.Trim(millis, "0123456789") == "" && strings.Trim(random, "0123456789abcdef") == ""
}

// loadBackups reads the rows. It removes complete rows without a directory, incomplete ones, and
// directories without a row. A fault of the backups does not keep the database closed: Check reports
// it.
func (e *Engine) loadBackups() error {
	names, err := e.kv.ListBelow(backupsDir)
	listed := err == nil
	if !listed {
		e.log.Error("the directory of the backups cannot be read; no backup can be made or restored", "directory", e.kv.Below(backupsDir), "error", err)
	}
	unreadable := map[string]bool{}
	b := e.kv.NewBatch()
	defer b.Close()
	err = e.eachCatalogue(catBackup, func(key, value []byte) error {
		id, row := string(key[2:]), &BackupDesc{}
		err := json.Unmarshal(value, row)
		if err == nil && row.ID != id {
			err = fmt.Errorf("it describes the backup %q", row.ID)
		}
		switch {
		case err != nil:
			e.log.Error("a backup cannot be used, because its description is damaged; its files stay", "backup", id, "directory", e.kv.Below(backupsDir, id), "error", err)
			unreadable[id], unreadable[row.ID] = true, true
			return nil
		case row.Creating:
			e.log.Warn("a backup that was not finished is removed", "backup", row.ID, "name", row.Name, "table", row.Table.Name)
		case row.Kind == backupRestore && !e.restoring(row.ID): // a crash at the begin or end of the restore
		case row.Kind == backupExport && !e.jobRunning(row.ID):
		case listed && !slices.Contains(names, row.ID):
			e.log.Error("a backup without files is removed", "backup", row.ID, "name", row.Name, "table", row.Table.Name, "directory", e.kv.Below(backupsDir, row.ID))
		default:
			e.backups.byID[row.ID] = row
			if row.Expires != 0 {
				e.expiring.Wake(int64(row.Expires))
			}
			return nil
		}
		b.Delete(backupKey(row.ID))
		return nil
	})
	if err != nil {
		return err
	}
	if !b.Empty() {
		if err := errors.Join(e.kv.Apply(b), e.kv.Wait(b)); err != nil {
			return err
		}
	}
	for _, name := range names {
		if !isBackupID(name) || unreadable[name] || e.backups.byID[name] != nil {
			continue
		}
		e.log.Warn("the files of a backup that was not finished, or that is deleted, are removed", "directory", e.kv.Below(backupsDir, name))
		if err := e.kv.RemoveBelow(backupsDir, name); err != nil {
			e.log.Warn("the files of a backup could not be removed; the next start tries again", "directory", e.kv.Below(backupsDir, name), "error", err)
		}
	}
	return nil
}
