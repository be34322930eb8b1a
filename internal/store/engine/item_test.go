package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// set returns a write that puts an item unconditionally.
func set(t testing.TB, tab *Table, it dynamo.Item) *Write {
	return &Write{Table: tab, Key: keyOf(t, tab, it), ReadOld: true, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }}
}

// unset is a write that deletes an item.
func unset(t testing.TB, tab *Table, key dynamo.Item) *Write {
	return &Write{Table: tab, Key: keyOf(t, tab, key), ReadOld: true, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return nil, nil }}
}

// refuse is a write that refuses with err.
func refuse(t testing.TB, tab *Table, key dynamo.Item, err error) *Write {
	return &Write{Table: tab, Key: keyOf(t, tab, key), ReadOld: true, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return nil, err }}
}

// drop drops a table.
func (d *db) drop(tab *Table) {
	d.t.Helper()
	if _, err := d.DropTable(context.Background(), "default", tab.Desc().Name, nil); err != nil {
		d.t.Fatal(err)
	}
}

// manyIndexes gives a table one index of each projection: local, global, and of several attributes.
func manyIndexes(td *TableDesc) {
	td.Indexes = nil
	for _, p := range []Projection{{Type: "ALL"}, {Type: "KEYS_ONLY"}, {Type: "INCLUDE", NonKey: []string{"n", "absent"}}} {
		td.Indexes = append(td.Indexes,
			IndexDesc{
				Name: "global " + p.Type, Global: true, Projection: p,
				Key: KeySchema{Partition: []KeyAttr{{"g", dynamo.KindString}}, Sort: []KeyAttr{{"h", dynamo.KindNumber}}},
			},
			IndexDesc{
				Name: "local " + p.Type, Projection: p,
				Key: KeySchema{Partition: []KeyAttr{{"pk", dynamo.KindString}}, Sort: []KeyAttr{{"h", dynamo.KindNumber}}},
			},
			IndexDesc{
				Name: "composite " + p.Type, Global: true, Projection: p,
				Key: KeySchema{
					Partition: []KeyAttr{{"g", dynamo.KindString}, {"n", dynamo.KindNumber}},
					Sort:      []KeyAttr{{"h", dynamo.KindNumber}, {"ttl", dynamo.KindNumber}, {"pk", dynamo.KindString}},
				},
			})
	}
}

// Under any sequence of puts, changes, deletes and expiries, every index holds exactly the
// projections of the existing items, and Verify finds that all parts agree.
func TestIndexesFollowItems(t *testing.T) {
	d := openMemory(t)
	tables := 0
	rapid.Check(t, func(rt *rapid.T) {
		tables++
		tab := d.table(fmt.Sprint("t", tables), manyIndexes)
		defer d.drop(tab) // Verify reads every table
		model := map[string]dynamo.Item{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			it := item("pk", rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "pk"), "sk", rapid.IntRange(0, 3).Draw(rt, "sk"))
			key := it.String()
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				d.delete(tab, it)
				delete(model, key)
				continue
			case 1:
				d.advance(time.Duration(rapid.IntRange(0, 3000).Draw(rt, "ms")) * time.Millisecond)
				expire(model, d.Now())
				continue
			}
			for _, a := range []string{"g", "h", "n", "ttl"} {
				switch v := rapid.IntRange(-1, 2).Draw(rt, a); {
				case v < 0:
				case a == "g":
					it = it.With(a, dynamo.AppendString(nil, fmt.Sprint(v)))
				case a == "ttl":
					it = it.With(a, number(fmt.Sprint(int64(d.Now())/1000+int64(v))))
				case a == "h" && v == 2: // not the type of the index key: not in the index
					it = it.With(a, dynamo.AppendString(nil, "x"))
				default:
					it = it.With(a, number(fmt.Sprint(v)))
				}
			}
			d.put(tab, it)
			model[key] = it
			expire(model, d.Now())
		}
		if err := d.verifyTables(context.Background(), []*Table{tab}); err != nil {
			rt.Fatal(err)
		}
		wantIndexes(rt, d, tab, model)
	})
}

// expire removes expired items from a model.
func expire(model map[string]dynamo.Item, now Instant) {
	for key, it := range model {
		if v := it.Get("ttl"); v != nil {
			if ms, ok := v.Number().Millis(); ok && Instant(ms) <= now {
				delete(model, key)
			}
		}
	}
}

// wantIndexes compares every index of a table with the projections of a model's items.
func wantIndexes(t *rapid.T, d *db, tab *Table, model map[string]dynamo.Item) {
	desc := tab.Desc()
	for i := range desc.Indexes {
		ix := &desc.Indexes[i]
		var want, got []string
		for _, it := range model {
			if entry, ok := desc.projectIndex(ix, it); ok {
				want = append(want, entry.String())
			}
		}
		for _, it := range d.items(tab, Range{Index: ix}) {
			got = append(got, it.String())
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Fatalf("%s holds\n%v\nwant\n%v", ix.Name, got, want)
		}
	}
}

// projectIndex returns an index's entry for an item. It returns false if the item lacks a key
// attribute, or has one of another type, and so is not in the index.
func (d *TableDesc) projectIndex(ix *IndexDesc, item dynamo.Item) (dynamo.Item, bool) {
	for a := range ix.Key.Attrs {
		if checkKeyValue(a, item.Get(a.Name)) != nil {
			return nil, false
		}
	}
	return d.project(ix, item), true
}

// A projection holds the index key, the table key, and the attributes that it names.
func TestProjection(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", manyIndexes)
	desc := tab.Desc()
	it := item("pk", "a", "sk", 1, "g", "x", "h", 2, "n", 3, "o", 4, "ttl", 9)
	for _, c := range []struct {
		index string
		want  dynamo.Item
	}{
		{"global ALL", it},
		{"global KEYS_ONLY", item("pk", "a", "sk", 1, "g", "x", "h", 2)},
		{"global INCLUDE", item("pk", "a", "sk", 1, "g", "x", "h", 2, "n", 3)},
		{"composite KEYS_ONLY", item("pk", "a", "sk", 1, "g", "x", "h", 2, "n", 3, "ttl", 9)},
		{"composite ALL", it},
		{"local KEYS_ONLY", item("pk", "a", "sk", 1, "h", 2)},
		{"local INCLUDE", item("pk", "a", "sk", 1, "h", 2, "n", 3)},
	} {
		if got, ok := desc.projectIndex(desc.Index(c.index), it); !ok || got.String() != c.want.String() {
			t.Errorf("%s holds %v, want %v", c.index, got, c.want)
		}
	}
	for _, index := range []string{"global ALL", "composite ALL"} {
		if _, ok := desc.projectIndex(desc.Index(index), it.With("h", nil)); ok {
			t.Errorf("an item without an index key attribute is in the index %s", index)
		}
	}
	if desc.Index("none") != nil {
		t.Error("an index that is not there was found")
	}
}

// The error for an invalid key names the problem, the attribute and the index.
func TestKeyErrors(t *testing.T) {
	d := openMemory(t)
	desc := d.table("events", manyIndexes).Desc()
	long := func(n int) string { return string(make([]byte, n)) }
	for name, c := range map[string]struct {
		err  error
		want KeyError
	}{
		"missing":                         {keyErr(desc.KeyOf(item("pk", "a"))), KeyError{Attribute: "sk", Problem: KeyMissing, Want: dynamo.KindNumber}},
		"wrong type":                      {keyErr(desc.KeyOf(item("pk", 1, "sk", 1))), KeyError{Attribute: "pk", Problem: KeyWrongType, Want: dynamo.KindString, Got: dynamo.KindNumber}},
		"empty":                           {keyErr(desc.KeyOf(item("pk", "", "sk", 1))), KeyError{Attribute: "pk", Problem: KeyEmpty, Want: dynamo.KindString, Got: dynamo.KindString}},
		"partition too long":              {keyErr(desc.KeyOf(item("pk", long(2049), "sk", 1))), KeyError{Attribute: "pk", Problem: KeyPartitionTooLong}},
		"partition longest":               {keyErr(desc.KeyOf(item("pk", long(2048), "sk", 1))), KeyError{}},
		"index wrong type":                {desc.CheckIndexKeys(item("pk", "a", "sk", 1, "g", 2), nil), KeyError{Attribute: "g", Index: "global ALL", Problem: KeyWrongType, Want: dynamo.KindString, Got: dynamo.KindNumber}},
		"index second wrong":              {desc.CheckIndexKeys(item("pk", "a", "sk", 1, "h", "x"), nil), KeyError{Attribute: "h", Index: "global ALL", Problem: KeyWrongType, Want: dynamo.KindNumber, Got: dynamo.KindString}},
		"index empty":                     {desc.CheckIndexKeys(item("pk", "a", "sk", 1, "g", ""), nil), KeyError{Attribute: "g", Index: "global ALL", Problem: KeyEmpty, Want: dynamo.KindString, Got: dynamo.KindString}},
		"composite last wrong":            {desc.CheckIndexKeys(item("pk", "a", "sk", 1, "ttl", "x"), nil), KeyError{Attribute: "ttl", Index: "composite ALL", Problem: KeyWrongType, Want: dynamo.KindNumber, Got: dynamo.KindString}},
		"composite too long":              {desc.CheckIndexKeys(item("pk", "a", "sk", 1, "g", long(2048), "n", 1), func(a string) bool { return a == "n" }), KeyError{Attribute: "g", Index: "composite ALL", Problem: KeyPartitionTooLong}},
		"composite as long":               {desc.CheckIndexKeys(item("pk", "a", "sk", 1, "g", long(2046), "n", 1), nil), KeyError{}},
		"composite too long, not written": {desc.CheckIndexKeys(item("pk", "a", "sk", 1, "g", long(2048), "n", 1), func(a string) bool { return a == "h" }), KeyError{}},
		"index absent":                    {desc.CheckIndexKeys(item("pk", "a", "sk", 1), nil), KeyError{}},
	} {
		if c.want == (KeyError{}) {
			if c.err != nil {
				t.Errorf("%s: %v", name, c.err)
			}
			continue
		}
		var got *KeyError
		if !errors.As(c.err, &got) || *got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		} else if got.Error() == "" {
			t.Errorf("%s: no text", name)
		}
	}
	sortKey := &TableDesc{Key: KeySchema{Partition: []KeyAttr{{"pk", dynamo.KindString}}, Sort: []KeyAttr{{"s", dynamo.KindString}}}}
	var got *KeyError
	if _, err := sortKey.KeyOf(item("pk", "a", "s", long(1025))); !errors.As(err, &got) || got.Problem != KeySortTooLong || got.Attribute != "s" {
		t.Errorf("sort key too long: %+v", got)
	}
}

func keyErr(_ Key, err error) error { return err }

// A batch is applied as a whole or not at all, over tables, and a refusal identifies the refused
// write.
func TestBatchAllOrNone(t *testing.T) {
	d := openMemory(t)
	one, two := d.table("one"), d.table("two")
	d.put(one, item("pk", "there", "sk", 1))
	no := errors.New("no")
	ws := []*Write{
		set(t, one, item("pk", "a", "sk", 1, "g", "x")), set(t, two, item("pk", "a", "sk", 1)), unset(t, one, item("pk", "there", "sk", 1)),
		refuse(t, two, item("pk", "b", "sk", 1), no),
	}
	if err := d.Write(context.Background(), ws...); !errors.Is(err, ErrRefused) || ws[3].Err != no || ws[0].Err != nil {
		t.Fatalf("%v, %v", err, ws[3].Err)
	}
	if d.get(one, item("pk", "a", "sk", 1)) != nil || d.get(two, item("pk", "a", "sk", 1)) != nil || d.get(one, item("pk", "there", "sk", 1)) == nil {
		t.Error("half of a refused batch was applied")
	}
	if n := len(d.records(two)); n != 0 {
		t.Errorf("a refused batch made %d records", n)
	}
	if err := d.Write(context.Background(), ws[:3]...); err != nil {
		t.Fatal(err)
	}
	if d.get(one, item("pk", "a", "sk", 1)) == nil || d.get(two, item("pk", "a", "sk", 1)) == nil || d.get(one, item("pk", "there", "sk", 1)) != nil {
		t.Error("a part of the batch is missing")
	}
	if ws[2].Old == nil || ws[2].New != nil || ws[0].Old != nil || ws[0].New == nil {
		t.Errorf("results: %+v %+v", ws[0], ws[2])
	}
	d.verify()
}

// Two writes of one batch with one key are refused; the same key in two tables is two keys.
func TestSameKeyTwice(t *testing.T) {
	d := openMemory(t)
	one, two := d.table("one"), d.table("two")
	a := item("pk", "a", "sk", 1)
	if err := d.Write(context.Background(), set(t, one, a), set(t, two, a), unset(t, one, a)); !errors.Is(err, ErrSameKey) {
		t.Errorf("the same key twice: %v", err)
	}
	if err := d.Write(context.Background(), set(t, one, a), set(t, two, a)); err != nil {
		t.Errorf("the same key in two tables: %v", err)
	}
}

// A write that changes nothing makes no record and no commit: an equal item, an unchanged item, a
// delete of a missing item.
func TestNoChangeNoRecord(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	a := item("pk", "a", "sk", 1, "g", "x", "ttl", unix(time.Minute))
	d.put(tab, a)
	commits := d.lastCommit.Load()
	d.put(tab, a)
	d.delete(tab, item("pk", "b", "sk", 1))
	keep := &Write{Table: tab, Key: keyOf(t, tab, a), ReadOld: true, Decide: func(old dynamo.Item, _ Instant) (dynamo.Item, error) { return old, nil }}
	if err := d.Write(context.Background(), keep); err != nil || keep.Old.String() != a.String() {
		t.Fatalf("%v: %v", keep.Old, err)
	}
	if n := len(d.records(tab)); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
	if d.lastCommit.Load() != commits {
		t.Error("something was committed")
	}
	d.put(tab, a.With("n", number("1")))
	if rs := d.records(tab); len(rs) != 2 || rs[1].Event != Modify {
		t.Errorf("records: %+v", rs)
	}
}

// A table without TTL, stream and indexes writes without reading: Decide sees no old item unless
// ReadOld asks for it.
func TestBlindWrite(t *testing.T) {
	d := openMemory(t)
	tab := d.table("plain", func(td *TableDesc) { td.Indexes, td.TTL, td.Stream = nil, TTLDesc{}, StreamSpec{} })
	a := item("pk", "a", "sk", 1)
	d.put(tab, a)
	for _, read := range []bool{false, true} {
		seen := false
		w := &Write{Table: tab, Key: keyOf(t, tab, a), ReadOld: read, Decide: func(old dynamo.Item, _ Instant) (dynamo.Item, error) {
			seen = old != nil
			return a.With("n", number("1")), nil
		}}
		if err := d.Write(context.Background(), w); err != nil || seen != read {
			t.Errorf("ReadOld %v: Decide saw an old item: %v; %v", read, seen, err)
		}
	}
	w := unset(t, tab, a)
	w.ReadOld = false
	if err := d.Write(context.Background(), w); err != nil || d.get(tab, a) != nil {
		t.Errorf("a blind delete: %v", err)
	}
}

// Stats count the existing items, of the table and of each index, at every call.
func TestStats(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	a, b := item("pk", "a", "sk", 1, "g", "x"), item("pk", "b", "sk", 1, "ttl", unix(time.Second))
	d.put(tab, a)
	d.put(tab, b)
	want := func(items, bytes, indexed int64) {
		t.Helper()
		s, err := tab.Stats(context.Background())
		if err != nil || s.Items != items || s.Bytes != bytes || s.Indexes["byG"].Items != indexed {
			t.Errorf("%+v %v, want %d items of %d bytes", s, err, items, bytes)
		}
	}
	want(2, int64(a.Size()+b.Size()), 1)
	d.advance(time.Second)
	want(1, int64(a.Size()), 1)
	d.delete(tab, a)
	want(0, 0, 0)
}
