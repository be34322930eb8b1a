package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/durable"
)

// unfinishedName is a file that exists in a directory during a restore. It lists the files that the
// restore writes, one in a line.
const unfinishedName = "RESTORING"

// NotEmpty reports a directory that a restore would have to overwrite.
type NotEmpty struct{ Dir, Name string }

func (n *NotEmpty) Error() string { return fmt.Sprintf("%s is not empty: it has %s", n.Dir, n.Name) }

// Restore writes the files of a backup into a directory, which must be missing or empty, or have an
// unfinished restore, whose files are replaced. The directory can be opened when Restore has returned
// nil, and not earlier, since the file that sorts last, the marker of the MANIFEST, is written last.
// After an error Restore removes what it has written.
func (r Repository) Restore(ctx context.Context, s Snapshot, dir string, progress func(Progress)) (err error) {
	if err := prepare(dir, s.Files); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove(dir, names(s.Files)))
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

// names returns the names of files, in their order.
func names(files []File) []string {
	all := make([]string, len(files))
	for i, f := range files {
		all[i] = f.Name
	}
	return all
}

// prepare makes the directory, without files but for the one that says that a restore is not
// finished. It removes what an unfinished restore has written.
func prepare(dir string, files []File) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := durable.MakeDirs(dir); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	listed, err := os.ReadFile(filepath.Join(dir, unfinishedName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	earlier := strings.Fields(string(listed))
	for _, e := range entries {
		if name := e.Name(); name != unfinishedName && !isHarmless(name) && !slices.Contains(earlier, name) {
			return &NotEmpty{dir, name}
		}
	}
	if err := remove(dir, earlier); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, unfinishedName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(names(files), "\n") + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return durable.SyncDir(dir)
}

// isHarmless reports whether an empty directory may have a file: file systems and version control
// make some, and a refused start of the server leaves its lock.
func isHarmless(name string) bool {
	return name == "lost+found" || name == "LOCK" || strings.HasPrefix(name, ".")
}

// remove removes the files of an unfinished restore: the marker first, so that the directory does not
// look complete, and the file that says so last.
func remove(dir string, files []string) error {
	for _, name := range slices.Backward(files) {
		if !isFileName(name) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := durable.SyncDir(dir); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(dir, unfinishedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
