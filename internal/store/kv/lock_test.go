package kv

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// lockedDirEnv makes the test binary open a directory and report the result.
const lockedDirEnv = "KV_TEST_LOCKED_DIR"

// One directory has one owner, under any name and in any process; closing releases it.
func TestLock(t *testing.T) {
	if dir := os.Getenv(lockedDirEnv); dir != "" {
		_, err := Open(Options{Dir: dir})
		if !errors.Is(err, ErrLocked) {
			t.Errorf("second process: %v", err)
		}
		return
	}
	parent := t.TempDir()
	t.Chdir(parent)
	dir := filepath.Join(parent, "data")
	db := open(t, Options{Dir: dir})
	if err := os.Symlink(dir, "link"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, "data", "./data/", "link", filepath.Join(parent, "x", "..", "data")} {
		if _, err := Open(Options{Dir: name}); !errors.Is(err, ErrLocked) {
			t.Errorf("open %s again: %v", name, err)
		}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLock$", "-test.v")
	cmd.Env = append(os.Environ(), lockedDirEnv+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, open(t, Options{Dir: "data"}), "a=1")
}

// A lock in memory works as one on disk.
func TestLockInMemory(t *testing.T) {
	fs := NewMemFS()
	db := open(t, Options{FS: fs})
	if _, err := Open(Options{FS: fs}); !errors.Is(err, ErrLocked) {
		t.Errorf("open again: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, Options{FS: fs})
}

// A directory that cannot be created or used is not reported as locked.
func TestUnusableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "data")} {
		if _, err := Open(Options{Dir: dir}); err == nil || errors.Is(err, ErrLocked) || errors.Is(err, ErrCorrupt) {
			t.Errorf("open %s: %v", dir, err)
		}
	}
}
