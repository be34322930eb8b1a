package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// byH is an index on attribute h (N).
func byH(name string) IndexDesc {
	return IndexDesc{Name: name, Global: true, Projection: Projection{Type: "ALL"}, Key: KeySchema{Partition: []KeyAttr{{"h", dynamo.KindNumber}}}}
}

// addIndex adds an index to a table.
func (d *db) addIndex(name string, ix IndexDesc) *TableDesc {
	d.t.Helper()
	desc, err := d.Alter(context.Background(), "default", name, func(td *TableDesc, _ Instant) error {
		td.Indexes = append(td.Indexes, ix)
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return desc
}

// removeIndex removes an index from a table.
func (d *db) removeIndex(name, index string) *TableDesc {
	d.t.Helper()
	desc, err := d.Alter(context.Background(), "default", name, func(td *TableDesc, _ Instant) error {
		kept := td.Indexes[:0]
		for _, ix := range td.Indexes {
			if ix.Name != index {
				kept = append(kept, ix)
			}
		}
		td.Indexes = kept
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return desc
}

// buildStep runs a step of building an index under the table's present description.
func (d *db) buildStep(tab *Table, index string) (done bool) {
	d.t.Helper()
	desc := tab.Desc()
	done, err := tab.indexBackfill(desc, desc.Index(index)).step()
	if err != nil {
		d.t.Fatal(err)
	}
	return done
}

// drain reaps everything that is due, as the due queue does.
func (d *db) drain(tab *Table) {
	d.t.Helper()
	for next := int64(0); next <= int64(d.Now()); {
		var err error
		if next, err = (&reaper{t: tab}).Drain(context.Background(), int64(d.Now())); err != nil {
			d.t.Fatal(err)
		}
	}
	d.background.Wait() // for the records to be durable
}

// indexKeys counts the stored entries of an index.
func (d *db) indexKeys(table uint32, index uint16) (n int) {
	it := d.kv.NewIter(indexSpan(table, index))
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n
}

// wantBuilt checks that an index is readable and holds exactly the items that have its key.
func (d *db) wantBuilt(tab *Table, index string) {
	d.t.Helper()
	desc := tab.Desc()
	ix := desc.Index(index)
	want := map[string]string{}
	for _, it := range d.items(tab, Range{}) {
		if entry, ok := desc.projectIndex(ix, it); ok {
			want[desc.Key.pick(it).String()] = entry.String()
		}
	}
	got := d.items(tab, Range{Index: ix})
	for _, it := range got {
		if key := desc.Key.pick(it).String(); want[key] != it.String() {
			d.t.Errorf("%s holds %v, want %s", index, it, want[key])
		}
	}
	if len(got) != len(want) {
		d.t.Errorf("%s holds %d entries, want %d", index, len(got), len(want))
	}
}

// An index is added while writers create, change and delete items. Once readable it matches the
// table, and all parts agree. An advance of the clock waits for it.
func TestBuildWhileWriting(t *testing.T) {
	d := openMemory(t, func(o *Options) { o.StreamShards = 1 })
	d.backfillItems = 50
	tab := d.table("events")
	const n = 1500
	of := func(i, v int) dynamo.Item {
		it := item("pk", fmt.Sprint("k", i%97), "sk", i, "v", v, "g", fmt.Sprint(i%7))
		if i%5 > 0 {
			it = it.With("h", number(fmt.Sprint(v%3)))
		}
		if i%3 == 0 {
			it = it.With("ttl", number(fmt.Sprint(unix(time.Duration(i+1)*time.Second))))
		}
		return it
	}
	var ws []*Write
	for i := range n {
		ws = append(ws, set(t, tab, of(i, 0)))
	}
	if err := d.Write(context.Background(), ws...); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := w; !stop.Load(); i = (i + 3) % n {
				for v := range 3 {
					write := set(t, tab, of(i, w+v))
					if v == 1 {
						write = unset(t, tab, of(i, 0))
					}
					if err := d.Write(context.Background(), write); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	if ix := d.addIndex("events", byH("byH")).Index("byH"); !ix.Building || ix.ID != 2 || ix.Created != d.Now() {
		t.Errorf("added: %+v", ix)
	}
	d.advance(0)
	if tab.Desc().Index("byH").Building {
		t.Error("an advance of the clock did not wait for the index")
	}
	stop.Store(true)
	writers.Wait()
	d.advance(0)
	d.wantBuilt(tab, "byH")
	d.wantBuilt(tab, "byG")
	d.verify()
	for _, p := range d.dump() {
		if p.key[0] == spaceCatalogue && p.key[1] == catBuild {
			t.Errorf("progress of an index that is built: %v", p)
		}
	}
	wantChains(t, d.records(tab)) // the build makes no records of its own
	for _, r := range d.records(tab) {
		if r.Old.String() == r.New.String() {
			t.Errorf("a record of no change: %+v", r)
		}
	}
	d.advance(n / 2 * time.Second)
	d.wantBuilt(tab, "byH")
	d.verify()
}

// Items expire while an index is built, before and behind the backfill's position. The reaper
// removes their index entries too, although the earlier deadline entries denied any, and each
// expiry makes one record.
func TestBuildWhileExpiring(t *testing.T) {
	holds(t, func(t testing.TB) {
		d := openMemory(t)
		d.still()
		d.backfillItems = 40
		// Neither indexes nor old images: the reaper reads the deadline entries alone.
		tab := d.table("events", func(td *TableDesc) { td.Indexes, td.Stream = nil, StreamSpec{ViewType: "KEYS_ONLY"} })
		const n = 400
		for i := range n {
			it := item("pk", fmt.Sprint(i), "sk", 1, "h", i%9, "ttl", unix(time.Duration(1+i%10)*time.Second))
			if i%7 == 0 { // not in the index
				it = item("pk", fmt.Sprint(i), "sk", 1, "ttl", unix(time.Duration(1+i%10)*time.Second))
			}
			d.put(tab, it)
		}
		d.addIndex("events", byH("byH"))
		for steps := 0; !d.buildStep(tab, "byH"); steps++ {
			d.verify()
			s := &slice{t: tab, d: tab.Desc(), seen: d.lastCommit.Load()}
			if err := d.clock.Advance(1500 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			// A pass of the reaper that the next step overtakes: its entries deny index entries,
			// and it must not trust them.
			if err := s.collect(tab.marks.reset(), d.Now()); err != nil {
				t.Fatal(err)
			}
			d.buildStep(tab, "byH")
			if steps%2 == 0 {
				if err := s.reap(); err != nil {
					t.Fatal(err)
				}
			}
			d.verify()
			d.drain(tab)
			d.verify()
		}
		if err := tab.backfill(context.Background()); err != nil {
			t.Fatal(err)
		}
		d.wantBuilt(tab, "byH")
		if err := d.clock.Advance(time.Minute); err != nil {
			t.Fatal(err)
		}
		d.drain(tab)
		d.verify()
		if left := d.indexKeys(tab.id, 1); left != 0 {
			t.Errorf("%d index entries are left of items that have expired", left)
		}
		removed := map[string]int{}
		for _, r := range d.records(tab) {
			if r.Event == Remove {
				removed[r.Keys.String()]++
			}
		}
		for key, times := range removed {
			if times != 1 {
				t.Errorf("%d records of the expiry of %s", times, key)
			}
		}
		if len(removed) != n {
			t.Errorf("records of %d expiries, want %d", len(removed), n)
		}
	}, invariant.ForgetIndexed)
}

// Under any sequence of indexes added and removed, partial builds, settings of TTL and modes of
// expiry, writes, time and reaps, all parts agree at every moment: a built index holds the existing
// items, and a removed index leaves nothing.
func TestIndexChanges(t *testing.T) {
	d := openMemory(t)
	d.still()
	d.backfillItems = 2
	tables := 0
	rapid.Check(t, func(rt *rapid.T) {
		tables++
		name := fmt.Sprint("t", tables)
		tab := d.table(name, func(td *TableDesc) {
			td.TTL.Attribute = rapid.SampledFrom([]string{"", "ttl"}).Draw(rt, "ttl")
			td.Stream.ViewType = rapid.SampledFrom([]string{"", "KEYS_ONLY", "NEW_AND_OLD_IMAGES"}).Draw(rt, "stream")
			if rapid.Bool().Draw(rt, "bare") {
				td.Indexes = nil
			}
		})
		defer d.drop(tab)
		added := map[uint16]bool{}
		pick := func(label string, of []IndexDesc) *IndexDesc {
			if len(of) == 0 {
				return nil
			}
			return &of[rapid.IntRange(0, len(of)-1).Draw(rt, label)]
		}
		for range rapid.IntRange(1, 50).Draw(rt, "steps") {
			desc := tab.Desc()
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				if len(desc.Indexes) < 3 {
					ix := byH(fmt.Sprint("i", desc.NextIndex))
					if rapid.Bool().Draw(rt, "composite") {
						ix.Key.Partition = append(ix.Key.Partition, KeyAttr{"pk", dynamo.KindString})
						ix.Key.Sort = []KeyAttr{{"u", dynamo.KindNumber}, {"sk", dynamo.KindNumber}}
					}
					if rapid.Bool().Draw(rt, "keys only") {
						ix.Projection.Type = "KEYS_ONLY"
					}
					id := d.addIndex(name, ix).Index(ix.Name).ID
					if added[id] {
						rt.Fatalf("index id %d was given out twice", id)
					}
					added[id] = true
				}
			case 1:
				if ix := pick("removed", desc.Indexes); ix != nil {
					d.removeIndex(name, ix.Name)
					if n := d.indexKeys(tab.id, ix.ID); n != 0 {
						rt.Fatalf("%d entries of an index that is gone", n)
					}
				}
			case 2, 3:
				if ix := pick("built", desc.Indexes); ix != nil && ix.Building {
					d.buildStep(tab, ix.Name)
				}
			case 4: // a full round, including the ends of backfills
				if _, err := tab.backfillRound(context.Background()); err != nil {
					rt.Fatal(err)
				}
			case 5:
				attribute := rapid.SampledFrom([]string{"", "ttl", "u"}).Draw(rt, "attribute")
				late := rapid.SampledFrom([]Expiry{{}, {}, {Mode: ExpiryAWS, Delay: Delay{spread: true, least: 500, most: 3000}}}).Draw(rt, "expiry")
				_, err := d.Alter(context.Background(), "default", name, func(td *TableDesc, _ Instant) error {
					td.TTL.Attribute, td.TTL.Expiry = attribute, late
					return nil
				})
				if err != nil {
					rt.Fatal(err)
				}
			case 6:
				if err := d.clock.Advance(time.Duration(rapid.IntRange(0, 2500).Draw(rt, "ms")) * time.Millisecond); err != nil {
					rt.Fatal(err)
				}
				if rapid.Bool().Draw(rt, "reap") {
					d.drain(tab)
				}
			default:
				it := item("pk", rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "pk"), "sk", rapid.IntRange(0, 3).Draw(rt, "sk"))
				if rapid.IntRange(0, 5).Draw(rt, "delete") == 0 {
					d.delete(tab, it)
					break
				}
				for _, a := range []string{"ttl", "u"} {
					if s := rapid.IntRange(-2, 4).Draw(rt, a); s >= 0 {
						it = it.With(a, number(fmt.Sprint(int64(d.Now())/1000+int64(s))))
					}
				}
				switch h := rapid.IntRange(0, 4).Draw(rt, "h"); h {
				case 0:
				case 1: // not the type of the index key
					it = it.With("h", dynamo.AppendString(nil, "x"))
				default:
					it = it.With("h", number(fmt.Sprint(h)))
				}
				d.put(tab, it)
			}
			if err := d.verifyTables(context.Background(), []*Table{tab}); err != nil {
				rt.Fatal(err)
			}
			for _, ix := range tab.Desc().Indexes {
				if !ix.Building {
					d.wantBuilt(tab, ix.Name)
				}
			}
		}
		if err := tab.backfill(context.Background()); err != nil {
			rt.Fatal(err)
		}
		for _, ix := range tab.Desc().Indexes {
			d.wantBuilt(tab, ix.Name)
		}
		d.setTTL(name, "")
		if err := tab.backfill(context.Background()); err != nil {
			rt.Fatal(err)
		}
		for _, ix := range tab.Desc().Indexes {
			d.wantBuilt(tab, ix.Name) // no expired item returns
		}
		if err := d.verifyTables(context.Background(), []*Table{tab}); err != nil {
			rt.Fatal(err)
		}
	})
}

// After a crash the build of an index resumes behind the last durable step, and ends.
func TestBuildResumes(t *testing.T) {
	disk := kv.NewCrashFS()
	dir := directory{fs: disk}
	d := open(t, dir.options())
	d.backfillItems = 10
	tab := d.table("events")
	var ws []*Write
	for i := range 25 {
		ws = append(ws, set(t, tab, item("pk", fmt.Sprint(i), "sk", 1, "h", i, "ttl", unix(time.Hour))))
	}
	if err := d.Write(context.Background(), ws...); err != nil {
		t.Fatal(err)
	}
	d.still()
	d.addIndex("events", byH("byH"))
	d.buildStep(tab, "byH")
	d = d.crash(&dir, disk)
	tab = d.reopened("events")
	ix := tab.Desc().Index("byH")
	if ix == nil || !ix.Building || d.indexKeys(tab.id, ix.ID) != 10 {
		t.Fatalf("after the crash there are %d entries of %+v", d.indexKeys(tab.id, ix.ID), ix)
	}
	keys, err := tab.indexBackfill(tab.Desc(), ix).keys()
	if err != nil || len(keys) != 15 {
		t.Fatalf("%d items are left to do, want 15: %v", len(keys), err)
	}
	d.verify()
	d = run(t, d.Engine)
	d.advance(0)
	d.wantBuilt(tab, "byH")
	d.verify()
	d.close()
}

// An index can be removed during its build: it leaves nothing, a step that the removal overtakes
// does nothing, and a new index of the same name is another one.
func TestRemoveWhileBuilding(t *testing.T) {
	d := openMemory(t)
	d.still()
	d.backfillItems = 3
	tab := d.table("events")
	for i := range 10 {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "h", i, "ttl", unix(time.Hour)))
	}
	d.addIndex("events", byH("byH"))
	d.buildStep(tab, "byH")
	before := tab.Desc()
	overtaken := tab.indexBackfill(before, before.Index("byH"))
	d.removeIndex("events", "byH")
	if _, err := overtaken.step(); !errors.Is(err, errStale) {
		t.Errorf("a step for an index that is gone: %v", err)
	}
	if err := overtaken.complete(context.Background()); !errors.Is(err, errStale) {
		t.Errorf("the end of an index that is gone: %v", err)
	}
	for _, p := range d.dump() {
		if p.key[0] == spaceIndexes || p.key[0] == spaceCatalogue && p.key[1] == catBuild {
			t.Errorf("left behind: %v", p)
		}
	}
	d.verify()
	if ix := d.addIndex("events", byH("byH")).Index("byH"); ix.ID != 3 || !ix.Building {
		t.Errorf("added again: %+v", ix)
	}
	if err := overtaken.complete(context.Background()); !errors.Is(err, errStale) || !tab.Desc().Index("byH").Building {
		t.Errorf("the end of the index before ended this one: %v", err)
	}
	if err := tab.backfill(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.wantBuilt(tab, "byH")
	d.verify()
}

// A write decided before an index was added, or removed, is decided again: it neither misses the
// new index nor writes into the removed one.
func TestIndexChangeOvertakesWrite(t *testing.T) {
	d := openMemory(t)
	d.still()
	tab := d.table("events", func(td *TableDesc) { td.Indexes, td.TTL, td.Stream = nil, TTLDesc{}, StreamSpec{} })
	a := item("pk", "a", "sk", 1, "h", 1)
	d.put(tab, a)
	runs, _, err := d.overtaken(tab, a.With("h", number("2")), func() { d.addIndex("events", byH("byH")) })
	if err != nil || runs != 2 {
		t.Errorf("%d decisions: %v", runs, err)
	}
	if n := d.indexKeys(tab.id, 1); n != 1 {
		t.Errorf("%d entries, want that of the write", n)
	}
	// A blind write, under a description that never needs the old item.
	d.removeIndex("events", "byH")
	blind := &Write{Table: tab, Key: keyOf(t, tab, a)}
	first := true
	blind.Decide = func(dynamo.Item, Instant) (dynamo.Item, error) {
		if first {
			first = false
			d.addIndex("events", byH("again"))
		}
		return a.With("h", number("3")), nil
	}
	if err := d.Write(context.Background(), blind); err != nil || d.indexKeys(tab.id, 2) != 1 {
		t.Errorf("%d entries: %v", d.indexKeys(tab.id, 2), err)
	}
	if err := tab.backfill(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.wantBuilt(tab, "again")
	runs, _, err = d.overtaken(tab, a.With("h", number("4")), func() { d.removeIndex("events", "again") })
	if err != nil || runs != 2 {
		t.Errorf("%d decisions: %v", runs, err)
	}
	for _, p := range d.dump() {
		if p.key[0] == spaceIndexes {
			t.Errorf("written into an index that is gone: %v", p)
		}
	}
	d.verify()
}

// Items that the index cannot hold are skipped: the attribute is missing, of another type, or too
// long for a key.
func TestBuildSkips(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	in := item("pk", "in", "sk", 1, "s", "x")
	for i, it := range []dynamo.Item{
		in, item("pk", "absent", "sk", 1), item("pk", "number", "sk", 1, "s", 7), item("pk", "null", "sk", 1).With("s", dynamo.AppendNull(nil)),
		item("pk", "empty", "sk", 1, "s", ""), item("pk", "long", "sk", 1, "s", strings.Repeat("x", partitionKeyBytesMax+1)),
	} {
		d.put(tab, it.With("ttl", number(fmt.Sprint(unix(time.Duration(1+i)*time.Hour)))))
	}
	d.addIndex("events", IndexDesc{
		Name: "byS", Global: true, Projection: Projection{Type: "KEYS_ONLY"}, Key: KeySchema{Partition: []KeyAttr{{"s", dynamo.KindString}}},
	})
	d.advance(0)
	if got := d.items(tab, Range{Index: tab.Desc().Index("byS")}); len(got) != 1 || got[0].String() != in.String() {
		t.Errorf("the index holds %v", got)
	}
	d.verify()
	d.advance(10 * time.Hour)
	if n := len(d.items(tab, Range{})); n != 0 {
		t.Errorf("%d items are left", n)
	}
	d.verify()
}

// A table dropped during the build of an index leaves nothing. allow can refuse the drop.
func TestDropWhileBuilding(t *testing.T) {
	d := openMemory(t)
	d.still()
	d.backfillItems = 1
	tab := d.table("events")
	for i := range 3 {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "h", i))
	}
	d.addIndex("events", byH("byH"))
	d.buildStep(tab, "byH")
	no := errors.New("no")
	_, err := d.DropTable(context.Background(), "default", "events", func(td *TableDesc) error {
		if td != tab.Desc() {
			t.Error("asked about another description")
		}
		return no
	})
	if !errors.Is(err, no) || d.reopened("events") != tab {
		t.Errorf("a refused drop: %v", err)
	}
	overtaken := tab.indexBackfill(tab.Desc(), tab.Desc().Index("byH"))
	d.drop(tab)
	if done, err := overtaken.step(); !done || err != nil {
		t.Errorf("a step for a table that is gone found something: %v", err)
	}
	if err := overtaken.complete(context.Background()); !errors.Is(err, ErrTableNotFound) {
		t.Errorf("the end of an index of a table that is gone: %v", err)
	}
	if _, err := tab.backfillRound(context.Background()); !errors.Is(err, ErrTableNotFound) {
		t.Errorf("a round for a table that is gone: %v", err)
	}
	for _, p := range d.dump() {
		if p.key[0] == spaceIndexes || p.key[0] == spaceItems || p.key[0] == spaceCatalogue && p.key[1] == catBuild {
			t.Errorf("left behind: %v", p)
		}
	}
}
