package durable

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// MakeDirs makes what is missing, the last directory for its owner only, changes nothing that is
// there, and refuses a file in the way.
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
	for path, others := range map[string]bool{dir: false, filepath.Dir(dir): true} {
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && (info.Mode().Perm()&0o077 != 0) != others {
			t.Errorf("%s is %v, %v", path, info.Mode(), err)
		}
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
