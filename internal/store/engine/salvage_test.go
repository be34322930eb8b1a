package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// bigDirectory returns a directory with several table files, their newest entries in a log, and two
// tables, and its content by table and key.
func bigDirectory(t testing.TB) (directory, map[string]map[string]string) {
	t.Helper()
	dir := newDirectory()
	d := dir.open(t)
	plain := d.table("plain", func(td *TableDesc) { td.Indexes, td.Stream = nil, StreamSpec{} })
	events := d.table("events", func(td *TableDesc) {
		td.Indexes = append(td.Indexes, IndexDesc{Name: "composite", Global: true, Projection: Projection{Type: "KEYS_ONLY"}, Key: KeySchema{
			Partition: []KeyAttr{{"g", dynamo.KindString}, {"sk", dynamo.KindNumber}}, Sort: []KeyAttr{{"ttl", dynamo.KindNumber}, {"pk", dynamo.KindString}},
		}})
	})
	put := func(from, to, version int) {
		for i := from; i < to; i++ {
			pad := strings.Repeat(fmt.Sprint(i), 40)
			d.put(events, item("pk", fmt.Sprint("e", i), "sk", version, "g", fmt.Sprint(i%7), "pad", pad, "ttl", unix(time.Duration(i+1)*time.Hour)))
			d.put(plain, item("pk", fmt.Sprint("p", i), "sk", 1, "pad", pad, "version", version))
		}
	}
	put(0, 300, 1)
	if err := d.kv.Flush(); err != nil {
		t.Fatal(err)
	}
	put(150, 400, 2)
	for i := range 20 {
		d.delete(plain, item("pk", fmt.Sprint("p", i*10), "sk", 1))
	}
	if err := d.kv.Flush(); err != nil {
		t.Fatal(err)
	}
	put(390, 420, 3)
	d.verify()
	model := map[string]map[string]string{}
	for _, tab := range []*Table{plain, events} {
		model[tab.Desc().Name] = d.contents(tab)
	}
	d.close()
	return dir, model
}

// contents returns the items of a table by their keys.
func (d *db) contents(tab *Table) map[string]string {
	out := map[string]string{}
	for _, it := range d.items(tab, Range{}) {
		out[string(dynamo.AppendItemJSON(nil, tab.Desc().Key.pick(it)))] = it.String()
	}
	return out
}

// digest returns a hash of the names and contents of all files of a directory.
func digest(t testing.TB, fs kv.FS, dir string) uint64 {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := fnv.New64()
	slices.Sort(names)
	for _, name := range names {
		f, err := fs.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(h, name)
		if _, err := io.Copy(h, f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return h.Sum64()
}

// readAll returns a file's content.
func readAll(t testing.TB, fs kv.FS, name string) []byte {
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

// rewrite replaces a file's content.
func rewrite(t testing.TB, fs kv.FS, name string, data []byte) {
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

// checkAll returns the faults of a directory.
func checkAll(t testing.TB, fs kv.FS, dir string) (faults []Fault) {
	t.Helper()
	if err := Check(context.Background(), fs, dir, func(int64, int64) {}, func(f Fault) { faults = append(faults, f) }); err != nil {
		t.Fatal(err)
	}
	return faults
}

// salvageInto salvages the directory, and checks that it is unchanged.
func salvageInto(t testing.TB, dir directory, to string) (lost []Fault) {
	t.Helper()
	before := digest(t, dir.fs, "data")
	_, err := Salvage(context.Background(), dir.fs, "data", to, Instant(epoch.UnixMilli()), func(int64, int64) {}, func(f Fault) { lost = append(lost, f) })
	if err != nil {
		t.Fatal(err)
	}
	if digest(t, dir.fs, "data") != before {
		t.Error("the source has changed")
	}
	return lost
}

// wantSalvaged opens a salvaged directory and compares it with a model: each different item must
// lie in a range that is listed as lost. It returns their number.
func wantSalvaged(t testing.TB, dir directory, to string, model map[string]map[string]string, lost []Fault) (differ int) {
	t.Helper()
	if faults := checkAll(t, dir.fs, to); len(faults) > 0 {
		t.Fatalf("the new directory is not sound: %v", faults)
	}
	o := dir.options()
	o.Dir = to
	d := open(t, o)
	defer d.close()
	for name, items := range model {
		tab, err := d.Table("default", name)
		if errors.Is(err, ErrTableNotFound) && slices.ContainsFunc(lost, func(f Fault) bool {
			return strings.Contains(f.String(), "descriptions") || strings.Contains(f.String(), "anything")
		}) {
			differ += len(items)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := d.contents(tab)
		keys := maps.Clone(items)
		maps.Copy(keys, got)
		unlisted := 0
		for key := range keys {
			if got[key] == items[key] {
				continue
			}
			differ++
			if !listed(t, lost, tab.Desc(), key) {
				if unlisted++; unlisted < 4 {
					t.Errorf("%s: %s is %q, want %q, and nothing lists it as lost", name, key, got[key], items[key])
				}
			}
		}
	}
	d.verify()
	return differ
}

// listed reports whether a lost range holds a key. It reads the ranges as a user does: in the order
// of a Scan.
func listed(t testing.TB, lost []Fault, d *TableDesc, key string) bool {
	t.Helper()
	at := func(key string) string {
		item, invalid, err := dynamo.NewJSON([]byte(key)).AppendItem(nil)
		if invalid != nil || err != nil {
			t.Fatalf("%s: %v %v", key, invalid, err)
		}
		k, err := d.KeyOf(dynamo.Item(item))
		if err != nil {
			t.Fatal(err)
		}
		return k.enc
	}
	for _, f := range lost {
		for _, p := range f.Places {
			if p.What == "anything" || p.What == "items" && p.Table == d.Name && (p.From == "" || at(p.From) <= at(key)) && (p.To == "" || at(key) <= at(p.To)) {
				return true
			}
		}
	}
	return false
}

func TestSalvageOfSound(t *testing.T) {
	dir, model := bigDirectory(t)
	if faults := checkAll(t, dir.fs, "data"); len(faults) > 0 {
		t.Fatalf("faults: %v", faults)
	}
	lost := salvageInto(t, dir, "new")
	if differ := wantSalvaged(t, dir, "new", model, lost); differ != 0 || len(lost) != 0 {
		t.Errorf("%d items differ; lost: %v", differ, lost)
	}
}

// TestSalvage damages each file of a directory in several ways. Each time check names the file, and
// salvage copies everything not listed as lost.
func TestSalvage(t *testing.T) {
	dir, model := bigDirectory(t)
	names, err := dir.fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int) func(data []byte) []byte {
		return func(data []byte) []byte { data[min(at, len(data)-1)] ^= 0x10; return data }
	}
	damages := map[string]func(data []byte) []byte{
		"first byte":  flip(0),
		"byte 12000":  flip(12_000),
		"last byte":   func(data []byte) []byte { data[len(data)-1] ^= 1; return data },
		"cut":         func(data []byte) []byte { return data[:len(data)/2] },
		"zeroed page": func(data []byte) []byte { clear(data[min(4096, len(data)):min(8192, len(data))]); return data },
		"emptied":     func([]byte) []byte { return nil },
		"removed":     nil,
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") && !strings.HasSuffix(name, ".log") && !strings.HasPrefix(name, "MANIFEST-") {
			continue
		}
		whole := readAll(t, dir.fs, "data/"+name)
		for what, damage := range damages {
			if len(whole) == 0 {
				continue
			}
			t.Run(name+" "+what, func(t *testing.T) {
				if damage == nil {
					if err := dir.fs.Remove("data/" + name); err != nil {
						t.Fatal(err)
					}
				} else {
					rewrite(t, dir.fs, "data/"+name, damage(bytes.Clone(whole)))
				}
				defer rewrite(t, dir.fs, "data/"+name, whole)
				faults := checkAll(t, dir.fs, "data")
				to := strings.ReplaceAll(name+" "+what, " ", "-")
				lost := salvageInto(t, dir, to)
				listing := lost
				if len(faults) == 0 { // a truncated log looks as after a power cut
					listing = []Fault{{Places: []Place{{What: "anything"}}}}
				}
				differ := wantSalvaged(t, dir, to, model, listing)
				t.Logf("%d differ; faults: %v; lost: %v", differ, faults, lost)
				if !slices.ContainsFunc(faults, func(f Fault) bool { return f.File == name }) && strings.HasSuffix(name, ".sst") {
					t.Errorf("check does not name the file: %v", faults)
				}
			})
		}
	}
}

// TestSalvageWithoutDescriptions removes parts of the catalogue. Salvage makes a sound directory
// without them, reports its choices, and uses no identifier, no sequence number and no instant
// twice.
func TestSalvageWithoutDescriptions(t *testing.T) {
	late := epoch.Add(48 * time.Hour)
	for name, c := range map[string]struct {
		edit func(b *kv.Batch, d *TableDesc)
		want string // a text among the losses; empty: no losses
	}{
		"nothing": {func(*kv.Batch, *TableDesc) {}, ""},
		"stream":  {func(b *kv.Batch, _ *TableDesc) { b.Delete(idKey(catStream, 1)) }, "events: the description of its stream is lost: it has a new stream"},
		"table with a stream": {func(b *kv.Batch, _ *TableDesc) { b.Delete(tableCatalogueKey("default", "events")) },
			"table events (id 2) has no description: 3 items are not copied"},
		"table":       {func(b *kv.Batch, _ *TableDesc) { b.Delete(tableCatalogueKey("default", "plain")) }, "table id 1 has no description: 1 items are not copied"},
		"clock":       {func(b *kv.Batch, _ *TableDesc) { b.Delete(catalogueKey(catClock)) }, ""},
		"identifiers": {func(b *kv.Batch, _ *TableDesc) { b.Delete(catalogueKey(catIDs)) }, ""},
		"marks":       {func(b *kv.Batch, _ *TableDesc) { b.DeleteRange(idKey(catMark, 0), idKey(catMark, 9)) }, ""},
		"format":      {func(b *kv.Batch, _ *TableDesc) { b.Delete(catalogueKey(catFormat)) }, "the format version is missing"},
		"table not JSON": {func(b *kv.Batch, _ *TableDesc) { b.Set(tableCatalogueKey("default", "plain"), []byte("{")) },
			"does not decode"},
		"twins": {func(b *kv.Batch, d *TableDesc) {
			twin := d.clone()
			twin.Name = "twin"
			value, _ := json.Marshal(twin)
			b.Set(tableCatalogueKey("default", "twin"), value)
		}, "the table is not copied"},
		"older description": {func(b *kv.Batch, d *TableDesc) {
			older := d.clone()
			older.TTL = TTLDesc{}
			value, _ := json.Marshal(older)
			b.Set(tableCatalogueKey("default", "events"), value)
		}, ""},
		"item": {func(b *kv.Batch, d *TableDesc) {
			k, _ := d.KeyOf(item("pk", "a", "sk", 1))
			b.Set(k.bytes(), []byte{0xff})
		}, `events: item {"pk":{"S":"a"},"sk":{"N":"1"}} is not copied`},
		"entries": {func(b *kv.Batch, d *TableDesc) {
			b.DeleteRange(tableSpan(spaceDeadlines, d.ID))
			b.DeleteRange(tableSpan(spaceIndexes, d.ID))
		}, ""},
		"record of no shard": {func(b *kv.Batch, d *TableDesc) { b.Set(appendRecordKey(nil, 1, 99, 2), []byte{1}) }, "1 records, which are not copied"},
		"record of no stream": {func(b *kv.Batch, d *TableDesc) { b.Set(appendRecordKey(nil, 7, 1, 2), []byte{1}) },
			"stream id 7 has no description: 1 records are not copied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newDirectory()
			d := dir.open(t)
			d.put(d.table("plain", func(td *TableDesc) { td.Indexes, td.Stream = nil, StreamSpec{} }), item("pk", "p", "sk", 1))
			tab := d.table("events")
			if err := d.clock.Set(late); err != nil {
				t.Fatal(err)
			}
			for _, pk := range []string{"a", "b", "c"} {
				d.put(tab, item("pk", pk, "sk", 1, "g", "x", "ttl", int(late.Unix())+100))
			}
			desc, records := tab.Desc(), d.records(tab)
			d.close()
			editStore(t, dir, func(b *kv.Batch) { c.edit(b, desc) })
			lost := salvageInto(t, dir, "new")
			if text := fmt.Sprint(lost); c.want == "" && len(lost) > 0 || !strings.Contains(text, c.want) {
				t.Errorf("lost: %s\nwant %q", text, c.want)
			}
			if faults := checkAll(t, dir.fs, "new"); len(faults) > 0 {
				t.Errorf("the new directory is not sound: %v", faults)
			}
			o := dir.options()
			o.Dir = "new"
			d = open(t, o)
			defer d.close()
			if d.Now() < Instant(late.UnixMilli()) {
				t.Errorf("time went back to %d", d.Now())
			}
			fresh := d.table("fresh")
			if fresh.id <= 2 || fresh.Desc().Stream.ID <= 1 {
				t.Errorf("ids are used twice: table %d, stream %d", fresh.id, fresh.Desc().Stream.ID)
			}
			d.put(fresh, item("pk", "a", "sk", 1))
			if got := d.records(fresh); got[0].Seq <= records[len(records)-1].Seq {
				t.Errorf("sequence number %d comes after %d", got[0].Seq, records[len(records)-1].Seq)
			}
			d.verify()
		})
	}
	dir := newDirectory()
	d := dir.open(t)
	d.table("events")
	d.close()
	editStore(t, dir, func(b *kv.Batch) {
		b.Set(catalogueKey(catFormat), []byte("mayfly format 99"))
		b.Set(appendTablePrefix(nil, spaceItems, 1), nil)
	})
	_, err := Salvage(context.Background(), dir.fs, "data", "new", 0, func(int64, int64) {}, func(Fault) {})
	if !errors.Is(err, ErrFormat) {
		t.Errorf("another format: %v", err)
	}
}

// If the identifiers are lost, new revisions are still above every revision of a policy that was
// copied, with its table or its stream.
func TestSalvageKeepsRevisions(t *testing.T) {
	for owner, set := range map[string]func(d *db, tab *Table, text string) ResourcePolicy{
		"table":  func(d *db, tab *Table, text string) ResourcePolicy { return d.setPolicy(tab, text) },
		"stream": func(d *db, tab *Table, text string) ResourcePolicy { return d.setStreamPolicy(d.stream(tab), text) },
	} {
		t.Run(owner, func(t *testing.T) {
			dir := newDirectory()
			d := dir.open(t)
			tab := d.table("events")
			set(d, tab, "a")
			old := set(d, tab, "b") // beyond the instant of the frozen clock
			d.close()
			editStore(t, dir, func(b *kv.Batch) { b.Delete(catalogueKey(catIDs)) })
			salvageInto(t, dir, "new")
			o := dir.options()
			o.Dir = "new"
			d = open(t, o)
			defer d.close()
			tab, err := d.Table("default", "events")
			if err != nil {
				t.Fatal(err)
			}
			if got := set(d, tab, "c"); got.Revision <= old.Revision {
				t.Errorf("revision %d follows %d", got.Revision, old.Revision)
			}
		})
	}
}
