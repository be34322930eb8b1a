package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// damagedDir is a directory in memory in which one block of a table file is damaged.
type damagedDir struct {
	t      *testing.T
	fs     kv.FS
	file   string // base name of the damaged file
	offset int64
}

func (d *damagedDir) options() Options {
	return Options{Dir: "data", FS: d.fs, Clock: clock.NewFrozenAt(epoch), Durability: kv.Sync}
}

// flip inverts one byte of a file.
func (d *damagedDir) flip(file string, offset int64) {
	d.t.Helper()
	content := d.read(file)
	content[offset] ^= 0xff
	f, err := d.fs.Create(d.fs.PathJoin("data", file), "test")
	if err == nil {
		_, err = f.Write(content)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *damagedDir) read(file string) []byte {
	d.t.Helper()
	f, err := d.fs.Open(d.fs.PathJoin("data", file))
	if err != nil {
		d.t.Fatal(err)
	}
	content, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		d.t.Fatal(err)
	}
	return content
}

// repair undoes the damage.
func (d *damagedDir) repair() { d.flip(d.file, d.offset) }

// readableIn counts the keys in [lower, upper) up to the first unreadable one.
func readableIn(t *testing.T, store kv.Reader, lower, upper []byte) (n int, damaged bool) {
	t.Helper()
	it := store.NewIter(lower, upper)
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	err := it.Close()
	if err != nil && !isDamage(err) {
		t.Fatal(err)
	}
	return n, err != nil
}

// damage flips a byte in the middle of [lower, upper): only the keys of that block become
// unreadable.
func (d *damagedDir) damage(lower, upper []byte) {
	d.t.Helper()
	names, err := d.fs.List("data")
	if err != nil {
		d.t.Fatal(err)
	}
	type place struct {
		file   string
		offset int64
	}
	var places []place
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		for offset := int64(100); offset < int64(len(d.read(name))); offset += 1500 {
			places = append(places, place{name, offset})
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	for _, p := range places {
		d.flip(p.file, p.offset)
		store, err := kv.Open(kv.Options{Dir: "data", FS: d.fs})
		if err != nil {
			d.t.Fatal(err)
		}
		fits := false
		if n, bad := readableIn(d.t, store, lower, upper); bad && n > 0 {
			_, before := readableIn(d.t, store, nil, lower)
			_, behind := readableIn(d.t, store, upper, nil)
			last := lastKey(d.t, store, lower, upper)
			fits = !before && !behind && bytes.Compare(last, upper) < 0
		}
		if err := store.Close(); err != nil {
			d.t.Fatal(err)
		}
		if fits {
			d.file, d.offset = p.file, p.offset
			return
		}
		d.flip(p.file, p.offset)
	}
	d.t.Fatalf("none of %d places damages the range alone", len(places))
}

// lastKey returns the last key in [lower, upper), or upper if it is unreadable.
func lastKey(t *testing.T, store kv.Reader, lower, upper []byte) []byte {
	t.Helper()
	it := store.NewIter(lower, upper)
	defer it.Close()
	if !it.Last() {
		return upper
	}
	return bytes.Clone(it.Key())
}

const damagedItems = 1000

// damagedItem is item n of a table: each has its own deadline, a second after the one before.
func damagedItem(n int) dynamo.Item {
	return item("pk", fmt.Sprintf("p%04d", n), "sk", n, "g", fmt.Sprint("g", n%50), "v", strings.Repeat(fmt.Sprintf("%08d", n*7919), 10),
		"ttl", unix(time.Hour+time.Duration(n)*time.Second))
}

// plainTable has neither stream nor index.
func plainTable(d *TableDesc) { d.Indexes, d.Stream = nil, StreamSpec{} }

// kinds are the tables that the tests damage.
var kinds = map[string]func(*TableDesc){"plain": plainTable, "stream and index": func(*TableDesc) {}}

// newDamagedDir fills a directory with tables "damaged" and "other" of damagedItems items each.
func newDamagedDir(t *testing.T, kind func(*TableDesc)) *damagedDir {
	t.Helper()
	dir := &damagedDir{t: t, fs: kv.NewMemFS()}
	d := open(t, dir.options())
	for _, name := range []string{"damaged", "other"} {
		tab := d.table(name, kind)
		for n := 0; n < damagedItems; n += 50 {
			var ws []*Write
			for i := n; i < n+50; i++ {
				it := damagedItem(i)
				ws = append(ws, &Write{Table: tab, Key: keyOf(t, tab, it), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }})
			}
			if err := d.Write(context.Background(), ws...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.kv.Flush(); err != nil {
		t.Fatal(err)
	}
	d.close()
	return dir
}

// keysIn counts the keys in [lower, upper) up to the first unreadable one.
func (d *db) keysIn(lower, upper []byte) (n int, damaged bool) {
	it := d.kv.NewIter(lower, upper)
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n, it.Close() != nil
}

// A bad block among a table's items: reads and writes that need it fail as a whole, and everything
// else continues.
func TestDamagedItems(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			dir := newDamagedDir(t, kind)
			dir.damage(tableSpan(spaceItems, 1))
			var logged strings.Builder
			o := dir.options()
			o.Logger = slog.New(slog.NewTextHandler(&lockedWriter{w: &logged}, nil))
			d := open(t, o)
			defer d.close()
			tab, other := d.reopened("damaged"), d.reopened("other")

			read := func(tab *Table, n int) (it dynamo.Item, err error) {
				err = d.Read(context.Background(), func(v *View) (err error) {
					it, _, err = v.Get(tab, keyOf(t, tab, damagedItem(n)))
					return err
				})
				return it, err
			}
			var bad, good []int
			for n := range damagedItems {
				it, err := read(tab, n)
				switch {
				case isDamage(err):
					bad = append(bad, n)
				case err != nil || it.String() != damagedItem(n).String():
					t.Fatalf("item %d: %v, %v", n, it, err)
				default:
					good = append(good, n)
				}
				if it, err := read(other, n); err != nil || it.String() != damagedItem(n).String() {
					t.Fatalf("item %d of the other table: %v, %v", n, it, err)
				}
			}
			if len(bad) == 0 || len(bad) > damagedItems/4 {
				t.Fatalf("%d of %d items cannot be read", len(bad), damagedItems)
			}
			err := d.Read(context.Background(), func(v *View) error {
				return v.Range(tab, Range{}, func(dynamo.Item) (bool, error) { return true, nil })
			})
			if !isDamage(err) {
				t.Errorf("a scan of the table ends with %v", err)
			}
			if n := len(d.items(other, Range{})); n != damagedItems {
				t.Errorf("a scan of the other table has %d items", n)
			}

			before := d.lastCommit.Load()
			changed := item("pk", "x", "sk", 1)
			write := func(n int) *Write {
				it := damagedItem(n)
				return &Write{Table: tab, Key: keyOf(t, tab, it), ReadOld: true, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return nil, nil }}
			}
			fresh := &Write{Table: tab, Key: keyOf(t, tab, changed), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return changed, nil }}
			for range 3 { // a lock that was kept would hang the second one
				if err := d.Write(context.Background(), fresh, write(good[0]), write(bad[0])); !isDamage(err) {
					t.Fatalf("a write that must read a damaged item: %v", err)
				}
			}
			if d.lastCommit.Load() != before || d.get(tab, changed) != nil || d.get(tab, damagedItem(good[0])) == nil {
				t.Error("a failed write changed something")
			}
			if err := d.Write(context.Background(), fresh, write(good[0])); err != nil {
				t.Errorf("a write of other items: %v", err)
			}
			if d.get(tab, changed) == nil || d.get(tab, damagedItem(good[0])) != nil {
				t.Error("the write is not there")
			}

			stats, err := tab.Stats(context.Background())
			if err != nil || stats.Items > int64(len(good)) || stats.Items < int64(len(good))-200 {
				t.Errorf("counted %d items, of which %d can be read: %v", stats.Items, len(good), err)
			}
			if err := d.Err(); err != nil {
				t.Errorf("the engine has stopped: %v", err)
			}
			files := d.Damages()
			if len(files) != 1 || files[0].File != dir.file || !slices.ContainsFunc(files[0].Ranges, func(r DamagedRange) bool {
				return r.Table == "damaged" && strings.Contains(r.Range, "items")
			}) {
				t.Errorf("damages: %v", files)
			}
			d.close()
			if n := strings.Count(logged.String(), "a table file is damaged"); n != 1 || !strings.Contains(logged.String(), dir.file) {
				t.Errorf("the log names the file %d times:\n%s", n, logged.String())
			}
		})
	}
}

// lockedWriter is a writer for several goroutines.
type lockedWriter struct {
	sync.Mutex
	w io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.Lock()
	defer w.Unlock()
	return w.w.Write(p)
}

// The reaper skips deadline entries, or items, in a damaged block: everything else expires, the
// mark on disk stays below the skipped entries, and once the block is readable they expire too.
func TestReaperPassesDamage(t *testing.T) {
	for name, kind := range kinds {
		for what, space := range map[string]byte{"deadlines": spaceDeadlines, "items": spaceItems} {
			t.Run(name+"/"+what, func(t *testing.T) {
				dir := newDamagedDir(t, kind)
				dir.damage(tableSpan(space, 1))
				var reaped atomic.Int64
				o := dir.options()
				o.OnReap = func(r Reap) { reaped.Add(int64(len(r.Due))) }
				d := open(t, o)
				tab, other := d.reopened("damaged"), d.reopened("other")
				late := item("pk", "late", "sk", 1, "ttl", unix(3*time.Hour))
				d.put(tab, late)
				passes := d.DuePasses()
				d.advance(4 * time.Hour)
				if n := d.DuePasses() - passes; n > 20_000 {
					t.Errorf("%d passes of the due queue", n)
				}
				if left, damaged := d.keysIn(tableSpan(spaceDeadlines, other.id)); left != 0 || damaged {
					t.Errorf("%d entries of the other table are left", left)
				}
				if d.get(tab, late) != nil || len(d.items(other, Range{})) != 0 {
					t.Error("an expired item is seen")
				}
				if _, ok, err := get(d.kv, appendDeadlineKey(nil, tab.id, Instant(epoch.Add(3*time.Hour).UnixMilli()), keyOf(t, tab, late).suffix())); ok || err != nil {
					t.Errorf("a deadline behind the damage was not reaped: %v, %v", ok, err)
				}
				tab.e.order.Lock()
				stored, skipped := tab.marks.stored, tab.marks.skipped
				tab.e.order.Unlock()
				// the reaper removes these without reading them
				blind := name == "plain" && space == spaceItems
				if blind != (skipped.removal == Never) || stored > skipped.removal {
					t.Errorf("the mark on disk is %d, the first skipped entry %v", stored, skipped)
				}
				d.close()

				if n := reaped.Load(); n >= 2*damagedItems+1 && !blind || n < 2*damagedItems+1-damagedItems/2 {
					t.Errorf("%d of %d items were removed, want all but those of one block", n, 2*damagedItems+1)
				}
				dir.repair()
				o = dir.options()
				o.Clock = clock.NewFrozenAt(epoch.Add(4 * time.Hour))
				again := open(t, o)
				defer again.close()
				tab = again.reopened("damaged")
				again.advance(5 * time.Hour)
				if left, _ := again.keysIn(tableSpan(spaceItems, tab.id)); left != 0 {
					t.Errorf("%d items are left after the repair", left)
				}
				again.verify()
			})
		}
	}
}

// An unreadable catalogue refuses the start, and the error names the file.
func TestDamagedCatalogue(t *testing.T) {
	dir := newDamagedDir(t, plainTable)
	names, err := dir.fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		dir.flip(name, 100) // the first block begins with the catalogue
		e, err := Open(dir.options())
		if err == nil {
			e.Close()
		}
		if !isDamage(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("opened with a damaged %s: %v", name, err)
		}
		dir.flip(name, 100)
	}
	open(t, dir.options()).close()
}

// A TTL backfill handles all items outside a damaged block, and ends once the block is readable.
func TestBackfillPassesDamage(t *testing.T) {
	dir := newDamagedDir(t, func(d *TableDesc) { plainTable(d); d.TTL.Attribute = "" })
	dir.damage(tableSpan(spaceItems, 1))
	d := open(t, dir.options())
	d.setTTL("damaged", "ttl")
	d.advance(0)
	tab := d.reopened("damaged")
	armed, _ := d.keysIn(tableSpan(spaceDeadlines, tab.id))
	if armed < damagedItems*3/4 || armed >= damagedItems || !tab.Desc().TTL.Backfill {
		t.Errorf("%d of %d items are armed, backfill %v", armed, damagedItems, tab.Desc().TTL.Backfill)
	}
	d.close()
	dir.repair()
	again := open(t, dir.options())
	defer again.close()
	tab = again.reopened("damaged")
	again.awaitBackfill(tab)
	if armed, _ := again.keysIn(tableSpan(spaceDeadlines, tab.id)); armed != damagedItems {
		t.Errorf("%d of %d items are armed after the repair", armed, damagedItems)
	}
	again.verify()
}

// A bad block among a stream's records: a reader of the block gets an error, all other records are
// readable, writes continue, and the trimmer skips the block. Its records go when their whole shard
// ages out.
func TestTrimmerPassesDamage(t *testing.T) {
	dir := newDamagedDir(t, kinds["stream and index"])
	const id = 1 // of the stream of table "damaged"
	span := func(id uint32) (lower, upper []byte) {
		return appendRecordKey(nil, id, 0, 0), appendRecordKey(nil, id+1, 0, 0)
	}
	dir.damage(span(id))

	o := dir.options()
	// the start closes the shards, so they age out 20 hours after their records
	o.Clock = clock.NewFrozenAt(epoch.Add(20 * time.Hour))
	d := open(t, o)
	defer d.close()
	read := func(name string) (records, damaged int) {
		desc := d.stream(d.reopened(name))
		for _, sh := range desc.Shards {
			for from := sh.Trimmed + 1; ; {
				page, err := d.Records(context.Background(), desc.ID, sh.No, from, 3, 1<<20, 0)
				if isDamage(err) {
					damaged++
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if records += len(page.Records); page.End || len(page.Records) == 0 {
					break
				}
				from = page.Next
			}
		}
		return records, damaged
	}
	if records, damaged := read("damaged"); damaged != 1 || records < damagedItems/10 {
		t.Errorf("%d records were read, and damage was met in %d shards, want 1", records, damaged)
	}
	if records, damaged := read("other"); damaged != 0 || records < damagedItems {
		t.Errorf("of the other table %d records were read, damage in %d shards", records, damaged)
	}
	d.put(d.reopened("damaged"), item("pk", "new", "sk", 1))

	passes := d.DuePasses()
	d.advance(5 * time.Hour) // the records of the puts age out
	bad := 0
	desc := d.stream(d.reopened("damaged"))
	aged := desc.Shards[:4] // of the puts
	for _, sh := range aged {
		left, damaged := d.keysIn(appendRecordKey(nil, id, sh.No, 0), appendRecordKey(nil, id, sh.No+1, 0))
		if damaged {
			bad++
		} else if left != 0 {
			t.Errorf("%d records are left in shard %d, which has no damage", left, sh.No)
		}
	}
	if bad != 1 {
		t.Errorf("%d of %d shards are damaged, want one", bad, len(aged))
	}

	d.advance(60 * time.Hour) // whole shards age out
	if n := d.DuePasses() - passes; n > 20_000 {
		t.Errorf("%d passes of the due queue", n)
	}
	for _, name := range []string{"damaged", "other"} {
		if left, damaged := d.keysIn(span(d.stream(d.reopened(name)).ID)); left != 0 || damaged {
			t.Errorf("%d records of table %s are left, damaged: %v", left, name, damaged)
		}
	}
	if err := d.Err(); err != nil {
		t.Errorf("the engine has stopped: %v", err)
	}
	d.verify()
}
