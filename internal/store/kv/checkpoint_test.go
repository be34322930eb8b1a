package kv

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// openCheckpoint opens a checkpoint for reading; it must be sound.
func openCheckpoint(t *testing.T, fsys FS, dir string) *ReadOnly {
	t.Helper()
	s, err := OpenStopped(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context(), func(int64) {}, func(d Damage) { t.Errorf("%s: %s", d.File, d.Fault) }); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open()
	if err != nil {
		t.Fatal(errors.Join(err, s.Close()))
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// A checkpoint of some spans has no log of what lies outside.
func TestCheckpointShortLog(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: t.TempDir()}
	db := open(t, opts)
	for i := range 100 {
		mustWrite(t, db, fmt.Sprintf("z%d=%s", i, strings.Repeat("x", 10_000)))
	}
	mustWrite(t, db, "a=1")
	dir := filepath.Join(opts.Dir, "backups", "one")
	if err := db.Checkpoint(dir, Span{[]byte("a"), []byte("b")}); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, name := range logs {
		if info, err := os.Stat(name); err != nil || info.Size() > 10_000 {
			t.Errorf("%s has %d bytes, %v", name, info.Size(), err)
		}
	}
	r := openCheckpoint(t, nil, dir)
	if _, closer, err := r.Get([]byte("a")); err != nil {
		t.Error(err)
	} else if err := closer.Close(); err != nil {
		t.Error(err)
	}
}

// A checkpoint has what was written before it, in tables and in the log, and nothing later.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	for _, durability := range []Durability{Sync, Async, Memory} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			opts := Options{Dir: "data", FS: NewMemFS(), Durability: durability}
			if durability != Memory {
				opts = Options{Dir: t.TempDir(), Durability: durability}
			}
			db := open(t, opts)
			mustWrite(t, db, "in a table=1", "changed=1", "removed=1")
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
			mustWrite(t, db, "in the log=1", "changed=2", "removed")
			dir := filepath.Join(opts.Dir, "backups", "one")
			if err := db.Checkpoint(dir); err != nil {
				t.Fatal(err)
			}
			mustWrite(t, db, "later=1", "changed=3")
			r := openCheckpoint(t, db.opts.FS, dir)
			for key, want := range map[string]string{"in a table": "1", "in the log": "1", "changed": "2", "removed": "-", "later": "-"} {
				if got := get(t, r, key); got != want {
					t.Errorf("the checkpoint has %q = %s, want %s", key, got, want)
				}
			}
			if got := get(t, db, "changed"); got != "3" {
				t.Errorf("the store has %s after the checkpoint", got)
			}
			if err := db.Checkpoint(dir); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a second checkpoint in the same directory: %v", err)
			}
			if get(t, r, "changed") != "2" {
				t.Error("a refused checkpoint has changed the directory")
			}
		})
	}
}

// A checkpoint is a store: it can be opened for writing, and seals itself when it is closed.
func TestCheckpointOpens(t *testing.T) {
	t.Parallel()
	db := open(t, Options{Dir: t.TempDir()})
	mustWrite(t, db, "a=1")
	dir := filepath.Join(t.TempDir(), "copy")
	if err := db.Checkpoint(dir); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		copied, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if got := get(t, copied, "a"); got != fmt.Sprint(i+1) {
			t.Errorf("a is %s in round %d", got, i)
		}
		if copied.Unjournaled() {
			t.Error("the checkpoint has no journal")
		}
		mustWrite(t, copied, fmt.Sprintf("a=%d", i+2))
		if err := copied.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(t, db, "a"); got != "1" {
		t.Errorf("a write to the copy has changed the store: %s", got)
	}
}

// A checkpoint with spans has their keys only, and the files of no others.
func TestCheckpointOfSpans(t *testing.T) {
	t.Parallel()
	db := open(t, Options{Dir: t.TempDir()})
	large := strings.Repeat("x", 1<<20)
	for _, key := range []string{"a", "b", "c"} {
		mustWrite(t, db, key+"1="+large, key+"2=small")
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	mustWrite(t, db, "b3=in the log")
	dir := filepath.Join(t.TempDir(), "b")
	if err := db.Checkpoint(dir, Span{[]byte("b"), []byte("c")}); err != nil {
		t.Fatal(err)
	}
	r := openCheckpoint(t, db.opts.FS, dir)
	if get(t, r, "b1") != large || get(t, r, "b2") != "small" || get(t, r, "b3") != "in the log" {
		t.Error("a key of the span is missing")
	}
	if get(t, r, "a1") != "-" || get(t, r, "c1") != "-" {
		t.Error("the checkpoint has the tables of other keys")
	}
}

// While writers write, each checkpoint holds every acknowledged write and is a prefix of all.
func TestCheckpointWhileWriting(t *testing.T) {
	t.Parallel()
	for _, durability := range []Durability{Sync, Async} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			db := open(t, Options{Dir: t.TempDir(), Durability: durability, MemTableBytes: 1 << 20})
			var done atomic.Bool
			var acknowledged [4]atomic.Int64
			var writers sync.WaitGroup
			defer writers.Wait()
			defer done.Store(true)
			for w := range acknowledged {
				writers.Go(func() {
					filler := strings.Repeat("f", 5000)
					for n := int64(1); !done.Load(); n++ {
						// two keys of one batch: a checkpoint has both or neither
						if err := write(db, fmt.Sprintf("%d one=%d %s", w, n, filler), fmt.Sprintf("%d two=%d %s", w, n, filler)); err != nil {
							t.Error(err)
							return
						}
						acknowledged[w].Store(n)
					}
				})
			}
			for i := range 20 {
				var before [4]int64
				for w := range before {
					before[w] = acknowledged[w].Load()
				}
				dir := filepath.Join(t.TempDir(), "copy")
				if err := db.Checkpoint(dir); err != nil {
					t.Fatal(err)
				}
				r := openCheckpoint(t, db.opts.FS, dir)
				for w, n := range before {
					var one, two int64
					_, _ = fmt.Sscan(get(t, r, fmt.Sprintf("%d one", w)), &one)
					_, _ = fmt.Sscan(get(t, r, fmt.Sprintf("%d two", w)), &two)
					if one != two || one < n {
						t.Fatalf("checkpoint %d: writer %d had %d writes acknowledged, the copy has %d and %d", i, w, n, one, two)
					}
				}
			}
		})
	}
}

// The copy of a log that is being written ends behind the last finished write.
func TestCheckpointLogEnds(t *testing.T) {
	t.Parallel()
	db := open(t, Options{Dir: t.TempDir()})
	mustWrite(t, db, "a=1")
	var names []string
	db.guard.logs.Range(func(name, _ any) bool { names = append(names, name.(string)); return true })
	if len(names) != 1 {
		t.Fatalf("the store writes the logs %q", names)
	}
	writing, _ := db.guard.logs.Load(names[0])
	path := filepath.Join(db.opts.Dir, names[0])
	whole, err := readSmall(db.opts.FS, path, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	writing.(*logFile).written.Add(-7) // as if a write were under way
	written, err := readSmall(db.guard, path, 1<<30)
	if want := whole[:writing.(*logFile).written.Load()]; err != nil || len(want) == 0 || !bytes.Equal(written, want) {
		t.Errorf("of %d bytes, %d are read, want %d: %v", len(whole), len(written), len(want), err)
	}
}

// A failure in the directory of a checkpoint is the checkpoint's: the store continues, the directory
// is gone, and the reserve stays.
func TestCheckpointFails(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	target := filepath.Join(root, "copies", "one")
	var left atomic.Int64 // operations until one fails
	disk := errorfs.Wrap(privateFS{vfs.Default}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		below := strings.HasPrefix(op.Path, target) && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpRemoveAll
		if below && left.Add(-1) == 0 {
			return syscall.ENOSPC
		}
		return nil
	}))
	db := open(t, Options{Dir: filepath.Join(root, "data"), FS: disk, ReserveBytes: leastReserve})
	mustWrite(t, db, "a=1")
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db, "b=1")
	failed := 0
	for at := 1; ; at++ {
		left.Store(int64(at))
		err := db.Checkpoint(target)
		if err == nil {
			break
		}
		failed++
		if !errors.Is(err, ErrNoSpace) {
			t.Errorf("operation %d: %v", at, err)
		}
		if _, err := vfs.Default.Stat(target); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after a failure of operation %d the directory is still there", at)
		}
		if db.Failed() != nil || db.Full() {
			t.Fatalf("operation %d has stopped the store: %v, full %v", at, db.Failed(), db.Full())
		}
		mustWrite(t, db, fmt.Sprintf("c=%d", at))
	}
	if failed < 8 {
		t.Errorf("only %d operations could fail", failed)
	}
	if r := openCheckpoint(t, disk, target); get(t, r, "c") != fmt.Sprint(failed) {
		t.Error("the checkpoint after the failures lacks a write")
	}
}
