package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Tables are created, found, listed by namespace and dropped. Their names are free afterwards,
// their numbers are not.
func TestCatalogue(t *testing.T) {
	d := openMemory(t)
	ctx := context.Background()
	for _, name := range []string{"c", "a", "b"} {
		d.table(name)
	}
	d.table("z", func(td *TableDesc) { td.Namespace = "other" })
	if _, err := d.CreateTable(ctx, TableDesc{Namespace: "default", Name: "a", Key: recordSchema}); !errors.Is(err, ErrTableExists) {
		t.Errorf("a second table a: %v", err)
	}
	for _, c := range []struct {
		namespace, after string
		limit            int
		want             []string
		more             bool
	}{
		{"default", "", 10, []string{"a", "b", "c"}, false}, {"default", "", 2, []string{"a", "b"}, true},
		{"default", "b", 10, []string{"c"}, false}, {"other", "", 1, []string{"z"}, false}, {"none", "", 1, nil, false},
	} {
		if names, more, err := d.TableNames(c.namespace, c.after, c.limit); err != nil || !slices.Equal(names, c.want) || more != c.more {
			t.Errorf("names of %q after %q, at most %d: %v, %v, %v", c.namespace, c.after, c.limit, names, more, err)
		}
	}
	if _, err := d.Table("default", "z"); !errors.Is(err, ErrTableNotFound) {
		t.Errorf("a table of another namespace: %v", err)
	}
	old := d.reopened("a")
	d.put(old, item("pk", "x", "sk", 1, "g", "y", "ttl", unix(time.Hour)))
	dropped, err := d.DropTable(ctx, "default", "a", nil)
	if err != nil || dropped.ID != old.Desc().ID {
		t.Fatal(dropped, err)
	}
	if _, err := d.DropTable(ctx, "default", "a", nil); !errors.Is(err, ErrTableNotFound) {
		t.Errorf("dropped twice: %v", err)
	}
	for _, p := range d.dump() {
		if p.key[0] != spaceCatalogue && p.key[0] != spaceStreams && p.key[4] == byte(dropped.ID) {
			t.Errorf("left behind: %v", p)
		}
	}
	again := d.table("a")
	if again.Desc().ID == dropped.ID || again.Desc().UUID == dropped.UUID || len(d.items(again, Range{})) != 0 {
		t.Errorf("the new table is %+v", again.Desc())
	}
	wantNoTable(t, d, old)
	d.verify()
}

// wantNoTable checks that every call on a dropped table returns ErrTableNotFound.
func wantNoTable(t *testing.T, d *db, tab *Table) {
	t.Helper()
	ctx := context.Background()
	if err := d.Write(ctx, set(t, tab, item("pk", "x", "sk", 1))); !errors.Is(err, ErrTableNotFound) {
		t.Errorf("a write: %v", err)
	}
	err := d.Read(ctx, func(v *View) error { _, _, err := v.Get(tab, keyOf(t, tab, item("pk", "x", "sk", 1))); return err })
	if !errors.Is(err, ErrTableNotFound) {
		t.Errorf("a read: %v", err)
	}
	err = d.Read(ctx, func(v *View) error {
		return v.Range(tab, Range{}, func(dynamo.Item) (bool, error) { return true, nil })
	})
	if !errors.Is(err, ErrTableNotFound) {
		t.Errorf("a scan: %v", err)
	}
	if _, err := tab.Stats(ctx); !errors.Is(err, ErrTableNotFound) {
		t.Errorf("stats: %v", err)
	}
	if _, _, err := tab.Backlog(1); !errors.Is(err, ErrTableNotFound) {
		t.Errorf("backlog: %v", err)
	}
}

// Alter edits a copy: earlier readers of the description see no change, and after an error nothing
// has changed.
func TestAlter(t *testing.T) {
	d := openMemory(t)
	ctx := context.Background()
	before := d.table("events", func(td *TableDesc) { td.API.Tags = map[string]string{"a": "1"} }).Desc()
	no := errors.New("no")
	_, err := d.Alter(ctx, "default", "events", func(td *TableDesc, _ Instant) error {
		td.API.Tags["a"], td.TTL.Attribute = "2", "other"
		return no
	})
	if !errors.Is(err, no) || d.reopened("events").Desc() != before {
		t.Errorf("a refused change: %v", err)
	}
	after, err := d.Alter(ctx, "default", "events", func(td *TableDesc, now Instant) error {
		if now != d.Now() {
			t.Errorf("changed at %d, it is %d", now, d.Now())
		}
		td.API.Tags["a"], td.Indexes[0].Read = "2", 5
		return nil
	})
	if err != nil || after.API.Tags["a"] != "2" || after.Version != before.Version+1 || d.reopened("events").Desc() != after {
		t.Errorf("%+v: %v", after, err)
	}
	if before.API.Tags["a"] != "1" || before.Indexes[0].Read != 0 {
		t.Errorf("the description before was edited: %+v", before)
	}
	if after.TTL.Generation != before.TTL.Generation || after.TTL.Backfill || after.Stream != before.Stream {
		t.Error("a change of something else touched TTL or stream")
	}
	if _, err := d.Alter(ctx, "default", "none", func(*TableDesc, Instant) error { return nil }); !errors.Is(err, ErrTableNotFound) {
		t.Errorf("a table that is not there: %v", err)
	}
}

// A restart finds every description, item, deadline and record, and uses no number twice.
func TestRestart(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events", func(td *TableDesc) {
		td.API = APIDesc{OnDemand: true, Tags: map[string]string{"a": "b"}, Definitions: []KeyAttr{{"pk", dynamo.KindString}}}
	})
	d.table("dropped")
	a, b := item("pk", "a", "sk", 1, "g", "x", "ttl", unix(time.Minute)), item("pk", "b", "sk", 1)
	d.put(tab, a)
	d.put(tab, b)
	if err := d.clock.Advance(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	dropped, err := d.DropTable(context.Background(), "default", "dropped", nil)
	if err != nil {
		t.Fatal(err)
	}
	before, records, now := *tab.Desc(), d.records(tab), d.Now()
	d.close()

	d = dir.open(t)
	if d.Now() < now {
		t.Errorf("it is %d, and was %d before the restart", d.Now(), now)
	}
	tab = d.reopened("events")
	if diff := cmp.Diff(before, *tab.Desc(), cmp.AllowUnexported(Delay{}), cmpopts.IgnoreTypes(&Units{}, &Suspicions{})); diff != "" {
		t.Errorf("the description changed (-before +after):\n%s", diff)
	}
	if len(d.items(tab, Range{})) != 2 || len(d.items(tab, Range{Index: tab.Desc().Index("byG")})) != 1 {
		t.Error("items or index entries are missing")
	}
	if diff := cmp.Diff(records, d.records(tab)); diff != "" {
		t.Errorf("the records changed:\n%s", diff)
	}
	if next := d.table("next"); next.Desc().ID <= dropped.ID || next.Desc().Stream.ID <= dropped.Stream.ID {
		t.Errorf("numbers given out again: %+v", next.Desc())
	}
	d.advance(30 * time.Second)
	if d.get(tab, a) != nil || d.get(tab, b) == nil {
		t.Error("the deadline was not kept over the restart")
	}
	d.verify()
}

// editStore changes a closed directory's keys.
func editStore(t *testing.T, dir directory, edit func(b *kv.Batch)) {
	t.Helper()
	store, err := kv.Open(kv.Options{Dir: "data", FS: dir.fs, ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	b := store.NewBatch()
	edit(b)
	if err := errors.Join(store.Apply(b), b.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
}

// A directory of another format, or with keys that no engine wrote, is refused with a reason.
func TestRefusedDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(b *kv.Batch)
		want error
		says string
	}{
		"newer":             {func(b *kv.Batch) { b.Set(catalogueKey(catFormat), []byte("mayfly format 6")) }, ErrFormat, "mayfly format 6"},
		"no version":        {func(b *kv.Batch) { b.Set(catalogueKey(catFormat), []byte("mayfly format 3x")) }, ErrCorrupt, "no format version"},
		"without a version": {func(b *kv.Batch) { b.Delete(catalogueKey(catFormat)) }, ErrCorrupt, "without"},
		"table not JSON":    {func(b *kv.Batch) { b.Set(tableCatalogueKey("default", "x"), []byte("{")) }, ErrCorrupt, "table"},
		"stream not JSON":   {func(b *kv.Batch) { b.Set(idKey(catStream, 9), []byte("{")) }, ErrCorrupt, "stream"},
		"ids not JSON":      {func(b *kv.Batch) { b.Set(catalogueKey(catIDs), nil) }, ErrCorrupt, "catalogue"},
		"short clock":       {func(b *kv.Batch) { b.Set(catalogueKey(catClock), []byte{1}) }, ErrCorrupt, "clock"},
		"short mark":        {func(b *kv.Batch) { b.Set(idKey(catMark, 1), []byte{1}) }, ErrCorrupt, "mark"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDirectory()
			d := dir.open(t)
			d.put(d.table("events"), item("pk", "a", "sk", 1))
			d.close()
			editStore(t, dir, c.edit)
			e, err := Open(dir.options())
			if e != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("opened: %v; %v", e != nil, err)
			}
			if _, err := kv.Open(kv.Options{Dir: "data", FS: dir.fs, ReserveBytes: -1}); err != nil {
				t.Errorf("the refused directory stays locked or is damaged: %v", err)
			}
		})
	}
}

// Opening and reading a directory with any overwritten file returns an error or the truth, and does
// not panic.
func TestDamagedFiles(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events")
	for i := range 50 {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1))
	}
	if err := d.kv.Flush(); err != nil {
		t.Fatal(err)
	}
	d.put(tab, item("pk", "in the log", "sk", 1))
	d.close()
	files := map[string][]byte{}
	names, err := dir.fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if files[name], err = readFile(dir.fs, dir.fs.PathJoin("data", name)); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for name := range files {
		err := readDamaged(t, files, name)
		if err == nil {
			continue
		}
		refused++
		if !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, ErrStopped) && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: not said to be corrupt: %v", name, err)
		}
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}

// readDamaged opens and reads a directory of these files with one of them overwritten.
func readDamaged(t *testing.T, files map[string][]byte, damaged string) error {
	dir := newDirectory()
	if err := dir.fs.MkdirAll("data", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		if b = slices.Clone(b); name == damaged {
			for i := range b {
				b[i] ^= 0x5a
			}
		}
		writeFile(t, dir.fs, dir.fs.PathJoin("data", name), b)
	}
	e, err := Open(dir.options())
	if err != nil {
		return err
	}
	defer e.Close()
	tab, err := e.Table("default", "events")
	if err != nil {
		t.Errorf("%s: opened without its table: %v", damaged, err)
		return nil
	}
	n := 0
	err = e.Read(context.Background(), func(v *View) error {
		n = 0
		return v.Range(tab, Range{}, func(it dynamo.Item) (bool, error) { n++; return true, dynamo.CheckItem(it) })
	})
	// A truncated log looks like one that a crash cut off.
	if inLog := strings.HasSuffix(damaged, ".log"); err == nil && n != 51 && !(inLog && n == 50) {
		t.Errorf("%s: opened with %d items of 51", damaged, n)
	}
	return err
}

func readFile(fs kv.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return nil, errors.Join(err, errors.New("not a file"))
	}
	out := make([]byte, info.Size())
	if len(out) > 0 {
		_, err = f.ReadAt(out, 0)
	}
	return out, err
}

func writeFile(t *testing.T, fs kv.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// One directory is open once.
func TestOpenTwice(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	if _, err := Open(dir.options()); !errors.Is(err, kv.ErrLocked) {
		t.Errorf("opened a second time: %v", err)
	}
	d.close()
	dir.open(t)
}

// A directory whose last instant is far ahead of the clock opens only with clock control, and time
// continues from there. With a small lead it always opens. Time never goes back.
func TestAhead(t *testing.T) {
	for _, c := range []struct {
		by      time.Duration
		refused bool
	}{
		{time.Second, false}, {time.Minute, false}, {time.Minute + time.Millisecond, true}, {48 * time.Hour, true},
		{290 * 365 * 24 * time.Hour, true}, {0, true}, // 0: the end of the year 9999
	} {
		t.Run(c.by.String(), func(t *testing.T) {
			dir := newDirectory()
			d := dir.open(t)
			tab := d.table("events", func(td *TableDesc) { td.TTL = TTLDesc{} })
			to := epoch.Add(c.by)
			if c.by == 0 {
				to = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
			}
			if err := d.clock.Set(to); err != nil {
				t.Fatal(err)
			}
			d.put(tab, item("pk", "a", "sk", 1))
			last := d.Now()
			d.close()
			o := dir.options()
			o.ClockControl = false
			e, err := Open(o)
			if c.refused != errors.Is(err, ErrAhead) {
				t.Fatalf("without clock control: %v", err)
			}
			if err == nil {
				if e.Now() < last {
					t.Errorf("time went back from %d to %d", last, e.Now())
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if d := dir.open(t); d.Now() < last {
				t.Errorf("with clock control time went back from %v to %v", last.Time(), d.Now().Time())
			}
		})
	}
}

// Start is a new database's first instant, and has no effect on an existing one.
func TestStart(t *testing.T) {
	dir := newDirectory(func(o *Options) { o.Clock, o.Start = nil, epoch.AddDate(10, 0, 0) })
	d := dir.open(t)
	d.close() // without a commit it stays new
	d = dir.open(t)
	if d.Now().Time().Before(epoch.AddDate(10, 0, 0)) {
		t.Errorf("a new database begins at %v", d.Now().Time())
	}
	last := d.Now() // before the commit: an uncommitted instant may come again
	d.table("events")
	d.close()
	dir.change = append(dir.change, func(o *Options) { o.Start = epoch.AddDate(20, 0, 0) })
	d = dir.open(t)
	if at := d.Now(); at < last || at.Time().After(epoch.AddDate(15, 0, 0)) {
		t.Errorf("an existing one goes on at %v", at.Time())
	}
}

// A frozen clock stops at Start itself. In an existing database it stops at the last instant if the
// wall clock is behind it.
func TestFrozen(t *testing.T) {
	at := epoch.AddDate(10, 0, 0)
	dir := newDirectory(func(o *Options) { o.Clock, o.Start, o.Frozen, o.ClockControl = nil, at, true, true })
	for i := range 3 {
		d := dir.open(t)
		if got := d.Now().Time(); !got.Equal(at) || !d.Clock().State().Frozen {
			t.Errorf("the clock stands at %v", got)
		}
		d.table("morning-" + strconv.Itoa(i))
		at = at.Add(time.Hour)
		if err := d.Clock().Set(at); err != nil {
			t.Fatal(err)
		}
		d.table("evening-" + strconv.Itoa(i))
		d.close()
	}
}

// Start may lie in the past.
func TestStartInThePast(t *testing.T) {
	past := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	e, err := Open(Options{Start: past})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if now := e.Now().Time(); now.Before(past) || now.After(past.AddDate(1, 0, 0)) {
		t.Errorf("it is %v", now)
	}
}

// After Close every call returns ErrClosed; a second Close does nothing.
func TestClosed(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events")
	d.put(tab, item("pk", "a", "sk", 1))
	stream := d.stream(tab)
	d.close()
	if err := d.Engine.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	ctx := context.Background()
	_, created := d.CreateTable(ctx, TableDesc{Namespace: "default", Name: "new", Key: recordSchema})
	_, altered := d.Alter(ctx, "default", "events", func(*TableDesc, Instant) error { return nil })
	_, dropped := d.DropTable(ctx, "default", "events", nil)
	_, read := d.Records(ctx, stream.ID, 1, 1, 1, 1, 0)
	_, stats := tab.Stats(ctx)
	_, _, backlog := tab.Backlog(1)
	for what, err := range map[string]error{
		"write": d.Write(ctx, set(t, tab, item("pk", "a", "sk", 2))), "create": created, "alter": altered, "drop": dropped,
		"read":    d.Read(ctx, func(v *View) error { _, _, err := v.Get(tab, keyOf(t, tab, item("pk", "a", "sk", 1))); return err }),
		"records": read, "stats": stats, "backlog": backlog, "verify": d.Verify(ctx), "err": d.Err(),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Freezing stops the clock, and every way to set it only moves it forward.
func TestAdvance(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	for i := range 3 {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "ttl", unix(time.Duration(i+1)*time.Second)))
	}
	if _, err := d.Advance(context.Background(), -time.Second, 0); err == nil {
		t.Error("time went back")
	}
	from := d.Now()
	r := d.advance(10 * time.Second)
	if r.From != from || r.To != from+10_000 || d.Now() != r.To {
		t.Errorf("%+v", r)
	}
	var at []Instant
	for _, rec := range d.records(tab) {
		if rec.Service {
			at = append(at, rec.At)
		}
	}
	slices.Sort(at)
	if want := []Instant{from + 1000, from + 2000, from + 3000}; !slices.Equal(at, want) {
		t.Errorf("removed at %v, want %v: the clock stops at each due instant", at, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := d.Advance(ctx, time.Second, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled advance: %v", err)
	}
}

// An advance runs out of real time if no reaper drains due entries, and reports so.
func TestAdvanceUnfinished(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	d.stop = func() error { return nil }
	d.put(tab, item("pk", "a", "sk", 1, "ttl", unix(time.Second)))
	r, err := d.Advance(context.Background(), time.Minute, time.Millisecond)
	if err != nil || !r.Unfinished || r.To >= Instant(epoch.Add(time.Minute).UnixMilli()) {
		t.Errorf("%+v %v", r, err)
	}
}

// Close waits for the calls that are inside, and later ones are refused: none of them meets a
// closed store.
func TestCloseAmidCalls(t *testing.T) {
	for range 2 {
		dir := newDirectory()
		d := dir.open(t)
		tab := d.table("events")
		d.put(tab, item("pk", "a", "sk", 0, "ttl", unix(time.Hour)))
		desc := d.stream(tab)
		var started, ended sync.WaitGroup
		ctx := context.Background()
		for _, call := range []func(i int) error{
			func(i int) error { return d.Write(ctx, set(t, tab, item("pk", "a", "sk", i, "g", "x"))) },
			func(int) error {
				return d.Read(ctx, func(v *View) error {
					return v.Range(tab, Range{}, func(dynamo.Item) (bool, error) { return true, nil })
				})
			},
			func(int) error { _, err := d.Records(ctx, desc.ID, 1, 1, 10, 1<<20, time.Hour); return err },
			func(int) error { _, err := tab.Stats(ctx); return err },
			func(int) error { _, _, err := tab.Backlog(10); return err },
			func(i int) error {
				_, err := d.CreateTable(ctx, TableDesc{Namespace: "default", Name: fmt.Sprint(i), Key: recordSchema})
				return err
			},
			func(int) error { d.Metrics(); return d.Err() },
		} {
			started.Add(1)
			ended.Go(func() {
				started.Done()
				for i := 0; ; i++ {
					if err := call(i); errors.Is(err, ErrClosed) {
						return
					} else if err != nil {
						t.Errorf("while it closes: %v", err)
						return
					}
				}
			})
		}
		started.Wait()
		count(d, tab, 8, 0, 5)
		d.close()
		ended.Wait()
	}
}
