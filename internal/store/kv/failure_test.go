package kv

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

var errInjected = errors.New("injected")

// breaking returns a file system that fails the operations of broken once on is set.
func breaking(inner FS, on *atomic.Bool, broken func(op errorfs.Op) bool) FS {
	injector := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if on.Load() && broken(op) {
			return errInjected
		}
		return nil
	})
	return breakingFS{errorfs.Wrap(inner, injector), injector}
}

// breakingFS also fails the files created by reuse, which errorfs does not.
type breakingFS struct {
	*errorfs.FS
	injector errorfs.Injector
}

func (b breakingFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := b.injector.MaybeError(errorfs.Op{Kind: errorfs.OpReuseForWrite, Path: newname}); err != nil {
		return nil, err
	}
	if err := b.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return b.OpenReadWrite(newname, category)
}

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

// broken lists the operations that may fail: each stops the store, and not the process.
var broken = map[string]func(op errorfs.Op) bool{
	"log sync":  func(op errorfs.Op) bool { return isSync(op) && filepath.Ext(op.Path) == ".log" },
	"log write": func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite && filepath.Ext(op.Path) == ".log" },
	"log rotation": func(op errorfs.Op) bool {
		return (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite) && filepath.Ext(op.Path) == ".log"
	},
	"manifest":     func(op errorfs.Op) bool { return isSync(op) && strings.Contains(op.Path, "MANIFEST") },
	"table write":  func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite && filepath.Ext(op.Path) == ".sst" },
	"table create": func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate && filepath.Ext(op.Path) == ".sst" },
	"every change": func(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite },
	"directory":    func(op errorfs.Op) bool { return isSync(op) && op.Path == "data" },
	"manifest file": func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "MANIFEST")
	},
}

// A failing disk stops the store and not the process: nothing is acknowledged from then on, every
// later call returns the reason, reads continue, Close returns, and every write acknowledged before
// exists afterwards.
func TestFailureStopsTheStore(t *testing.T) {
	for name, breaks := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for before := range 12 {
				stopAfter(t, before, breaks)
			}
		})
	}
}

// stopAfter breaks the disk after some batches of one writer, while a second one writes all the
// time.
func stopAfter(t *testing.T, before int, breaks func(errorfs.Op) bool) {
	t.Helper()
	var on atomic.Bool
	disk := NewCrashFS()
	db, err := Open(crashOpts(breaking(disk, &on, breaks)))
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := [2]int{-1, -1}
	var writers sync.WaitGroup
	for writer := range acknowledged {
		writers.Go(func() {
			for n := range 200 {
				if writer == 0 && n == before {
					on.Store(true)
				}
				if err := write(db, batchOf(writer, n)...); err != nil {
					if !errors.Is(err, ErrStopped) || !errors.Is(err, errInjected) {
						t.Errorf("writer %d stopped with %v", writer, err)
					}
					return
				}
				acknowledged[writer] = n
			}
		})
	}
	writers.Wait()
	if failed := db.Failed(); !errors.Is(failed, ErrStopped) {
		t.Fatalf("nothing failed: %v; acknowledged %v", failed, acknowledged)
	}
	<-db.Stopped()
	if err := write(db, "later=1"); !errors.Is(err, ErrStopped) {
		t.Errorf("a later write: %v", err)
	}
	if err := db.Flush(); !errors.Is(err, ErrStopped) {
		t.Errorf("a later flush: %v", err)
	}
	if got := get(t, db, "later"); got != "-" {
		t.Errorf("a refused write is visible")
	}
	if err := db.Close(); !errors.Is(err, ErrStopped) {
		t.Errorf("close: %v", err)
	}
	check(t, disk.AfterCrash(), acknowledged)
}

// If the log cannot be synced, calls that already wait return the failure, as later calls do.
func TestWaiterIsTold(t *testing.T) {
	var on atomic.Bool
	db := open(t, crashOpts(breaking(vfs.NewMem(), &on, broken["log sync"])))
	mustWrite(t, db, "a=1")
	on.Store(true)
	b := db.NewBatch()
	defer b.Close()
	b.Set([]byte("b"), []byte("2"))
	// Apply does not wait for the disk, but the disk may have failed before it returns.
	if err := db.Apply(b); err != nil && !errors.Is(err, errInjected) {
		t.Fatalf("apply: %v", err)
	}
	if err := db.Wait(b); !errors.Is(err, ErrStopped) || !errors.Is(err, errInjected) {
		t.Errorf("wait: %v", err)
	}
	if err := db.Wait(b); !errors.Is(err, ErrStopped) {
		t.Errorf("wait again: %v", err)
	}
}

// In Async mode no call waits, so the failure shows at the next sync.
func TestAsyncFailure(t *testing.T) {
	var on atomic.Bool
	opts := crashOpts(breaking(vfs.NewMem(), &on, broken["log sync"]))
	opts.Durability = Async
	opts.AsyncWindow = 1
	db := open(t, opts)
	on.Store(true)
	// the window may have ended already
	if err := write(db, "a=1"); err != nil && !errors.Is(err, errInjected) {
		t.Error(err)
	}
	<-db.Stopped()
	if err := write(db, "b=2"); !errors.Is(err, errInjected) {
		t.Errorf("write after the failure: %v", err)
	}
}

// Any failure of the disk while the store opens makes Open fail.
func TestFailureDuringOpen(t *testing.T) {
	disk := NewCrashFS()
	disk.CutAfter(150)
	acknowledged, _ := work(disk)
	for name, breaks := range broken {
		again := disk.AfterCrash()
		var on atomic.Bool
		on.Store(true)
		db, err := Open(crashOpts(breaking(again, &on, breaks)))
		if err == nil {
			db.Close()
		} else if !errors.Is(err, errInjected) {
			t.Errorf("%s: open says %v", name, err)
		}
		check(t, again.AfterCrash(), acknowledged)
	}
}

// Only the first cause of a failure counts.
func TestFirstCause(t *testing.T) {
	db := open(t, Options{Durability: Memory})
	l := pebbleLogger{db}
	l.Infof("not %s", "logged")
	l.Errorf("not %s either", "logged")
	l.Fatalf("first %d", 1)
	l.Fatalf("second %d", 2)
	if err := db.Failed(); err == nil || !strings.Contains(err.Error(), "first 1") {
		t.Error(err)
	}
}

// Damaged files are refused or reported as corrupt. They never end the process, and never yield
// wrong values.
func TestCorrupt(t *testing.T) {
	pristine := vfs.NewMem()
	db := open(t, crashOpts(pristine))
	for n := range 30 {
		mustWrite(t, db, batchOf(0, n)...)
	}
	if err := errors.Join(db.Flush(), write(db, batchOf(0, 30)...), db.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := pristine.List("data")
	if err != nil {
		t.Fatal(err)
	}
	marked := 0
	for _, name := range names {
		for _, where := range []int{0, 20, 50, 99} {
			if damage(t, pristine, name, where) {
				marked++
			}
		}
	}
	if marked == 0 {
		t.Error("no damage was reported as ErrCorrupt")
	}
}

// damage changes bytes of a file, at a percentage of its length, in a copy of a directory, and
// reads everything. It reports whether an error was marked ErrCorrupt.
func damage(t *testing.T, pristine *vfs.MemFS, name string, where int) bool {
	t.Helper()
	fs := vfs.NewMem()
	if _, err := vfs.Clone(pristine, fs, "data", "data"); err != nil {
		t.Fatal(err)
	}
	path := fs.PathJoin("data", name)
	info, err := fs.Stat(path)
	if err != nil || info.IsDir() || info.Size() == 0 {
		return false
	}
	f, err := fs.OpenReadWrite(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0xDE, 0xAD, 0xBE, 0xEF}, info.Size()*int64(where)/100); err != nil {
		t.Fatal(err)
	}
	f.Close()
	db, err := Open(crashOpts(fs))
	if err != nil {
		return errors.Is(err, ErrCorrupt)
	}
	defer db.Close()
	for n := range 31 {
		value, closer, err := db.Get(fmt.Appendf(nil, "0/z/%03d", n))
		if err == nil {
			if want := batchOf(0, n)[2]; !strings.HasSuffix(want, "="+string(value)) {
				t.Errorf("%s damaged at %d%%: row %d is wrong", name, where, n)
			}
			closer.Close()
		}
	}
	return errors.Is(db.Failed(), ErrCorrupt)
}
