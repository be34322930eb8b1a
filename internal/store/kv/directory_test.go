package kv

import "testing"

// A directory created with its parents exists after a crash, and so do the parents.
func TestNewDirectorySurvives(t *testing.T) {
	disk := NewCrashFS()
	db, err := Open(Options{Dir: "a/b/data", FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	b := db.NewBatch()
	b.Set([]byte("k"), []byte("v"))
	if err := db.Apply(b); err != nil {
		t.Fatal(err)
	}
	if err := db.Wait(b); err != nil {
		t.Fatal(err)
	}
	b.Close()
	disk.CutNow()
	_ = db.Close()
	after, err := Open(Options{Dir: "a/b/data", FS: disk.AfterCrash()})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	_, closer, err := after.Get([]byte("k"))
	if err != nil {
		t.Fatalf("an acknowledged write is lost: %v", err)
	}
	closer.Close()
}
