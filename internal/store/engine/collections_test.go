package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// localIndexes adds two local indexes to a table, one of them with all attributes.
func localIndexes(td *TableDesc) {
	for name, projection := range map[string]string{"local keys": "KEYS_ONLY", "local all": "ALL"} {
		td.Indexes = append(td.Indexes, IndexDesc{
			Name: name, Projection: Projection{Type: projection}, Key: KeySchema{Partition: td.Key.Partition, Sort: []KeyAttr{{"l", dynamo.KindNumber}}},
		})
	}
}

func limited(bytes int64) func(*Options) { return func(o *Options) { o.CollectionBytesMax = bytes } }

// try makes writes as one batch, and returns their own error if they are refused.
func (d *db) try(ws ...*Write) error {
	err := d.Write(context.Background(), ws...)
	if errors.Is(err, ErrRefused) {
		for _, w := range ws {
			if w.Err != nil {
				return w.Err
			}
		}
	}
	return err
}

func (d *db) writeOf(tab *Table, it dynamo.Item, next dynamo.Item) *Write {
	return &Write{Table: tab, Key: keyOf(d.t, tab, it), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return next, nil }}
}

// wantMeasured checks that every measured collection has the size that its entries add up to.
func (d *db) wantMeasured(tab *Table) {
	d.t.Helper()
	desc, c := tab.Desc(), tab.collections
	for part, size := range c.sizes {
		enc := string(appendTablePrefix(nil, spaceItems, desc.ID)) + part
		got, err := d.measure(desc, Key{enc: enc, partition: len(enc)})
		if err != nil {
			d.t.Fatal(err)
		}
		if got != size {
			d.t.Errorf("collection %q has %d bytes, counted as %d", part, got, size)
		}
	}
}

// naiveSize adds up a collection of a model: items, and their entries in local indexes.
func naiveSize(desc *TableDesc, model map[string]dynamo.Item, pk dynamo.Value) (size int64) {
	for _, it := range model {
		if !dynamo.Equal(it.Get("pk"), pk) {
			continue
		}
		size += int64(it.Size())
		for i := range desc.Indexes {
			if entry, ok := desc.projectIndex(&desc.Indexes[i], it); ok && !desc.Indexes[i].Global {
				size += int64(entry.Size())
			}
		}
	}
	return size
}

// Under any sequence of writes, batches, deletes and expiries, a batch is refused exactly if it grows
// a collection beyond the limit.
func TestCollectionsAgainstModel(t *testing.T) {
	const limit = 600
	d := openMemory(t, limited(limit))
	tables := 0
	refusals, accepted := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		tables++
		tab := d.table(fmt.Sprint("t", tables), localIndexes)
		defer d.drop(tab)
		model := map[string]dynamo.Item{}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if rapid.IntRange(0, 5).Draw(rt, "step") == 0 {
				d.advance(time.Duration(rapid.IntRange(0, 3000).Draw(rt, "ms")) * time.Millisecond)
				expire(model, d.Now())
				d.wantMeasured(tab)
				continue
			}
			after := map[string]dynamo.Item{}
			for key, it := range model {
				after[key] = it
			}
			var ws []*Write
			changed := map[string]bool{}
			for range rapid.IntRange(1, 3).Draw(rt, "batch") {
				key := item("pk", rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "pk"), "sk", rapid.IntRange(0, 3).Draw(rt, "sk"))
				if changed[key.String()] {
					continue
				}
				changed[key.String()] = true
				if rapid.IntRange(0, 3).Draw(rt, "delete") == 0 {
					ws = append(ws, d.writeOf(tab, key, nil))
					delete(after, key.String())
					continue
				}
				it := key.With("pad", dynamo.AppendString(nil, strings.Repeat("x", rapid.IntRange(0, 250).Draw(rt, "pad"))))
				if rapid.Bool().Draw(rt, "local") {
					it = it.With("l", number(fmt.Sprint(rapid.IntRange(0, 5).Draw(rt, "l"))))
				}
				if rapid.Bool().Draw(rt, "global") {
					it = it.With("g", dynamo.AppendString(nil, "x"))
				}
				if s := rapid.IntRange(0, 3).Draw(rt, "ttl"); s > 0 {
					it = it.With("ttl", number(fmt.Sprint(int64(d.Now())/1000+int64(s))))
				}
				ws = append(ws, d.writeOf(tab, key, it))
				after[key.String()] = it
			}
			want := error(nil)
			for _, pk := range []string{"a", "b"} {
				v := item("pk", pk).Get("pk")
				if was, is := naiveSize(tab.Desc(), model, v), naiveSize(tab.Desc(), after, v); is > was && is > limit {
					want = ErrCollectionFull
				}
			}
			if err := d.try(ws...); !errors.Is(err, want) || (err == nil) != (want == nil) {
				rt.Fatalf("got %v, want %v", err, want)
			}
			if want == nil {
				model = after
				accepted++
			} else {
				refusals++
			}
			d.wantMeasured(tab)
		}
	})
	if refusals == 0 || accepted == 0 {
		t.Errorf("%d batches were accepted and %d refused: this shows nothing", accepted, refusals)
	}
}

// The last byte up to the limit fits, and none behind it. A collection that is above the limit, here
// because the limit was lowered, can only shrink.
func TestCollectionsBoundary(t *testing.T) {
	const limit = 1_000
	dir := newDirectory()
	o := dir.options()
	o.CollectionBytesMax = limit
	d := open(t, o)
	tab := d.table("events", localIndexes)
	key := item("pk", "a", "sk", 1)
	padded := func(size int) dynamo.Item {
		it := key.With("pad", dynamo.AppendString(nil, ""))
		return key.With("pad", dynamo.AppendString(nil, strings.Repeat("x", size-it.Size())))
	}
	if err := d.try(d.writeOf(tab, key, padded(limit+1))); err != ErrCollectionFull {
		t.Errorf("a byte too many: %v", err)
	}
	if err := d.try(d.writeOf(tab, key, padded(limit))); err != nil {
		t.Errorf("the limit: %v", err)
	}
	d.put(tab, item("pk", "b", "sk", 1))
	d.close()
	o.CollectionBytesMax = 100
	d = open(t, o)
	tab = d.reopened("events")
	more := item("pk", "a", "sk", 2)
	for _, size := range []int{limit + 1, limit + 5_000} {
		if err := d.try(d.writeOf(tab, key, padded(size))); err != ErrCollectionFull {
			t.Errorf("growth above a lowered limit: %v", err)
		}
	}
	for _, ws := range [][]*Write{
		{d.writeOf(tab, key, padded(limit))}, {d.writeOf(tab, key, padded(limit-1))}, {d.writeOf(tab, key, padded(limit-50)), d.writeOf(tab, more, more)}, {d.writeOf(tab, key, nil)},
	} {
		if err := d.try(ws...); err != nil {
			t.Errorf("without growth: %v", err)
		}
	}
	d.wantMeasured(tab)
	d.close()
}

// In a large table, a write looks only at the files of its bucket. It measures if those may hold too
// much.
func TestCollectionsByBucket(t *testing.T) {
	d := openMemory(t, limited(32<<20))
	tab := d.table("events", localIndexes)
	c := tab.collections
	c.large, c.unseen = true, 1<<40
	first := item("pk", "a", "sk", 1, "pad", strings.Repeat("x", 1000))
	d.put(tab, first)
	if len(c.buckets) != 1 || len(c.sizes) != 0 {
		t.Fatalf("%d buckets and %d collections were looked at", len(c.buckets), len(c.sizes))
	}
	bucket := keyOf(t, tab, first).hash() >> (32 - bucketBits)
	spare := c.buckets[bucket]
	d.put(tab, first.With("sk", number("2")))
	if used := spare - c.buckets[bucket]; used < 1000 || used > 1100 {
		t.Errorf("the second item took %d bytes of what the bucket can gain", used)
	}
	c.buckets[bucket] = 10
	d.put(tab, first.With("sk", number("3")))
	if left := c.buckets[bucket]; left < spare/2 || len(c.sizes) != 0 {
		t.Errorf("after another look at the files the bucket can gain %d bytes, and %d collections were measured", left, len(c.sizes))
	}
	c.buckets[bucket] = bucketLarge
	d.put(tab, first.With("sk", number("4")))
	d.put(tab, first.With("sk", number("5")))
	if len(c.sizes) != 1 {
		t.Errorf("%d collections were measured", len(c.sizes))
	}
	d.wantMeasured(tab)
}

// The buckets' parts of the hashes cover all of them, in the items and in each local index.
func TestCollectionsBucketSpans(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", localIndexes)
	desc := tab.Desc()
	for i := range 200 {
		it := item("pk", fmt.Sprint(i), "sk", 1, "l", 1)
		key := keyOf(t, tab, it)
		spans := bucketSpans(desc, key.hash()>>(32-bucketBits))
		within := func(key []byte, n int) bool {
			return bytes.Compare(key, spans[n].Start) >= 0 && bytes.Compare(key, spans[n].End) < 0
		}
		if !within(key.bytes(), 0) || len(spans) != 3 {
			t.Fatalf("%v lies outside of its bucket %v", it, spans[0])
		}
		n := 0
		for j := range desc.Indexes {
			if ix := &desc.Indexes[j]; !ix.Global {
				n++
				if entry, ok := desc.appendIndexKey(nil, ix, it, key); !ok || !within(entry, n) {
					t.Fatalf("the entry %x of %v lies outside of its bucket %v", entry, it, spans[n])
				}
			}
		}
	}
	for _, edge := range []uint32{0, 1<<bucketBits - 1} {
		lower, upper := tableSpan(spaceItems, desc.ID)
		span := bucketSpans(desc, edge)[0]
		if edge == 0 && hashOf(span.Start) != 0 || edge > 0 && !bytes.Equal(span.End, upper) || bytes.Compare(span.Start, lower) < 0 {
			t.Errorf("bucket %d: %x", edge, span)
		}
	}
}

// A write over an expired item that is still stored replaces it in the count too.
func TestCollectionsOverExpired(t *testing.T) {
	d := openMemory(t, limited(300))
	tab := d.table("events", localIndexes)
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	d.stop = func() error { return nil }
	it := item("pk", "a", "sk", 1, "l", 1, "pad", strings.Repeat("x", 90))
	d.put(tab, it.With("ttl", number(fmt.Sprint(unix(time.Second)))))
	if err := d.clock.Advance(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	d.put(tab, it)
	d.wantMeasured(tab)
	if err := d.try(d.writeOf(tab, item("pk", "a", "sk", 2), item("pk", "a", "sk", 2, "pad", strings.Repeat("x", 90)))); err != ErrCollectionFull {
		t.Errorf("a second item: %v", err)
	}
}

// A backfill that removes expired items counts them.
func TestCollectionsAfterBackfill(t *testing.T) {
	d := openMemory(t, limited(300))
	tab := d.table("events", localIndexes)
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	d.stop = func() error { return nil }
	d.put(tab, item("pk", "a", "sk", 1, "l", 1, "ttl", unix(time.Second), "pad", strings.Repeat("x", 90)))
	if err := d.clock.Advance(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	d.setTTL("events", "")
	if err := tab.backfill(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := len(tab.collections.sizes); n != 1 {
		t.Fatalf("%d collections were measured: this shows nothing", n)
	}
	d.wantMeasured(tab)
	d.put(tab, item("pk", "a", "sk", 2, "l", 1, "pad", strings.Repeat("x", 90)))
}

// An import may exceed the limit. Writes then only shrink the collection.
func TestCollectionsLoad(t *testing.T) {
	d := openMemory(t, limited(300))
	desc := TableDesc{Namespace: "default", Name: "events", Key: d.table("like").Desc().Key}
	localIndexes(&desc)
	job, err := d.BeginImport(context.Background(), desc, noDetails)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := d.TableOf(job)
	if err != nil {
		t.Fatal(err)
	}
	big := item("pk", "a", "sk", 1, "l", 1, "pad", strings.Repeat("x", 400))
	d.load(tab, big)
	d.endImport(job, tab, true)
	if d.get(tab, big) == nil {
		t.Fatal("the import has lost its item")
	}
	more := item("pk", "a", "sk", 2)
	if err := d.try(d.writeOf(tab, more, more)); err != ErrCollectionFull {
		t.Errorf("a further item: %v", err)
	}
	d.delete(tab, big)
	d.put(tab, more)
	d.wantMeasured(tab)
}

// Tables without local indexes have no limit, and neither has a collection of another table or key.
func TestCollectionsApart(t *testing.T) {
	d := openMemory(t, limited(200))
	big := item("pk", "a", "sk", 1, "g", "x", "pad", strings.Repeat("x", 500))
	plain := d.table("plain")
	d.put(plain, big)
	if plain.collections != nil {
		t.Error("a table without local indexes keeps collections")
	}
	if _, _, ok := plain.CollectionBytes(keyOf(t, plain, big)); ok {
		t.Error("a table without local indexes has an estimate")
	}
	tab := d.table("events", localIndexes)
	other := d.table("other", localIndexes)
	small := item("pk", "a", "sk", 1, "pad", strings.Repeat("x", 150))
	for _, w := range []*Write{d.writeOf(tab, small, small), d.writeOf(other, small, small), d.writeOf(tab, item("pk", "b", "sk", 1), item("pk", "b", "sk", 1, "pad", strings.Repeat("x", 150)))} {
		if err := d.try(w); err != nil {
			t.Fatal(err)
		}
	}
	// a batch over both tables is refused as a whole, and names only the write that does not fit
	more := item("pk", "a", "sk", 2, "pad", strings.Repeat("x", 60))
	ws := []*Write{d.writeOf(other, item("pk", "c", "sk", 1), item("pk", "c", "sk", 1)), d.writeOf(tab, more, more)}
	if err := d.Write(context.Background(), ws...); !errors.Is(err, ErrRefused) || ws[0].Err != nil || ws[1].Err != ErrCollectionFull {
		t.Errorf("%v: %v, %v", err, ws[0].Err, ws[1].Err)
	}
	if d.get(tab, more) != nil || d.get(other, item("pk", "c", "sk", 1)) != nil {
		t.Error("a refused batch has left something")
	}
	if least, most, ok := tab.CollectionBytes(keyOf(t, tab, small)); !ok || least != most || least == 0 {
		t.Errorf("the measured collection has %d to %d bytes", least, most)
	}
}

// A table below half of the limit measures nothing. In a larger one, only the collection that grows
// is measured. After a restart the limit holds on.
func TestCollectionsMeasureLittle(t *testing.T) {
	dir := newDirectory()
	o := dir.options()
	o.CollectionBytesMax = 24 << 20
	d := open(t, o)
	tab := d.table("events", localIndexes)
	fill := func(pk string, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			d.put(tab, item("pk", pk, "sk", i, "pad", strings.Repeat("x", 100_000)))
		}
	}
	fill("a", 0, 60)
	if n := tab.collections.measured.Load(); n != 0 || tab.collections.large {
		t.Errorf("6 of 24 MB: %d collections were measured, large %t", n, tab.collections.large)
	}
	if least, most, ok := tab.CollectionBytes(keyOf(t, tab, item("pk", "a", "sk", 0))); !ok || least != 0 || most < 60*100_000 {
		t.Errorf("between %d and %d bytes", least, most)
	}
	fill("a", 60, 240)
	d.wantMeasured(tab)
	if n := tab.collections.measured.Load(); n != 1 {
		t.Errorf("%d collections were measured, want the one that grew", n)
	}
	for i := 240; ; i++ {
		it := item("pk", "a", "sk", i, "pad", strings.Repeat("x", 100_000))
		err := d.try(d.writeOf(tab, it, it))
		if err == ErrCollectionFull {
			if size, _, _ := tab.CollectionBytes(keyOf(t, tab, it)); size > o.CollectionBytesMax || size < o.CollectionBytesMax-110_000 {
				t.Errorf("it is full at %d bytes", size)
			}
			break
		}
		if err != nil || i > 300 {
			t.Fatalf("item %d: %v", i, err)
		}
	}
	d.close()
	d = open(t, o)
	tab = d.reopened("events")
	it := item("pk", "a", "sk", 1000, "pad", strings.Repeat("x", 100_000))
	if err := d.try(d.writeOf(tab, it, it)); err != ErrCollectionFull {
		t.Errorf("after a restart: %v", err)
	}
	d.delete(tab, item("pk", "a", "sk", 0))
	d.put(tab, it)
	d.wantMeasured(tab)
	d.close()
}

// Many writers at once do not exceed the limit together.
func TestCollectionsBesideWriters(t *testing.T) {
	const limit = 5_000
	d := openMemory(t, limited(limit))
	tab := d.table("events", localIndexes)
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := range 40 {
				it := item("pk", fmt.Sprint("p", i%2), "sk", w*100+i, "l", i, "pad", strings.Repeat("x", 50))
				if err := d.try(d.writeOf(tab, it, it)); err != nil && err != ErrCollectionFull {
					t.Error(err)
				}
				if i%7 == 6 {
					_ = d.try(d.writeOf(tab, it, nil))
				}
			}
		})
	}
	writers.Wait()
	d.wantMeasured(tab)
	for part, size := range tab.collections.sizes {
		if size > limit || size < limit/2 {
			t.Errorf("collection %q has %d bytes", part, size)
		}
	}
}

// A large table is looked at again after an eighth of the limit. If its files have shrunk, it is small
// again; otherwise its large buckets are looked at again too.
func TestCollectionsLookAgain(t *testing.T) {
	d := openMemory(t, limited(32<<20))
	tab := d.table("events", localIndexes)
	c := tab.collections
	put := func(sk int) { d.put(tab, item("pk", "a", "sk", sk, "pad", strings.Repeat("x", 1000))) }
	bucket := keyOf(t, tab, item("pk", "a", "sk", 1)).hash() >> (32 - bucketBits)
	other := bucket ^ 1
	c.large, c.unseen, c.buckets[bucket], c.buckets[other] = true, 1500, bucketLarge, 5
	put(1)
	if !c.large || len(c.sizes) != 1 || c.buckets[bucket] != bucketLarge {
		t.Errorf("before the next look: large %t, %d measured, bucket %d", c.large, len(c.sizes), c.buckets[bucket])
	}
	put(2)
	if c.large || len(c.buckets) != 0 || c.spare.Load() < c.limit/4 {
		t.Errorf("after the next look: large %t, %d buckets, spare %d", c.large, len(c.buckets), c.spare.Load())
	}
	d.wantMeasured(tab)

	c.limit = 100_000 // less than the room of a memtable
	c.spare.Store(0)
	c.large, c.unseen, c.buckets[bucket], c.buckets[other] = true, 0, bucketLarge, bucketLarge
	put(3)
	_, kept := c.buckets[other]
	if !c.large || kept || c.buckets[bucket] != bucketLarge {
		t.Errorf("still large: large %t, bucket %d, another large one kept %t", c.large, c.buckets[bucket], kept)
	}
	d.wantMeasured(tab)
}

// Writes that need no look at files do not wait for one.
func TestCollectionsBesideLook(t *testing.T) {
	d := openMemory(t, limited(32<<20))
	tab := d.table("events", localIndexes)
	c := tab.collections
	it := item("pk", "a", "sk", 1)
	key := keyOf(t, tab, it)
	c.large, c.unseen = true, 1<<40
	c.buckets[key.hash()>>(32-bucketBits)] = 1 << 20
	c.looking.Lock()
	defer c.looking.Unlock()
	d.put(tab, it)
	if _, most, ok := tab.CollectionBytes(key); !ok || most == 0 {
		t.Errorf("at most %d bytes, %t", most, ok)
	}
}

// The sizes in memory are bounded: a further collection drops a small one, never the largest.
func TestCollectionsForget(t *testing.T) {
	d := openMemory(t, limited(100))
	tab := d.table("events", localIndexes)
	large := keyOf(t, tab, item("pk", "large", "sk", 1))
	tab.collections.sizes[large.collection()] = 90
	for i := range measuredMax + 5 {
		if _, err := tab.collections.size(d.Engine, tab.Desc(), keyOf(t, tab, item("pk", fmt.Sprint(i), "sk", 1))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(tab.collections.sizes); n != measuredMax || tab.collections.measured.Load() != measuredMax {
		t.Errorf("%d sizes", n)
	}
	if tab.collections.sizes[large.collection()] != 90 {
		t.Error("the largest collection was dropped")
	}
	if _, known := tab.collections.sizes[keyOf(t, tab, item("pk", fmt.Sprint(measuredMax+4), "sk", 1)).collection()]; !known {
		t.Error("the last collection was not kept")
	}
}
