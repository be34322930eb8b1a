package kv

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// A checkpoint in a subdirectory is found, read and removed, and its damage is an error that names
// the file. The store opens with it as before.
func TestBelow(t *testing.T) {
	fs := NewMemFS()
	db := open(t, Options{Dir: "data", FS: fs, ReserveBytes: -1})
	b := db.NewBatch()
	b.Set([]byte("key"), []byte("value"))
	if err := errors.Join(db.Apply(b), db.Wait(b), b.Close(), db.Flush()); err != nil {
		t.Fatal(err)
	}
	if names, err := db.ListBelow("copies"); err != nil || names != nil {
		t.Errorf("before the first: %v, %v", names, err)
	}
	if err := errors.Join(db.Checkpoint(db.Below("copies", "one")), db.Checkpoint(db.Below("copies", "two"))); err != nil {
		t.Fatal(err)
	}
	names, err := db.ListBelow("copies")
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{"one", "two"}) {
		t.Errorf("got %v, %v", names, err)
	}
	r, err := db.OpenBelow("copies", "one")
	if err != nil {
		t.Fatal(err)
	}
	if value, closer, err := r.Get([]byte("key")); err != nil || string(value) != "value" || closer.Close() != nil {
		t.Errorf("got %q, %v", value, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.RemoveBelow("copies", "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.OpenBelow("copies", "one"); !errors.Is(err, ErrCorrupt) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a removed one: %v", err)
	}
	files, err := fs.List("data/copies/two")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasPrefix(name, "MANIFEST-") {
			if err := fs.Remove("data/copies/two/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := db.OpenBelow("copies", "two"); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "MANIFEST-") {
		t.Errorf("a damaged one: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	stopped, err := OpenStopped(fs, "data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stopped.Below("copies", "one"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a removed one: %v", err)
	}
	if err := stopped.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, Options{Dir: "data", FS: fs, ReserveBytes: -1})
}
