// Package durable makes changes of directories survive a power cut.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MakeDirs creates a directory and its parents. When it returns, they are on the disk. Only the owner
// can use the new directory, because it will hold a user's data. A parent may have other purposes,
// so others can pass through new ones, as the umask allows. Existing ones keep their modes.
func MakeDirs(path string) error { return makeDirs(path, 0o700) }

func makeDirs(path string, mode os.FileMode) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file, not a directory", path)
	}
	if err == nil {
		return nil
	}
	above := filepath.Dir(path)
	if above != path {
		if err := makeDirs(above, 0o755); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(above)
}

// SyncDir returns when the names in a directory are on the disk.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	// Some file systems cannot sync a directory, and need not.
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return errors.Join(err, d.Close())
	}
	return d.Close()
}
