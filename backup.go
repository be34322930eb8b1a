package mayfly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/mayflydb/mayfly/internal/backup"
	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// BackupFile is a file of a database's directory, for WriteBackup. It has the fields
//
//	Name string
//	Size int64
//	Sum  // CRC-32C of the content; its text has 8 hexadecimal digits
type BackupFile = backup.File

// WriteBackup writes the whole database at one instant, as a tar archive. Unpacked into an empty
// directory, it is a database that continues as if this one had been stopped at that instant. The
// first entry, "BACKUP", lists all files in JSON; files in has are left out of the archive. Writers do
// not wait. The archive has every write that was acknowledged before the call. One backup runs at a
// time; ErrBackup reports another.
func (db *DB) WriteBackup(ctx context.Context, w io.Writer, has []BackupFile) error {
	c, err := db.engine.Copy()
	if err != nil {
		return fmt.Errorf("mayfly: backup: %w", err)
	}
	return errors.Join(sendCopy(ctx, w, c, has), c.Close())
}

// WriteBackup is DB.WriteBackup for a directory that no process has open. It refuses a damaged
// directory with ErrCorrupt.
func WriteBackup(ctx context.Context, dir string, w io.Writer, has []BackupFile) error {
	stopped, err := kv.OpenStopped(nil, dir)
	if err != nil {
		return openError(err)
	}
	c, err := stopped.Copy()
	if err != nil {
		return errors.Join(openError(err), stopped.Close())
	}
	return errors.Join(sendCopy(ctx, w, c, has), stopped.Close())
}

func sendCopy(ctx context.Context, w io.Writer, c *kv.Copy, has []BackupFile) error {
	if err := backup.Send(ctx, w, source{c}, backup.List{Taken: time.Now().UTC().Truncate(time.Millisecond)}, has); err != nil {
		return fmt.Errorf("mayfly: backup: %w", err)
	}
	return nil
}

// source is a copy as package backup sees it.
type source struct{ *kv.Copy }

func (s source) Files() []backup.File {
	files := make([]backup.File, 0, len(s.Copy.Files()))
	for _, f := range s.Copy.Files() {
		files = append(files, backup.File{Name: f.Name, Size: f.Size, Sum: backup.Sum(f.Sum)})
	}
	return files
}

// Backup adds a backup of the database to the directory to, and removes all but the newest keep ones
// of this database; 0 keeps all. Only files that have changed since an earlier backup are written.
// Everything written is read again. With an id and an error the backup was made, and older ones could
// not be removed. `mayfly restore` and Restore use the directory, and
// `mayfly backup` adds to it.
func (db *DB) Backup(ctx context.Context, to string, keep int) (id string, err error) {
	source := "memory"
	if db.dir != "" {
		if source, err = filepath.Abs(db.dir); err != nil {
			return "", fmt.Errorf("mayfly: backup: %w", err)
		}
	}
	added, _, err := backup.Open(objects.Dir(to)).Take(ctx, backup.Take{
		Source: source, Keep: keep, Now: time.Now, Progress: func(backup.Progress) {},
		Stream: func(ctx context.Context, has []backup.File) (io.ReadCloser, error) {
			return backup.Pipe(func(w io.Writer) error { return db.WriteBackup(ctx, w, has) }), nil
		},
	})
	if err != nil {
		err = fmt.Errorf("mayfly: backup: %w", err)
	}
	return added.ID, err
}

// Restore writes a backup in the directory from into the directory dir, which must be missing or
// empty. An empty id means the newest; otherwise it is the beginning of one. Every file is compared
// with its checksum. The database continues as if it had been stopped at the instant of the backup:
// items whose deadlines have passed since then are gone at the first read, and their removals follow.
func Restore(ctx context.Context, from, id, dir string) error {
	r := backup.Open(objects.Dir(from))
	s, err := r.Find(ctx, id)
	if err == nil {
		err = r.Restore(ctx, s, dir, func(backup.Progress) {})
	}
	if err != nil {
		return fmt.Errorf("mayfly: restore: %w", err)
	}
	return nil
}

// backupRequest is the body of POST /_mayfly/backup.
type backupRequest struct {
	Has []backup.File `json:"has"`
}

// serveBackup writes a backup for a client.
func (db *DB) serveBackup(ctx context.Context, body []byte, w io.Writer) error {
	if s := db.options.server; s != nil && s.with.Separate {
		return &admin.RefusedError{Status: http.StatusConflict, Reason: "the server has a database for each access key and region, and a backup has one: stop the server and copy its directories, or share the data"}
	}
	var request backupRequest
	if len(body) > 0 {
		if err := json.Unmarshal(body, &request); err != nil {
			return &admin.RefusedError{Status: http.StatusBadRequest, Reason: fmt.Sprintf("the body is not a JSON object with the member \"has\": %v", err)}
		}
	}
	err := db.WriteBackup(ctx, w, request.Has)
	switch {
	case errors.Is(err, ErrBackup):
		return &admin.RefusedError{Status: http.StatusConflict, Reason: "another backup of this database is being made; try again when it has ended"}
	case err != nil:
		db.options.Logger.Error("a backup has failed", "error", err)
	}
	return err
}
