package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mayflydb/mayfly/internal/durable"
)

// unfinishedName is a file that exists in a directory during a restore.
const unfinishedName = "RESTORING"

// NotEmpty reports a directory that a restore would have to overwrite.
type NotEmpty struct{ Dir, Name string }

func (n *NotEmpty) Error() string { return fmt.Sprintf("%s is not empty: it has %s", n.Dir, n.Name) }

// Restore writes the files of a backup into a directory, which must be missing or empty, or have an
// unfinished restore; its files are replaced. The directory can be opened when Restore has returned
// nil, and not earlier, since the file that sorts last, the marker of the MANIFEST, is written last.
// After an error Restore removes what it has written.
func (r Repository) Restore(ctx context.Context, s Snapshot, dir string, progress func(Progress)) (err error) {
	if err := prepare(dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, empty(dir))
		}
	}()
	now := Progress{Total: s.Bytes()}
	for i, f := range s.Files {
		if i == len(s.Files)-1 { // the others must be durable before it
			if err := durable.SyncDir(dir); err != nil {
				return err
			}
		}
		if err := r.restore(ctx, f, filepath.Join(dir, f.Name)); err != nil {
			return err
		}
		now.Done += f.Size
		progress(now)
	}
	if err := durable.SyncDir(dir); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, unfinishedName)); err != nil {
		return err
	}
	return durable.SyncDir(dir)
}

// restore writes a file.
func (r Repository) restore(ctx context.Context, f File, path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = r.verify(ctx, f, file)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// prepare makes the directory, empty but for the file that says that a restore is not finished.
func prepare(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := durable.MakeDirs(dir); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	unfinished := false
	for _, e := range entries {
		unfinished = unfinished || e.Name() == unfinishedName
	}
	for _, e := range entries {
		if !unfinished && !isHarmless(e.Name()) {
			return &NotEmpty{dir, e.Name()}
		}
	}
	if err := empty(dir); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, unfinishedName), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return durable.SyncDir(dir)
}

// isHarmless reports whether an empty directory may have a file: file systems and version control
// make some, and a refused start of the server leaves its lock.
func isHarmless(name string) bool {
	return name == "lost+found" || name == "LOCK" || strings.HasPrefix(name, ".")
}

// empty removes the files of an unfinished restore: the marker first, so that no directory looks
// complete, and the file that says so last.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	last := false
	for i := len(entries) - 1; i >= 0; i-- {
		name := entries[i].Name()
		if entries[i].IsDir() || isHarmless(name) {
			continue
		}
		if name == unfinishedName {
			last = true
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if !last {
		return nil
	}
	if err := durable.SyncDir(dir); err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, unfinishedName))
}
