package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// stoppedStore creates a store of several tables and a log, closes it, and returns its content.
func stoppedStore(t *testing.T, keys int) (FS, map[string]string) {
	t.Helper()
	fs := NewMemFS()
	db, err := Open(Options{Dir: "data", FS: fs, ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	model := map[string]string{}
	write := func(change func(b *Batch)) {
		b := db.NewBatch()
		change(b)
		if err := errors.Join(db.Apply(b), b.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write(func(b *Batch) {
		for i := range keys {
			key, value := fmt.Sprintf("key%05d", i), strings.Repeat(fmt.Sprint(i, ","), 20)
			b.Set([]byte(key), []byte(value))
			model[key] = value
		}
	})
	write(func(b *Batch) {
		b.DeleteRange([]byte("key00010"), []byte("key00020"))
		b.Delete([]byte("key00030"))
	})
	for i := 10; i < 20; i++ {
		delete(model, fmt.Sprintf("key%05d", i))
	}
	delete(model, "key00030")
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	write(func(b *Batch) {
		b.Set([]byte("key00000"), []byte("new"))
		b.Set([]byte("key00040"), []byte("new"))
		b.Set([]byte("key00015"), []byte("again"))
		b.DeleteRange([]byte("key00005"), []byte("key00008"))
	})
	model["key00000"], model["key00040"], model["key00015"] = "new", "new", "again"
	for i := 5; i < 8; i++ {
		delete(model, fmt.Sprintf("key%05d", i))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return fs, model
}

func theFile(t *testing.T, fs FS, suffix string) string {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, suffix) })
	if i < 0 {
		t.Fatalf("there is no %s among %v", suffix, names)
	}
	return path.Join("data", names[i])
}

func contentOf(t *testing.T, fs FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func replaceFile(t *testing.T, fs FS, name string, data []byte) {
	t.Helper()
	f, err := fs.Create(name, "damage")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// faultsOf checks the stopped store.
func faultsOf(t *testing.T, fs FS) (faults []Damage) {
	t.Helper()
	s, err := OpenStopped(fs, "data")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Check(context.Background(), func(int64) {}, func(d Damage) { faults = append(faults, d) }); err != nil {
		t.Fatal(err)
	}
	return faults
}

// readStopped reads the stopped store around its damage.
func readStopped(t *testing.T, fs FS) (got map[string]string, lost []Damage) {
	t.Helper()
	s, err := OpenStopped(fs, "data")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got = map[string]string{}
	last := ""
	err = s.Each(context.Background(), func(int64) {}, func(d Damage) { lost = append(lost, d) }, func(key, value []byte) error {
		if string(key) <= last {
			t.Errorf("%s after %s", key, last)
		}
		last = string(key)
		got[last] = string(value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, lost
}

// TestEveryByteOfATable: a flipped bit anywhere in a table file is found, and names the file. Every
// readable key is right, or in a listed range.
func TestEveryByteOfATable(t *testing.T) {
	fs, model := stoppedStore(t, 60)
	if faults := faultsOf(t, fs); len(faults) > 0 {
		t.Fatalf("a sound store has faults: %v", faults)
	}
	if got, lost := readStopped(t, fs); fmt.Sprint(got) != fmt.Sprint(model) || len(lost) > 0 {
		t.Fatalf("got %v\nwant %v\nlost %v", got, model, lost)
	}
	name := theFile(t, fs, ".sst")
	whole := contentOf(t, fs, name)
	for at := range whole {
		data := slices.Clone(whole)
		data[at] ^= 1 << (at % 8)
		replaceFile(t, fs, name, data)
		faults := faultsOf(t, fs)
		if !slices.ContainsFunc(faults, func(d Damage) bool { return "data/"+d.File == name }) {
			t.Fatalf("byte %d of %d: faults %v", at, len(whole), faults)
		}
		got, lost := readStopped(t, fs)
		for i := range 60 {
			key := fmt.Sprintf("key%05d", i)
			if got[key] != model[key] && !slices.ContainsFunc(lost, func(d Damage) bool {
				return (d.Lower == nil || string(d.Lower) <= key) && (d.Upper == nil || key <= string(d.Upper))
			}) {
				t.Fatalf("byte %d of %d: %s is %q, want %q; lost: %v", at, len(whole), key, got[key], model[key], lost)
			}
		}
	}
}

// TestReadAroundDamage: a bad block costs its own keys only, and a bad index costs none.
func TestReadAroundDamage(t *testing.T) {
	fs, model := stoppedStore(t, 3000)
	name := theFile(t, fs, ".sst")
	whole := contentOf(t, fs, name)
	file, err := openRawTable(fs, "data", path.Base(name))
	if err != nil {
		t.Fatal(err)
	}
	if len(file.data) < 10 {
		t.Fatalf("%d data blocks", len(file.data))
	}
	differ := func(offsets ...uint64) (n int, lost []Damage) {
		data := slices.Clone(whole)
		for _, at := range offsets {
			data[at] ^= 0x40
		}
		replaceFile(t, fs, name, data)
		got, lost := readStopped(t, fs)
		for key, want := range model {
			if got[key] != want {
				n++
			}
		}
		return n, lost
	}
	perBlock := 2 * 3000 / len(file.data)
	if n, lost := differ(file.data[4].Offset + 10); n == 0 || n > perBlock || len(lost) != 1 {
		t.Errorf("one bad block: %d keys differ, lost: %v", n, lost)
	}
	if n, lost := differ(file.data[2].Offset, file.data[7].Offset); n == 0 || n > 2*perBlock || len(lost) != 2 {
		t.Errorf("two bad blocks: %d keys differ, lost: %v", n, lost)
	}
	for _, h := range file.layout.Index {
		if n, lost := differ(h.Offset + 1); n != 0 || len(lost) != 0 {
			t.Errorf("bad index: %d keys differ, lost: %v", n, lost)
		}
	}
	if n, lost := differ(uint64(len(whole) - 1)); n != 0 || len(lost) != 1 {
		t.Errorf("bad footer: %d keys differ, lost: %v", n, lost)
	}
	if n, lost := differ(uint64(len(whole)-1), file.data[9].Offset); n == 0 || len(lost) != 2 {
		t.Errorf("bad footer and block: %d keys differ, lost: %v", n, lost)
	}
}

func TestOpenStoppedRefuses(t *testing.T) {
	fs, _ := stoppedStore(t, 60)
	db, err := Open(Options{Dir: "data", FS: fs, ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStopped(fs, "data"); !errors.Is(err, ErrLocked) {
		t.Errorf("in use: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(fs, "data"); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("create in a directory that is not empty: %v", err)
	}
	s, err := OpenStopped(fs, "data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: "data", FS: fs, ReserveBytes: -1}); !errors.Is(err, ErrLocked) {
		t.Errorf("a server starts during a check: %v", err)
	}
	store, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := store.pebble.Set([]byte("a"), nil, nil); err == nil {
		t.Error("a store that is only read takes a write")
	}
	if err := errors.Join(store.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// A table in the place of another is left out, and all keys of the original are listed: old
// versions could revive deleted keys.
func TestReadAroundAnotherTable(t *testing.T) {
	fs, _ := stoppedStore(t, 3000)
	other, _ := stoppedStore(t, 500)
	name := theFile(t, fs, ".sst")
	replaceFile(t, fs, name, contentOf(t, other, theFile(t, other, ".sst")))
	got, lost := readStopped(t, fs)
	if len(lost) != 1 || lost[0].File != path.Base(name) || lost[0].Lower == nil || lost[0].Upper == nil {
		t.Errorf("lost: %v", lost)
	}
	if want := map[string]string{"key00000": "new", "key00040": "new", "key00015": "again"}; !maps.Equal(got, want) {
		t.Errorf("%d keys are read, want those of the log: %v", len(got), want)
	}
}
