package durable

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// MakeDirs makes what is missing, changes nothing that is there, and refuses a file in the way.
func TestMakeDirs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := MakeDirs(dir); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Fatal(info, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if err := MakeDirs(path); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := SyncDir(filepath.Join(dir, "absent")); !os.IsNotExist(err) {
		t.Error(err)
	}
}
