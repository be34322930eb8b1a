package kv

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// tableFiles returns the names of the table files in the directory of a closed store.
func tableFiles(t *testing.T, fs FS) (names []string) {
	t.Helper()
	all, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if isTable(name) {
			names = append(names, name)
		}
	}
	return names
}

// flip inverts a byte of a file; a negative offset counts from the end.
func flip(t *testing.T, fs FS, name string, offset int64) {
	t.Helper()
	path := fs.PathJoin("data", name)
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if offset < 0 {
		offset += int64(len(content))
	}
	content[offset] ^= 0xff
	out, err := fs.Create(path, "test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = out.Write(content)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		t.Fatal(err)
	}
}

func row(n int) string { return fmt.Sprintf("k%05d", n) }

// rows writes the rows from to to, of 100 bytes each.
func rows(t *testing.T, db *DB, from, to int) {
	t.Helper()
	for n := from; n < to; n += 100 {
		var pairs []string
		for i := n; i < min(n+100, to); i++ {
			pairs = append(pairs, row(i)+"="+strings.Repeat(fmt.Sprint(i%10), 100))
		}
		mustWrite(t, db, pairs...)
	}
}

const damagedRows = 2000

// damagedStore makes a store of one table file with damagedRows rows, and inverts a byte of the
// file.
func damagedStore(t *testing.T, offset int64) (opts Options, file string) {
	t.Helper()
	opts = Options{Dir: "data", FS: NewMemFS()}
	db, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	rows(t, db, 0, damagedRows)
	if err := errors.Join(db.Flush(), db.Close()); err != nil {
		t.Fatal(err)
	}
	files := tableFiles(t, opts.FS)
	if len(files) != 1 {
		t.Fatalf("table files %v, want one", files)
	}
	flip(t, opts.FS, files[0], offset)
	return opts, files[0]
}

// A bad block fails only the reads that need it; the store lists the file with its keys.
func TestBadBlock(t *testing.T) {
	opts, file := damagedStore(t, 5000)
	db := open(t, opts)
	bad := 0
	for n := range damagedRows {
		value, closer, err := db.Get([]byte(row(n)))
		switch {
		case err == nil:
			if want := strings.Repeat(fmt.Sprint(n%10), 100); string(value) != want {
				t.Fatalf("row %d is %q", n, value)
			}
			closer.Close()
		case errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrStopped):
			bad++
		default:
			t.Fatalf("row %d: %v", n, err)
		}
	}
	if bad == 0 || bad > damagedRows/2 {
		t.Errorf("%d of %d rows cannot be read, want those of one block", bad, damagedRows)
	}
	it := db.NewIter(nil, nil)
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if err := it.Error(); !errors.Is(err, ErrCorrupt) || n >= damagedRows {
		t.Errorf("%d rows in order, and then %v", n, err)
	}
	if err := it.Close(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("close of the iterator: %v", err)
	}
	if err := db.Failed(); err != nil {
		t.Errorf("the store has stopped: %v", err)
	}
	mustWrite(t, db, row(0)+"=new")
	if got := get(t, db, row(0)); got != "new" {
		t.Errorf("a row written since is %q", got)
	}
	found := db.Damages()
	if len(found) != 1 || found[0].File != file || string(found[0].Lower) != row(0) || string(found[0].Upper) != row(damagedRows-1) {
		t.Errorf("damages %v", found)
	}
	select {
	case <-db.Damaged():
	default:
		t.Error("Damaged has no token")
	}
}

// Errors about one file are logged once a minute.
func TestRepeatedDamage(t *testing.T) {
	opts, _ := damagedStore(t, 5000)
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(opts)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		logged := func(reads int) (n int) {
			for range reads {
				it := db.NewIter(nil, nil)
				for ok := it.First(); ok; ok = it.Next() {
				}
				var repeated interface{ Repeated() bool }
				if err := it.Close(); !errors.As(err, &repeated) {
					t.Fatalf("read: %v", err)
				}
				if !repeated.Repeated() {
					n++
				}
			}
			return n
		}
		for minute := range 3 {
			if n := logged(50); n != 1 {
				t.Errorf("in minute %d %d errors are to be logged", minute, n)
			}
			time.Sleep(repeatEvery)
		}
	})
}

// failedCompactions waits for some virtual time while the store has reason to compact the damaged
// file.
func failedCompactions(t *testing.T, opts Options, wait time.Duration) (failed int64) {
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(opts)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for n := range 8 {
			rows(t, db, 0, damagedRows)
			if err := db.Flush(); err != nil {
				t.Fatalf("flush %d: %v", n, err)
			}
		}
		time.Sleep(wait)
		synctest.Wait()
		failed = db.pebble.Metrics().Compact.FailedCount
		if err := db.Failed(); err != nil {
			t.Errorf("the store has stopped: %v", err)
		}
		if len(db.Damages()) != 1 {
			t.Errorf("damages %v", db.Damages())
		}
		if got := get(t, db, row(7)); got != strings.Repeat("7", 100) {
			t.Errorf("row 7 is %q", got)
		}
	})
	return failed
}

// A compaction that needs a bad block fails, does not stop the store, and is tried again at growing
// intervals.
func TestCompactionOverBadBlock(t *testing.T) {
	opts, _ := damagedStore(t, 5000)
	if failed := failedCompactions(t, opts, time.Hour); failed == 0 || failed > 80 {
		t.Errorf("%d compactions failed within an hour", failed)
	}
}

// A file whose statistics cannot be read is not read in a loop.
func TestStatisticsOfDamagedFile(t *testing.T) {
	for name, offset := range map[string]int64{"footer": -20, "properties": -600} {
		t.Run(name, func(t *testing.T) {
			opts, file := damagedStore(t, offset)
			var reads atomic.Int64
			opts.FS = errorfs.Wrap(opts.FS, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if filepath.Base(op.Path) == file && op.Kind == errorfs.OpFileReadAt {
					reads.Add(1)
				}
				return nil
			}))
			synctest.Test(t, func(t *testing.T) {
				db, err := Open(opts)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				time.Sleep(time.Hour)
				synctest.Wait()
				mustWrite(t, db, "a=1")
				if err := errors.Join(db.Flush(), db.Failed()); err != nil {
					t.Errorf("the store has stopped: %v", err)
				}
				if n := reads.Load(); n == 0 || n > 10*360 {
					t.Errorf("%d reads within an hour", n)
				}
				if len(db.Damages()) != 1 {
					t.Errorf("damages %v", db.Damages())
				}
			})
		})
	}
}

// A block that the disk cannot read is damage as well, until it can be read again.
func TestUnreadableBlock(t *testing.T) {
	opts := Options{Dir: "data", FS: NewMemFS()}
	db := open(t, opts)
	rows(t, db, 0, damagedRows)
	if err := errors.Join(db.Flush(), db.Close()); err != nil {
		t.Fatal(err)
	}
	var broken atomic.Bool
	opts.FS = errorfs.Wrap(opts.FS, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && isTable(op.Path) && op.Kind == errorfs.OpFileReadAt && op.Offset > 4096 {
			return syscall.EIO
		}
		return nil
	}))
	again := open(t, opts)
	get(t, again, row(0)) // opens the file
	broken.Store(true)
	if _, _, err := again.Get([]byte(row(1000))); !errors.Is(err, ErrCorrupt) || !errors.Is(err, syscall.EIO) {
		t.Errorf("unreadable row: %v", err)
	}
	broken.Store(false)
	if got := get(t, again, row(1000)); got != strings.Repeat("0", 100) {
		t.Errorf("row 1000 is %q", got)
	}
	if err := again.Failed(); err != nil {
		t.Errorf("the store has stopped: %v", err)
	}
}
