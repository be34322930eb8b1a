package kv

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a store that the test closes at its end.
func open(t *testing.T, opts Options) *DB {
	t.Helper()
	db, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil && db.Failed() == nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// write applies the pairs key=value as one batch, and deletes keys without value.
func write(db *DB, pairs ...string) error {
	b := db.NewBatch()
	defer b.Close()
	for _, pair := range pairs {
		if key, value, found := strings.Cut(pair, "="); found {
			b.Set([]byte(key), []byte(value))
		} else {
			b.Delete([]byte(key))
		}
	}
	if err := db.Apply(b); err != nil {
		return err
	}
	return db.Wait(b)
}

func mustWrite(t *testing.T, db *DB, pairs ...string) {
	t.Helper()
	if err := write(db, pairs...); err != nil {
		t.Fatal(err)
	}
}

// get returns the value of key, or "-" if there is none.
func get(t *testing.T, r Reader, key string) string {
	t.Helper()
	value, closer, err := r.Get([]byte(key))
	if errors.Is(err, ErrNotFound) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	return string(value)
}

// list returns key=value of everything in [lower, upper). An empty string is no bound.
func list(t *testing.T, r Reader, lower, upper string) []string {
	t.Helper()
	bound := func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	}
	it := r.NewIter(bound(lower), bound(upper))
	var pairs []string
	for ok := it.First(); ok; ok = it.Next() {
		pairs = append(pairs, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return pairs
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A batch becomes visible as a whole, its later operations over its earlier ones, and survives
// closing.
func TestBatch(t *testing.T) {
	dir := t.TempDir()
	db := open(t, Options{Dir: dir})
	mustWrite(t, db, "a=1", "b=2", "c=3", "d=4")
	mustWrite(t, db, "b", "c=30")
	b := db.NewBatch()
	if !b.Empty() || b.Len() != 0 {
		t.Error("a new batch should be empty")
	}
	b.Set([]byte("lost"), nil)
	b.Reset()
	b.DeleteRange([]byte("d"), []byte("e"))
	b.Set([]byte("e"), []byte("5"))
	if b.Len() != 2 || b.Size() == 0 {
		t.Errorf("batch of two has length %d, size %d", b.Len(), b.Size())
	}
	if err := db.Apply(b); err != nil {
		t.Fatal(err)
	}
	equal(t, list(t, db, "", ""), "a=1", "c=30", "e=5")
	if err := errors.Join(db.Wait(b), b.Close(), db.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if err := db.Apply(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("apply after close: %v", err)
	}
	equal(t, list(t, open(t, Options{Dir: dir}), "", ""), "a=1", "c=30", "e=5")
}

// A snapshot and an iterator keep the state of their creation.
func TestSnapshot(t *testing.T) {
	db := open(t, Options{Durability: Memory})
	mustWrite(t, db, "a=1", "b=2")
	s := db.NewSnapshot()
	defer s.Close()
	it := db.NewIter(nil, nil)
	defer it.Close()
	mustWrite(t, db, "a=9", "b", "c=3")
	equal(t, list(t, s, "", ""), "a=1", "b=2")
	equal(t, []string{get(t, s, "b"), get(t, s, "c"), get(t, db, "b"), get(t, db, "c")}, "2", "-", "-", "3")
	if !it.Last() || string(it.Key()) != "b" {
		t.Errorf("the iterator sees what was written after it was made")
	}
}

// An iterator keeps to its bounds in both directions.
func TestIter(t *testing.T) {
	db := open(t, Options{Durability: Memory})
	mustWrite(t, db, "a=1", "b=2", "c=3", "d=4")
	it := db.NewIter([]byte("b"), []byte("d"))
	defer it.Close()
	at := func(ok bool) string {
		if ok != it.Valid() {
			t.Errorf("moved %v, valid %v", ok, it.Valid())
		}
		if !ok {
			return "-"
		}
		return string(it.Key())
	}
	equal(t, []string{
		at(it.First()), at(it.Prev()), at(it.Last()), at(it.Next()), at(it.SeekGE([]byte("bb"))), at(it.SeekLT([]byte("bb"))),
		at(it.SeekGE([]byte("a"))), at(it.Next()), at(it.Prev()), at(it.SeekLT([]byte("b"))), at(it.SeekGE([]byte("d"))),
	}, "b", "-", "c", "-", "c", "b", "b", "c", "b", "-", "-")
	if it.Error() != nil {
		t.Error(it.Error())
	}
}

// All invalid options are reported together.
func TestOptions(t *testing.T) {
	_, err := Open(Options{CacheBytes: -1, MemTableBytes: 2 << 30, Durability: 7})
	for _, want := range []string{"unknown durability 7", "missing data directory", "negative", "at most 1 GB"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	for d, want := range map[Durability]string{Sync: "sync", Async: "async", Memory: "memory", 7: "Durability(7)"} {
		if d.String() != want {
			t.Errorf("durability %d is called %q", int(d), d)
		}
	}
}

// Memory mode leaves no files where the process runs.
func TestMemoryHasNoFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	mustWrite(t, open(t, Options{Durability: Memory}), "a=1")
	if names, err := filepath.Glob("*"); err != nil || len(names) > 0 {
		t.Errorf("found %q, %v", names, err)
	}
}

// The metrics follow the work.
func TestMetrics(t *testing.T) {
	db := open(t, Options{Dir: t.TempDir()})
	for i := range 100 {
		mustWrite(t, db, fmt.Sprintf("k%03d=%s", i, strings.Repeat("v", 1000)))
	}
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	get(t, db, "k050")
	get(t, db, "k050")
	m := db.Metrics()
	if m.DiskBytes == 0 || m.TableBytes == 0 || m.TableCount == 0 || m.Flushes == 0 || m.LogWrittenBytes < 100_000 ||
		m.CompactionWriteBytes == 0 || m.CacheHits+m.CacheMisses == 0 || m.MemTableBytes == 0 || m.ReadAmplification == 0 || m.ReserveGivenUp {
		t.Errorf("metrics %+v", m)
	}
}
