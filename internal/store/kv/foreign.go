package kv

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// harmless names the files that an empty directory may hold, made by file systems, version control
// and file managers.
var harmless = []string{"lost+found", ".snapshot", ".gitkeep", ".gitignore", ".keep", ".DS_Store"}

// foreignNamesShown limits the foreign names in the error.
const foreignNamesShown = 3

// refuseForeign returns an error marked ErrForeign if the directory holds files, and none of a
// store. A store with later foreign files is still a store. The directory may be missing.
func refuseForeign(fs FS, dir string) error {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if info, failed := fs.Stat(dir); failed == nil && !info.IsDir() {
		return fmt.Errorf("open %q: %w", dir, syscall.ENOTDIR)
	}
	if err != nil {
		return fmt.Errorf("list %q: %w", dir, err)
	}
	if slices.ContainsFunc(names, isStoreFile) {
		return nil
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(harmless, name) || name == lockName || name == reserveName
	})
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	shown := strings.Join(names[:min(len(names), foreignNamesShown)], ", ")
	if more := len(names) - foreignNamesShown; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("open %q: %w: %s", dir, ErrForeign, shown)
}

// lockName is the file that Pebble locks.
const lockName = "LOCK"

// isStoreFile reports whether name has the form of a store's file. The lock and the reserve do not
// count: a refused open may leave them.
func isStoreFile(name string) bool {
	stem, extension, _ := strings.Cut(name, ".")
	switch {
	case stem == "marker" || name == restoringName:
		return true
	case strings.HasPrefix(name, "MANIFEST-") || strings.HasPrefix(name, "OPTIONS-"):
		return true
	case extension == "log" || extension == "sst":
		return stem != "" && strings.Trim(stem, "0123456789") == ""
	}
	return false
}
