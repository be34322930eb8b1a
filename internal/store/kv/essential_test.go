package kv

import (
	"errors"
	"io"
	"maps"
	"testing"
)

// A directory in which a bad block may hold an essential key is refused unchanged. With a bad block
// behind these keys it opens.
func TestEssentialKeys(t *testing.T) {
	opts, file := damagedStore(t, 5000)
	opts.Essential = []byte(row(damagedRows))
	before := essentialFiles(t, opts.FS)
	_, err := Open(opts)
	var damage *DamageError
	if !errors.As(err, &damage) || damage.Faults[0].File != file {
		t.Fatalf("open: %v, want a DamageError about %s", err, file)
	}
	if !maps.Equal(before, essentialFiles(t, opts.FS)) {
		t.Error("the refused directory has changed")
	}
	opts.Essential = []byte(row(1))
	open(t, opts)
}

// essentialFiles returns the directory's files by name, apart from the lock.
func essentialFiles(t *testing.T, fs FS) map[string]string {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range names {
		if name == lockName {
			continue
		}
		f, err := fs.Open(fs.PathJoin("data", name))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		files[name] = string(content)
	}
	return files
}
