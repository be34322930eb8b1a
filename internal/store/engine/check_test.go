package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// TestCheckNamesTheFault breaks each relation between the parts of a store by hand. The check must
// name the entry.
func TestCheckNamesTheFault(t *testing.T) {
	type parts struct {
		*db
		d      *TableDesc
		s      *StreamDesc
		k      Key // of {"pk":"a","sk":1}, which has an index entry and a deadline
		value  []byte
		due    []byte // the key of its deadline entry
		entry  []byte // the key of its index entry
		record []byte // the key of its stream record
		image  []byte // the value of its stream record
	}
	const a = `{"pk":{"S":"a"},"sk":{"N":"1"}}`
	editTable := func(p parts, b *kv.Batch, edit func(d *TableDesc)) {
		d := p.d.clone()
		edit(d)
		value, _ := json.Marshal(d)
		b.Set(tableCatalogueKey("default", "events"), value)
	}
	editStream := func(p parts, b *kv.Batch, edit func(d *StreamDesc)) {
		d := p.s.clone()
		edit(d)
		value, _ := json.Marshal(d)
		b.Set(idKey(catStream, p.s.ID), value)
	}
	reheaded := func(p parts, edit func(h *header)) []byte {
		h, item, _ := splitStored(p.value)
		edit(&h)
		return append(h.append(nil), item...)
	}
	for name, c := range map[string]struct {
		edit func(p parts, b *kv.Batch)
		want string
	}{
		"sound":                {func(parts, *kv.Batch) {}, ""},
		"item does not decode": {func(p parts, b *kv.Batch) { b.Set(p.k.bytes(), p.value[:len(p.value)-1]) }, "events: item " + a},
		"item without header":  {func(p parts, b *kv.Batch) { b.Set(p.k.bytes(), []byte{0xff}) }, "events: item " + a},
		"item under another key": {func(p parts, b *kv.Batch) {
			other := append([]byte(nil), p.k.bytes()...)
			b.Set(append(other[:len(other)-1], 0x28), p.value)
		}, `events: item {"pk":{"S":"a"},"sk":{"N":"2"}}: corrupt store: its attributes have the key ` + a},
		"wrong size":         {func(p parts, b *kv.Batch) { b.Set(p.k.bytes(), reheaded(p, func(h *header) { h.size++ })) }, "its header says"},
		"later generation":   {func(p parts, b *kv.Batch) { b.Set(p.k.bytes(), reheaded(p, func(h *header) { h.generation = 7 })) }, "it is of TTL generation 7, the table is at 1"},
		"earlier generation": {func(p parts, b *kv.Batch) { b.Set(p.k.bytes(), reheaded(p, func(h *header) { h.generation = 0 })) }, "it is of TTL generation 0, the table is at 1"},
		"deadline of its own": {func(p parts, b *kv.Batch) {
			b.Set(p.k.bytes(), reheaded(p, func(h *header) { h.deadline--; h.removal-- }))
		}, `is not the value of "ttl"`},
		"removal too early":    {func(p parts, b *kv.Batch) { b.Set(p.k.bytes(), reheaded(p, func(h *header) { h.removal-- })) }, "it is to be removed at"},
		"no deadline entry":    {func(p parts, b *kv.Batch) { b.Delete(p.due) }, "events: item " + a + ": its deadline entry at 1767225610000 is missing"},
		"wrong deadline entry": {func(p parts, b *kv.Batch) { b.Set(p.due, []byte{0, 1, 9}) }, "events: item " + a + ": its deadline entry at 1767225610000 is 000109"},
		"deadline entry of no item": {func(p parts, b *kv.Batch) {
			b.Set(appendDeadlineKey(nil, p.d.ID, Instant(epoch.UnixMilli()), p.k.suffix()), []byte{1, 1, 9})
		}, "events: the deadline entry at 1767225600000 of " + a + " belongs to no item"},
		"short deadline key": {func(p parts, b *kv.Batch) { b.Set(p.due[:15], []byte{1, 1, 9}) }, "its key is cut short"},
		"no index entry":     {func(p parts, b *kv.Batch) { b.Delete(p.entry) }, "events: item " + a + ": its entry in index byG is missing"},
		"wrong index entry":  {func(p parts, b *kv.Batch) { b.Set(p.entry, []byte{0, 1}) }, "events: item " + a + ": its entry in index byG is 0001"},
		"index entry of no item": {func(p parts, b *kv.Batch) {
			b.Set(append(append([]byte(nil), p.entry[:len(p.entry)-1]...), 0x28), p.value)
		}, `of {"pk":{"S":"a"},"sk":{"N":"2"}} belongs to no item`},
		"moved index entry": {func(p parts, b *kv.Batch) {
			_, it, _ := splitStored(p.value)
			k, _ := p.d.appendIndexKey(nil, p.d.Index("byG"), it.With("g", item("g", "y").Get("g")), p.k)
			b.Set(k, p.value)
		}, "of " + a + " belongs to no item"},
		"entry of no index": {func(p parts, b *kv.Batch) { b.Set(append(indexPrefix(nil, 1, 9), p.entry[7:]...), p.value) }, "belongs to index id 9"},
		"mark too high":     {func(p parts, b *kv.Batch) { b.Set(idKey(catMark, 1), appendInstant(nil, Never)) }, "events: item " + a + ": its deadline 1767225610000 lies below the low-water mark"},
		"short mark":        {func(p parts, b *kv.Batch) { b.Set(idKey(catMark, 1), []byte{1}) }, "the low-water mark of table id 1 has 1 bytes"},
		"mark of no table":  {func(p parts, b *kv.Batch) { b.Set(idKey(catMark, 9), appendInstant(nil, Never)) }, "belongs to table id 9"},
		"no format":         {func(p parts, b *kv.Batch) { b.Delete(catalogueKey(catFormat)) }, "the format version is missing"},
		"another format":    {func(p parts, b *kv.Batch) { b.Set(catalogueKey(catFormat), []byte("x")) }, `the format version is "x"`},
		"short clock":       {func(p parts, b *kv.Batch) { b.Set(catalogueKey(catClock), []byte{1}) }, "the clock key has 1 bytes"},
		"unknown kind":      {func(p parts, b *kv.Batch) { b.Set(catalogueKey('z'), nil) }, "of no known kind"},
		"ids not JSON":      {func(p parts, b *kv.Batch) { b.Set(catalogueKey(catIDs), []byte("{")) }, "the identifiers do not decode"},
		"ids too low":       {func(p parts, b *kv.Batch) { b.Set(catalogueKey(catIDs), []byte(`{"Table":0,"Stream":0}`)) }, "events: its id 1 lies above 0"},
		"stream id too low": {func(p parts, b *kv.Batch) { b.Set(catalogueKey(catIDs), []byte(`{"Table":1,"Stream":0}`)) }, "the id 1 of its stream lies above 0"},
		"policy revision": {func(p parts, b *kv.Batch) {
			editTable(p, b, func(d *TableDesc) { d.API.Policy = ResourcePolicy{"x", 1} })
		},
			"events: the revision 1 of its policy lies above 0"},
		"stream's policy": {func(p parts, b *kv.Batch) {
			editStream(p, b, func(d *StreamDesc) { d.Policy = ResourcePolicy{"x", 1} })
		},
			"events: the revision 1 of its stream's policy lies above 0"},
		"table not JSON":  {func(p parts, b *kv.Batch) { b.Set(tableCatalogueKey("default", "x"), []byte("{")) }, "does not decode"},
		"stream not JSON": {func(p parts, b *kv.Batch) { b.Set(idKey(catStream, 9), []byte("{")) }, "the stream description under 00000009 does not decode"},
		"table under another name": {func(p parts, b *kv.Batch) {
			b.Delete(tableCatalogueKey("default", "events"))
			value, _ := json.Marshal(p.d)
			b.Set(tableCatalogueKey("default", "other"), value)
		}, "events: its description is stored under"},
		"two tables of one id": {func(p parts, b *kv.Batch) {
			d := p.d.clone()
			d.Name = "twin"
			value, _ := json.Marshal(d)
			b.Set(tableCatalogueKey("default", "twin"), value)
		}, "it has the id 1 of table"},
		"table gone":    {func(p parts, b *kv.Batch) { b.Delete(tableCatalogueKey("default", "events")) }, "1 keys under 0200000001 belong to no table"},
		"no key schema": {func(p parts, b *kv.Batch) { editTable(p, b, func(d *TableDesc) { d.Indexes[0].Key.Partition = nil }) }, "the key of index byG has 0 attributes"},
		"wrong key kind": {func(p parts, b *kv.Batch) {
			editTable(p, b, func(d *TableDesc) { d.Indexes[0].Key.Partition = []KeyAttr{{"g", 9}} })
		}, "the key attribute g of index byG has kind 9"},
		"index id":    {func(p parts, b *kv.Batch) { editTable(p, b, func(d *TableDesc) { d.NextIndex = 1 }) }, "the id 1 of index byG"},
		"stream gone": {func(p parts, b *kv.Batch) { b.Delete(idKey(catStream, 1)) }, "events: its stream 1 has no description"},
		"stream of another": {func(p parts, b *kv.Batch) { editStream(p, b, func(d *StreamDesc) { d.TableID = 2 }) },
			"the description of its stream 1 is of another stream"},
		"stream id":    {func(p parts, b *kv.Batch) { editTable(p, b, func(d *TableDesc) { d.Stream.ViewType = "" }) }, "its table does not write to it"},
		"shard number": {func(p parts, b *kv.Batch) { editStream(p, b, func(d *StreamDesc) { d.NextShard = 1 }) }, "does not lie between"},
		"slot":         {func(p parts, b *kv.Batch) { editStream(p, b, func(d *StreamDesc) { d.Shards[1].Slot = 9 }) }, "has slot 9 of 4"},
		"shard ends early": {func(p parts, b *kv.Batch) {
			editStream(p, b, func(d *StreamDesc) { d.Shards[1].First, d.Shards[1].Closed = 9, 1 })
		}, "ends at sequence number 0, before it begins at 9"},
		"two open shards": {func(p parts, b *kv.Batch) { editStream(p, b, func(d *StreamDesc) { d.Shards[1].Slot = 0 }) }, "slot 0 has open shard 1"},
		"slot without":    {func(p parts, b *kv.Batch) { editStream(p, b, func(d *StreamDesc) { d.Shards = d.Shards[:3] }) }, "3 of 4 slots have an open shard"},
		"parent": {func(p parts, b *kv.Batch) { editStream(p, b, func(d *StreamDesc) { d.Shards[1].Parent = 1 }) },
			"shard 2 begins at sequence number 1 of slot 1; its parent 1"},
		"record does not decode": {func(p parts, b *kv.Batch) { b.Set(p.record, p.image[:len(p.image)-1]) }, "stream 1: corrupt store: stream record 1"},
		"record of no shard":     {func(p parts, b *kv.Batch) { b.Set(appendRecordKey(nil, 1, 9, 1), p.image) }, "record 1 belongs to shard 9"},
		"record of another slot": {func(p parts, b *kv.Batch) { b.Set(appendRecordKey(nil, 1, p.otherShard(p.record), 1), p.image) }, "by its key, and lies in shard"},
		"record before its shard": {func(p parts, b *kv.Batch) {
			editStream(p, b, func(d *StreamDesc) {
				for i := range d.Shards {
					d.Shards[i].First = 2
				}
			})
		}, "record 1 lies outside of shard"},
		"trimmed record": {func(p parts, b *kv.Batch) {
			editStream(p, b, func(d *StreamDesc) {
				for i := range d.Shards {
					d.Shards[i].Trimmed = 1
				}
			})
		}, "all up to 1 have been trimmed"},
		"record of later": {func(p parts, b *kv.Batch) {
			image := append([]byte(nil), p.image...)
			setRecordInstant(image, Instant(epoch.UnixMilli()+1))
			b.Set(p.record, image)
		}, "the last commit of 1767225600000"},
		"record of before": {func(p parts, b *kv.Batch) {
			image := append([]byte(nil), p.image...)
			setRecordInstant(image, Instant(epoch.UnixMilli()-1))
			second := append([]byte(nil), p.record...)
			second[len(second)-1]++
			b.Set(second, image)
		}, "the one before it is of 1767225600000"},
		"record of another schema": {func(p parts, b *kv.Batch) {
			r := Record{At: Instant(epoch.UnixMilli()), Event: Insert, Keys: item("no", "key")}
			b.Set(p.record, r.append(nil))
		}, "record 1 has no key of the table"},
		"short record key": {func(p parts, b *kv.Batch) { b.Set(p.record[:10], p.image) }, "has 10 bytes, not 17"},
		"record of no stream": {func(p parts, b *kv.Batch) { b.Set(appendRecordKey(nil, 9, 1, 1), p.image) },
			"1 keys under 0500000009 belong to no stream"},
		"unknown keyspace": {func(p parts, b *kv.Batch) { b.Set([]byte{9, 1, 2}, nil) }, "1 keys under 090102 belong to no keyspace"},
		"empty key space":  {func(p parts, b *kv.Batch) { b.Set([]byte{0}, nil) }, "1 keys under 00 belong to no keyspace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openMemory(t)
			tab := d.table("events")
			it := item("pk", "a", "sk", 1, "g", "x", "ttl", unix(10*time.Second))
			d.put(tab, it)
			p := parts{db: d, d: tab.Desc(), s: d.stream(tab)}
			p.k, _ = p.d.KeyOf(it)
			p.value, _, _ = get(d.kv, p.k.bytes())
			p.due = appendDeadlineKey(nil, p.d.ID, Instant(epoch.Add(10*time.Second).UnixMilli()), p.k.suffix())
			p.entry, _ = p.d.appendIndexKey(nil, p.d.Index("byG"), it, p.k)
			for _, sh := range p.s.Shards {
				key := appendRecordKey(nil, 1, sh.No, 1)
				if image, ok, _ := get(d.kv, key); ok {
					p.record, p.image = key, image
				}
			}
			b := d.kv.NewBatch()
			c.edit(p, b)
			if !b.Empty() {
				if err := d.kv.Apply(b); err != nil {
					t.Fatal(err)
				}
			}
			err := errors.Join(d.Verify(context.Background()), b.Close())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v\nwant %q", err, c.want)
			}
		})
	}
}

// otherShard returns the number of a shard that is not the one of a record key.
func (d *db) otherShard(record []byte) uint32 { return uint32(record[8])%4 + 1 }

// A directory that lost its journal in a crash opens with a warning, and Check names the file.
// Without the journal other lost files cannot be detected.
func TestLostJournal(t *testing.T) {
	fs := kv.NewMemFS()
	d := open(t, crashOptions(fs))
	d.put(d.table("events"), item("pk", "a", "sk", 1))
	d.close()
	for _, name := range []string{"SEAL", kv.JournalName} { // a crash leaves no seal
		if err := fs.Remove(fs.PathJoin("data", name)); err != nil {
			t.Fatal(err)
		}
	}
	var faults []string
	if err := Check(t.Context(), fs, "data", func(int64, int64) {}, func(f Fault) { faults = append(faults, f.String()) }); err != nil {
		t.Fatal(err)
	}
	if len(faults) != 1 || !strings.HasPrefix(faults[0], kv.JournalName+": is missing") {
		t.Errorf("faults: %q", faults)
	}
	for _, want := range []int{1, 0} { // the first start makes a new journal
		var log strings.Builder
		o := crashOptions(fs)
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		d = open(t, o)
		if got := len(d.items(d.reopened("events"), Range{})); got != 1 {
			t.Errorf("%d items", got)
		}
		d.close()
		if got := strings.Count(log.String(), kv.JournalName); got != want {
			t.Errorf("%d warnings, want %d: %s", got, want, &log)
		}
	}
}
