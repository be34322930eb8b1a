package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// No reader reads an index before it is built, nor after its removal. The error waits for the
// change that caused it.
func TestReadOfChangingIndex(t *testing.T) {
	d := openMemory(t)
	d.still()
	tab := d.table("events")
	d.put(tab, item("pk", "a", "sk", 1, "h", 1))
	scan := func(ix *IndexDesc) (*IndexError, error) {
		v := &View{e: d.Engine, now: d.Now(), hidden: minInstant}
		err := v.Range(tab, Range{Index: ix}, func(dynamo.Item) (bool, error) { return true, nil })
		if v.depends < d.lastCommit.Load() {
			t.Errorf("%v rests on commit %d, not on %d", err, v.depends, d.lastCommit.Load())
		}
		var is *IndexError
		errors.As(err, &is)
		return is, err
	}
	building := d.addIndex("events", byH("byH")).Index("byH")
	if is, err := scan(building); is == nil || !is.Building || is.Index != "byH" {
		t.Errorf("while it is built: %v", err)
	}
	if err := tab.backfill(context.Background()); err != nil {
		t.Fatal(err)
	}
	if is, err := scan(building); is == nil || !is.Building {
		t.Errorf("by a reader that found it before it was built: %v", err)
	}
	built := tab.Desc().Index("byH")
	if _, err := scan(built); err != nil {
		t.Errorf("when it is built: %v", err)
	}
	d.removeIndex("events", "byH")
	if is, err := scan(built); is == nil || is.Building {
		t.Errorf("after its removal: %v", err)
	}
	d.addIndex("events", byH("byH"))
	if is, err := scan(built); is == nil || is.Building {
		t.Errorf("when another has its name: %v", err)
	}
}

// The error about a missing index is returned once no crash can bring the index back. Here the
// change is inside the commit section, not yet on its way to the disk.
func TestIndexErrorsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openMemory(t)
		d.still()
		tab := d.table("events")
		gone := tab.Desc().Index("byG")
		d.removeIndex("events", "byG")
		tab.changed.Store(d.lastCommit.Load() + 1)
		answer := make(chan error, 1)
		go func() {
			answer <- d.Read(t.Context(), func(v *View) error {
				return v.Range(tab, Range{Index: gone}, func(dynamo.Item) (bool, error) { return true, nil })
			})
		}()
		synctest.Wait()
		select {
		case err := <-answer:
			t.Errorf("answered too early: %v", err)
		default:
			d.put(tab, item("pk", "a", "sk", 1))
			var is *IndexError
			if err := <-answer; !errors.As(err, &is) {
				t.Errorf("answered: %v", err)
			}
		}
	})
}

// A directory of format version 1 opens: its tables have no counter of indexes, and get one.
func TestFormatBefore(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	d.put(d.table("events"), item("pk", "a", "sk", 1, "g", "x", "h", 1))
	d.close()
	editStore(t, dir, func(b *kv.Batch) {
		b.Set(catalogueKey(catFormat), []byte(formatName+"1"))
		b.Set(tableCatalogueKey("default", "events"), []byte(`{
			"Namespace": "default", "Name": "events", "ID": 1, "UUID": "u", "Created": 1767225600000,
			"Key": {"Partition": [{"Name": "pk", "Kind": 3}], "Sort": [{"Name": "sk", "Kind": 4}]},
			"Indexes": [{"ID": 1, "Name": "byG", "Global": true, "Key": {"Partition": [{"Name": "g", "Kind": 3}], "Sort": null},
				"Projection": {"Type": "ALL", "NonKey": null}, "Read": 0, "Write": 0, "Created": 1767225600000}],
			"TTL": {"Attribute": "ttl", "Generation": 1, "Since": 0, "Ended": null, "Backfill": false},
			"Stream": {"ViewType": "NEW_AND_OLD_IMAGES", "ID": 1, "Label": "2026-01-01T00:00:00.000"}, "API": {}, "Version": 1}`))
	})
	d = dir.open(t)
	tab := d.reopened("events")
	d.verify()
	d.wantBuilt(tab, "byG")
	if ix := d.addIndex("events", byH("byH")).Index("byH"); ix.ID != 2 {
		t.Errorf("added: %+v", ix)
	}
	d.advance(0)
	d.wantBuilt(tab, "byH")
	d.verify()
	if v, _, _ := get(d.kv, catalogueKey(catFormat)); string(v) != formatVersion {
		t.Errorf("it is of version %q now", v)
	}
	d.close()
}

// A table's index numbers can be used up. The error changes nothing.
func TestIndexesUsedUp(t *testing.T) {
	d := openMemory(t)
	d.still()
	tab := d.table("events")
	d.put(tab, item("pk", "a", "sk", 1, "h", 1))
	if _, err := d.Alter(context.Background(), "default", "events", func(td *TableDesc, _ Instant) error {
		td.NextIndex = math.MaxUint16
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if ix := d.addIndex("events", byH("last")).Index("last"); ix.ID != math.MaxUint16 {
		t.Errorf("the last: %+v", ix)
	}
	before := tab.Desc()
	if _, err := d.Alter(context.Background(), "default", "events", func(td *TableDesc, _ Instant) error {
		td.Indexes = append(td.Indexes, byH("one more"))
		return nil
	}); !errors.Is(err, ErrIndexesUsedUp) || tab.Desc() != before {
		t.Errorf("one more: %v", err)
	}
	if err := tab.backfill(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.wantBuilt(tab, "last")
	stats, err := tab.Stats(context.Background())
	if err != nil || stats.Indexes["last"].Items != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
	d.removeIndex("events", "last")
	if n := d.indexKeys(tab.id, math.MaxUint16); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	d.verify()
}

// A full disk refuses a new index, and a build waits.
func TestBuildOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &fullFS{FS: kv.NewMemFS()}
		o := crashOptions(fs)
		o.ReserveBytes = 4096
		d := open(t, o)
		d.still()
		tab := d.table("events")
		d.put(tab, item("pk", "a", "sk", 1, "h", 1, "g", "x"))
		d.addIndex("events", byH("byH"))
		d.close()
		fs.full.Store(true)
		d = open(t, o)
		tab = d.reopened("events")
		synctest.Wait()
		if !tab.Desc().Index("byH").Building {
			t.Error("an index was built without room")
		}
		if _, err := d.Alter(t.Context(), "default", "events", func(td *TableDesc, _ Instant) error {
			td.Indexes = append(td.Indexes, byH("more"))
			return nil
		}); !errors.Is(err, ErrDiskFull) {
			t.Errorf("a new index: %v", err)
		}
		d.removeIndex("events", "byG") // makes room
		fs.full.Store(false)
		time.Sleep(backfillPause)
		synctest.Wait()
		d.wantBuilt(tab, "byH")
		d.addIndex("events", byH("more"))
		synctest.Wait()
		d.wantBuilt(tab, "more")
		d.verify()
		d.close()
	})
}

// A table with unreadable items keeps its index CREATING, and delays neither other tables nor an
// advance of the clock.
func TestBackfillFails(t *testing.T) {
	var log strings.Builder
	d := openMemory(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	d.backfillItems = 1
	bad, good := d.table("bad"), d.table("good")
	for i := range 5 {
		for _, tab := range []*Table{bad, good} {
			d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "h", 1))
		}
	}
	d.still()
	b := d.kv.NewBatch()
	b.Set(keyOf(t, bad, item("pk", "0", "sk", 1)).bytes(), []byte{0xff})
	if err := errors.Join(d.kv.Apply(b), b.Close()); err != nil {
		t.Fatal(err)
	}
	d.addIndex("bad", byH("byH"))
	d.addIndex("good", byH("byH"))
	d.stop = run(t, d.Engine).stop
	d.advance(0)
	if !bad.Desc().Index("byH").Building {
		t.Error("an index without all entries is said to be built")
	}
	d.wantBuilt(good, "byH")
	if n := strings.Count(log.String(), "a backfill failed"); n != 1 {
		t.Errorf("said %d times:\n%s", n, &log)
	}
}

// A table too large to count at every call is counted again after an index was built or removed.
func TestStatsFollowIndexes(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) { td.Stream, td.Indexes = StreamSpec{}, nil })
	d.put(tab, item("pk", "a", "sk", 1, "h", 1))
	want := func(items int64, indexes ...int64) {
		t.Helper()
		tab.count.Lock()
		tab.count.large = tab.count.at != 0 // as if there had been too many items
		tab.count.Unlock()
		s, err := tab.Stats(context.Background())
		got := []int64{}
		for _, ix := range s.Indexes {
			got = append(got, ix.Items)
		}
		if err != nil || s.Items != items || !slices.Equal(got, indexes) {
			t.Errorf("%+v, %v; want %d items, in indexes %v", s, err, items, indexes)
		}
	}
	want(1)
	d.put(tab, item("pk", "b", "sk", 1, "h", 1))
	want(1) // not counted again
	d.addIndex("events", byH("byH"))
	d.advance(0)
	want(2, 2)
	d.removeIndex("events", "byH")
	want(2)
}
