package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/testkit"
)

// smallestDisk is the smallest disk that docs/run-the-server.md supports.
const smallestDisk = 64 << 20

// logged is a log that a test reads.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// noise returns value n: size bytes that do not compress.
func noise(n, size int) []byte {
	value := make([]byte, size)
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], uint64(n))
	_, _ = rand.NewChaCha8(seed).Read(value) // never fails
	return value
}

// itemKey returns the key of item n. Keys of successive items lie apart, as in a hashed table.
func itemKey(n int) string { return fmt.Sprintf("item%06d", n*7919%100_003) }

func putNoise(db *DB, n int) error {
	return write(db, fmt.Sprintf("%s=%s", itemKey(n), noise(n, 100_000)))
}

// fillDisk puts items of 100 KB until the disk is full, and returns how many.
func fillDisk(t *testing.T, db *DB) (items int) {
	t.Helper()
	return fillOn(t, db, 0)
}

// fillOn is fillDisk after so many items.
func fillOn(t *testing.T, db *DB, items int) int {
	t.Helper()
	for ; !db.Full(); items++ {
		if err := putNoise(db, items); err != nil {
			t.Fatalf("after %d items: %v", items, err)
		}
	}
	return items
}

// staysFull waits until everything is compacted, or has no room for that, and reports whether the disk
// is full then. If writes come faster than compactions, it is full for a while with half its room free.
func staysFull(db *DB) bool {
	for settled := time.Duration(0); settled < 3*healEvery; time.Sleep(healEvery / 10) {
		if !db.Full() {
			return false
		}
		if db.reserve.tidy.Load() || db.compactions.short.failures.Load() >= stuckAfter {
			settled += healEvery / 10
		}
	}
	return true
}

// deleteAllBut deletes the items but every nth.
func deleteAllBut(t *testing.T, db *DB, items, nth int) {
	t.Helper()
	for n := range items {
		if n%nth != 0 {
			mustWrite(t, db, itemKey(n))
		}
	}
}

// awaitRoom waits until the store accepts writes again, without a call that would help.
func awaitRoom(t *testing.T, db *DB, limit time.Duration) {
	t.Helper()
	for ; db.Full(); time.Sleep(100 * time.Millisecond) {
		if limit -= 100 * time.Millisecond; limit < 0 {
			t.Fatal("the disk stays full")
		}
	}
}

// survives fills a disk and frees most of it again, several times. The store must work as before.
func survives(t *testing.T, opts Options) {
	t.Helper()
	var log logged
	opts.Logger = log.logger()
	db := open(t, opts)
	rounds := 3
	if testing.Short() { // under the race detector each takes ten seconds
		rounds = 2
	}
	for round := 1; round <= rounds; round++ {
		items := fillDisk(t, db)
		for round == 1 && items < 250 && !staysFull(db) {
			items = fillOn(t, db, items)
		}
		if round == 1 && items < 250 {
			t.Errorf("only %d MB of items fit", items/10)
		}
		if items < 20 { // compactions of the round before may still need most of the room
			t.Errorf("round %d: full after %d items", round, items)
		}
		if err := db.FullReason(); err == nil {
			t.Error("there is no reason")
		}
		deleteAllBut(t, db, items, 20)
		awaitRoom(t, db, time.Minute)
		if err := db.FullReason(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		for n := range items {
			want := "-"
			if n%20 == 0 {
				want = string(noise(n, 100_000))
			}
			if got := get(t, db, itemKey(n)); got != want {
				t.Fatalf("round %d: item %d of %d is %.10q", round, n, items, got)
			}
		}
		if full, back := log.count("disk is full"), log.count("disk has room again"); full < round || full != back {
			t.Errorf("round %d: the log says %d times that the disk is full and %d times that it has room", round, full, back)
		}
		for n := range 20 { // refused writes are accepted
			if err := putNoise(db, n); err != nil || db.Full() {
				t.Fatalf("round %d: item %d of the next: %v, full: %v", round, n, err, db.Full())
			}
		}
	}
	if err := db.Failed(); err != nil {
		t.Error(err)
	}
}

// After a full disk the store accepts writes again as soon as deletes have freed the room for them:
// without a restart, and without another call.
func TestFullDiskHeals(t *testing.T) {
	survives(t, Options{FS: newSmallDisk(smallestDisk), ReserveBytes: defaultReserveBytes})
}

// A full disk of which only half was deleted heals too, at any size, and then accepts new items.
func TestHalfDeletedHeals(t *testing.T) {
	sizes := []int64{smallestDisk, 96 << 20, 160 << 20, 256 << 20, 512 << 20}
	switch {
	case testing.Short():
		sizes = sizes[:1]
	case !testkit.Full():
		sizes = sizes[:2]
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size>>20), func(t *testing.T) {
			db := open(t, Options{FS: newSmallDisk(size), ReserveBytes: max(size/12, leastReserve)})
			items := fillDisk(t, db)
			for _, n := range rand.New(rand.NewPCG(1, uint64(size))).Perm(items)[items/2:] {
				mustWrite(t, db, itemKey(n))
			}
			awaitRoom(t, db, time.Minute)
			// they fit, though compactions may need the room for a moment
			for n := range items / 4 {
				if err := putNoise(db, items+n); err != nil {
					t.Fatal(err)
				}
				awaitRoom(t, db, time.Minute)
			}
		})
	}
}

// A slice whose compaction has no room, because it needs all tables that overlap it, does not keep
// a disk full: the others are compacted, and then twice the reserve is enough.
func TestSliceWithoutRoom(t *testing.T) {
	for _, c := range []struct {
		name    string
		free    int64 // bytes
		deleted bool  // the second half of the keys, which frees 18 MB
		heals   bool
	}{
		{"others free enough", 15 << 20, true, true},
		{"twice the reserve is free", 17 << 20, false, true},
		{"less is free", 15 << 20, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := newSmallDisk(1 << 30)
				db := open(t, Options{FS: disk, ReserveBytes: 8 << 20})
				const items = 180 // a table above 20 MB would be divided
				key := func(half string, n int) string { return fmt.Sprintf("%s%03d", half, n) }
				for _, half := range []string{"a", "z"} {
					for n := range items {
						mustWrite(t, db, key(half, n)+"="+string(noise(n, 100_000)))
					}
					if err := errors.Join(db.Flush(), db.pebble.Compact(t.Context(), []byte(half), []byte(half+"~"), true)); err != nil {
						t.Fatal(err)
					}
					// a small table above, which overlaps all of them
					mustWrite(t, db, key(half, 0)+"=1", key(half, items-1)+"=1")
					for n := range items {
						if half == "z" && c.deleted {
							mustWrite(t, db, key(half, n))
						}
					}
					if err := db.Flush(); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute) // until the files are deleted that the flushes and compactions have replaced
				tried := db.Metrics().Compactions
				db.reserve.giveUp()
				disk.grow(c.free - int64(db.reserve.free()))
				time.Sleep(5 * time.Minute)
				if tried = db.Metrics().Compactions - tried; db.Full() == c.heals || tried == 0 || tried > 15 {
					t.Errorf("full: %v, with %d MB free and after %d compactions", db.Full(), db.reserve.free()>>20, tried)
				}
			})
		})
	}
}

// While the disk stays full the log reports it about once a minute, and the compaction without room
// is tried as often. The store notices room freed by others.
func TestStillFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		disk := newSmallDisk(smallestDisk)
		db := open(t, Options{FS: disk, ReserveBytes: defaultReserveBytes, Logger: log.logger()})
		for n := 0; !db.Full(); time.Sleep(3 * time.Minute) { // compactions may make room once more
			for ; !db.Full(); n++ {
				if err := putNoise(db, n); err != nil {
					t.Fatalf("after %d items: %v", n, err)
				}
			}
		}
		said, before := log.count("disk is still full"), db.Metrics()
		time.Sleep(10 * time.Minute)
		if n := log.count("disk is still full") - said; n < 9 || n > 11 {
			t.Errorf("logged %d times in ten minutes", n)
		}
		after := db.Metrics()
		if flushes, compactions := after.Flushes-before.Flushes, after.Compactions-before.Compactions; flushes > 0 || compactions > 11 {
			t.Errorf("in ten minutes without a write: %d flushes, %d compactions tried", flushes, compactions)
		}
		if got := db.Failed(); got != nil || !db.Full() {
			t.Errorf("full: %v, %v", db.Full(), got)
		}
		disk.grow(64 << 20)
		time.Sleep(2 * time.Second)
		if db.Full() {
			t.Error("the room was not noticed")
		}
		synctest.Wait()
		goroutines := testkit.Wakeups()
		time.Sleep(24 * time.Hour)
		if n := testkit.Wakeups() - goroutines; n > 1000 {
			t.Errorf("%d wake-ups in an idle day after it", n)
		}
	})
}

// descriptors is a file system that temporarily has no file descriptor.
type descriptors struct {
	FS
	mu   sync.Mutex
	none func(name string) bool // true for the files that cannot be opened
	hits int
}

func (d *descriptors) err(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.none == nil || !d.none(name) {
		return nil
	}
	d.hits++
	return syscall.EMFILE
}

func (d *descriptors) refused() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hits
}

func (d *descriptors) set(none func(name string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.none = none
}

func (d *descriptors) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.err(name); err != nil {
		return nil, err
	}
	return d.FS.Create(name, category)
}

func (d *descriptors) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := d.err(name); err != nil {
		return nil, err
	}
	return d.FS.Open(name, opts...)
}

func (d *descriptors) OpenDir(name string) (vfs.File, error) {
	if err := d.err(name); err != nil {
		return nil, err
	}
	return d.FS.OpenDir(name)
}

// A store can be closed while its background waits for a flush that finds no file descriptor.
func TestCloseWhileStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &descriptors{FS: NewMemFS(), none: isTable}
		db, err := Open(crashOpts(disk))
		if err != nil {
			t.Fatal(err)
		}
		db.background.start(func(context.Context) {
			for n := 0; write(db, batchOf(0, n)...) == nil; n++ {
			}
		})
		for !db.stall.on.Load() {
			time.Sleep(time.Millisecond)
		}
		if err := db.Close(); !errors.Is(err, ErrStopped) || !errors.Is(err, syscall.EMFILE) {
			t.Errorf("close: %v", err)
		}
	})
}

// If the reserve cannot be created although there is room, the reason is reported, and the store
// accepts writes once it can be created.
func TestReserveCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &descriptors{FS: newSmallDisk(smallestDisk), none: func(name string) bool { return strings.HasSuffix(name, reserveName) }}
		db := open(t, Options{FS: disk, ReserveBytes: defaultReserveBytes})
		time.Sleep(3 * time.Second)
		if err := db.FullReason(); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("the reason is %v", err)
		}
		disk.set(nil)
		time.Sleep(3 * time.Second)
		if err := db.FullReason(); err != nil {
			t.Error(err)
		}
	})
}

// A store without file descriptors continues when there are some again: flushes, compactions and
// the log wait for them.
func TestOutOfDescriptors(t *testing.T) {
	for _, c := range []struct {
		name string
		none func(name string) bool
		last time.Duration
		ends bool // the store stops
	}{
		{"tables", isTable, 5 * time.Minute, false},
		{"log", isLog, 20 * time.Second, false},
		{"all", func(string) bool { return true }, 8 * time.Second, false},
		{"log for long", isLog, 5 * time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := &descriptors{FS: NewMemFS()}
				db := open(t, crashOpts(disk))
				mustWrite(t, db, batchOf(0, 0)...)
				disk.set(c.none)
				freed := time.AfterFunc(c.last, func() { disk.set(nil) })
				defer freed.Stop()
				var err error
				last := 0
				for n := 1; n < 6 && err == nil; n++ { // each memtable holds four
					if err = write(db, batchOf(0, n)...); err == nil {
						last = n
					}
				}
				synctest.Wait()
				if disk.refused() == 0 {
					t.Error("there was a descriptor for all")
				}
				if (err != nil) != c.ends || c.ends && !errors.Is(err, syscall.EMFILE) {
					t.Fatalf("after batch %d: %v", last, err)
				}
				if c.ends {
					return
				}
				time.Sleep(c.last + 5*time.Second)
				if err := db.Flush(); err != nil || db.Failed() != nil {
					t.Errorf("flush: %v, %v", err, db.Failed())
				}
				for n := range 6 {
					if got := get(t, db, fmt.Sprintf("0/z/%03d", n)); !strings.HasPrefix(got, fmt.Sprint(n)) {
						t.Errorf("row %d is %.5q", n, got)
					}
				}
			})
		})
	}
}
