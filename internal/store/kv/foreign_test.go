package kv

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A directory with foreign files and without a store is refused and stays unchanged.
func TestForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"notes.txt", "d", ".profile", "2024.logs", "backup.sst"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Open(Options{Dir: dir})
	if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), ".profile, 2024.logs, backup.sst and 2 more") {
		t.Errorf("opened with %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

// The root of a volume, and a directory under version control, count as empty. A store with later
// foreign files opens.
func TestHarmlessFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".gitkeep", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		db, err := Open(Options{Dir: dir, ReserveBytes: -1})
		if err != nil {
			t.Fatalf("with %s: %v", name, err)
		}
		mustWrite(t, db, "a=1")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("a file of others is %v, %v", info, err)
	}
}

// Every name of a store's file is known, so that half a store never counts as foreign.
func TestStoreFileNames(t *testing.T) {
	dir := t.TempDir()
	db := open(t, Options{Dir: dir, ReserveBytes: 1 << 20})
	mustWrite(t, db, "a=1")
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); !isStoreFile(name) && !slices.Contains([]string{lockName, reserveName}, name) {
			t.Errorf("%s is not known", name)
		}
	}
}
