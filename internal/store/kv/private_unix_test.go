//go:build unix

package kv

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Only the owner can read a data directory and its files, including those that an earlier mayfly
// left readable.
func TestPrivateFiles(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	dir := filepath.Join(t.TempDir(), "parent", "data")
	work := func() {
		t.Helper()
		db, err := Open(Options{Dir: dir, ReserveBytes: 1 << 20, MemTableBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 64 { // logs are recycled, tables are flushed and compacted
			if err := write(db, batchOf(0, n)...); err != nil {
				t.Fatal(err)
			}
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the directory is %v, %v", info.Mode(), err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) < 5 {
			t.Fatalf("%d files, %v", len(entries), err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s is %v, %v", entry.Name(), info.Mode(), err)
			}
		}
	}
	work()
	check()
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if err := os.Chmod(filepath.Join(dir, entry.Name()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	work()
	check()
	if info, err := os.Stat(filepath.Dir(dir)); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the parent is %v, %v", info.Mode(), err)
	}
}

// An existing directory keeps its mode. If others can write to it, the log has the command that
// protects it.
func TestDirectoryModeStays(t *testing.T) {
	for mode, warns := range map[os.FileMode]bool{0o700: false, 0o755: false, 0o770: true, 0o777: true} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		open(t, Options{Dir: dir, ReserveBytes: -1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != mode {
			t.Errorf("the directory is %v, %v", info.Mode(), err)
		}
		if strings.Contains(log.String(), "chmod -R go-rwx "+dir) != warns {
			t.Errorf("with mode %o: %s", mode, log.String())
		}
	}
}
