package engine

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// drawInstant draws instants of all magnitudes, before 1970 and never included.
func drawInstant() *rapid.Generator[Instant] {
	return rapid.OneOf(
		rapid.Map(rapid.Int64Range(int64(minInstant), int64(Never)), func(i int64) Instant { return Instant(i) }),
		rapid.SampledFrom([]Instant{minInstant, -1, 0, 1, 1767225600000, Never - 1, Never}),
	)
}

// drawItem draws small items over the attribute names a to e.
func drawItem() *rapid.Generator[dynamo.Item] {
	return rapid.Custom(func(t *rapid.T) dynamo.Item {
		var b dynamo.Builder
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			switch rapid.IntRange(0, 4).Draw(t, "kind of "+name) {
			case 1:
				b.Set(name, dynamo.AppendString(nil, rapid.StringN(1, 6, 12).Draw(t, name)))
			case 2:
				b.Set(name, number(rapid.StringMatching(`-?[1-9]\d{0,9}`).Draw(t, name)))
			case 3:
				b.Set(name, dynamo.AppendBinary(nil, rapid.SliceOfN(rapid.Byte(), 1, 6).Draw(t, name)))
			}
		}
		return b.Item()
	})
}

// An instant orders as its bytes do.
func TestInstantOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawInstant().Draw(t, "a"), drawInstant().Draw(t, "b")
		ea, eb := appendInstant(nil, a), appendInstant(nil, b)
		if readInstant(ea) != a || bytes.Compare(ea, eb) < 0 != (a < b) {
			t.Fatalf("%d is % x, %d is % x", a, ea, b, eb)
		}
	})
}

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := noDeadline(rapid.Uint32().Draw(t, "generation"), rapid.IntRange(0, 1<<30).Draw(t, "size"))
		if rapid.Bool().Draw(t, "has a deadline") {
			h.deadline = drawInstant().Draw(t, "deadline")
			h.removal = h.deadline
		}
		if h.deadline != Never && rapid.Bool().Draw(t, "is removed later") {
			h.removal = drawInstant().Draw(t, "removal")
		}
		item := drawItem().Draw(t, "item")
		got, rest, err := splitStored(append(h.append(nil), item...))
		if err != nil || got != h || !bytes.Equal(rest, item) {
			t.Fatalf("%+v came back as %+v with %v: %v", h, got, rest, err)
		}
	})
}

func TestDeadlineEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := deadlineEntry{
			generation: rapid.Uint32().Draw(t, "generation"), size: rapid.IntRange(0, 1<<30).Draw(t, "size"), indexed: rapid.Bool().Draw(t, "indexed"),
		}
		if got, err := decodeDeadlineEntry(e.append(nil)); err != nil || got != e {
			t.Fatalf("%+v came back as %+v: %v", e, got, err)
		}
	})
}

// recordSchema is the key of the items in the tests of records.
var recordSchema = KeySchema{Partition: []KeyAttr{{"a", dynamo.KindString}}}

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := dynamo.AppendString(nil, rapid.StringN(1, 4, 8).Draw(t, "key"))
		r := Record{
			Seq: rapid.Uint64().Draw(t, "seq"), At: drawInstant().Draw(t, "at"),
			Event:   rapid.SampledFrom([]Event{Insert, Modify, Remove}).Draw(t, "event"),
			Service: rapid.Bool().Draw(t, "service"),
			Keys:    dynamo.Item{0}.With("a", key),
		}
		if rapid.Bool().Draw(t, "has an old image") {
			r.Old = drawItem().Draw(t, "old").With("a", key)
		}
		if rapid.Bool().Draw(t, "has a new image") {
			r.New = drawItem().Draw(t, "new").With("a", key)
		}
		value := r.append(nil)
		setRecordInstant(value, r.At)
		got, err := decodeRecord(recordSchema, r.Seq, value)
		if err != nil || got.Seq != r.Seq || got.At != r.At || got.Event != r.Event || got.Service != r.Service ||
			!bytes.Equal(got.Keys, r.Keys) || !bytes.Equal(got.Old, r.Old) || !bytes.Equal(got.New, r.New) ||
			(got.Old == nil) != (r.Old == nil) || (got.New == nil) != (r.New == nil) {
			t.Fatalf("%+v came back as %+v: %v", r, got, err)
		}
	})
}

// Any stored bytes either decode to a header that survives encoding and decoding, or return an
// error marked ErrCorrupt.
func FuzzHeader(f *testing.F) {
	f.Add(header{deadline: 5, removal: 9, generation: 3, size: 7}.append(nil))
	f.Add(append(noDeadline(0, 300).append(nil), 0))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, item, err := splitStored(b)
		if err != nil {
			wantCorrupt(t, err)
			return
		}
		again, rest, err := splitStored(append(h.append(nil), item...))
		if err != nil || again != h || !bytes.Equal(rest, item) {
			t.Errorf("% x is %+v, then %+v: %v", b, h, again, err)
		}
	})
}

func FuzzDeadlineEntry(f *testing.F) {
	f.Add([]byte{1, 1, 18}, []byte{4, 0, 0, 0, 1, 0x80, 0, 1, 0x9b, 0x76, 0xda, 0xcf, 0x10, 0xc0, 0x84, 0xc2, 0x09, 'a', 0, 1})
	f.Add([]byte{}, []byte{})
	d := &TableDesc{ID: 1, Key: recordSchema}
	f.Fuzz(func(t *testing.T, value, key []byte) {
		e, err := decodeDeadlineEntry(value)
		if err != nil {
			wantCorrupt(t, err)
		} else if again, err := decodeDeadlineEntry(e.append(nil)); err != nil || again != e {
			t.Errorf("% x is %+v, then %+v: %v", value, e, again, err)
		}
		if _, err := d.decodeArmed(key, value); err != nil {
			wantCorrupt(t, err)
		}
		if _, err := keyItem(d.Key, key); err != nil {
			wantCorrupt(t, err)
		}
	})
}

// The key of an entry in an index of several attributes either leads to the key of an item, or is
// corrupt. The entry that this item requires has the same attributes in front.
func FuzzIndexEntry(f *testing.F) {
	ix := IndexDesc{ID: 1, Name: "composite", Global: true, Projection: Projection{Type: "KEYS_ONLY"}, Key: KeySchema{
		Partition: []KeyAttr{{"g", dynamo.KindString}, {"n", dynamo.KindNumber}}, Sort: []KeyAttr{{"h", dynamo.KindBinary}, {"i", dynamo.KindString}},
	}}
	d := &TableDesc{ID: 1, Key: recordSchema, Indexes: []IndexDesc{ix}}
	prefix := indexPrefix(nil, d.ID, ix.ID)
	entry := item("a", "x", "g", "y\x00", "n", -5, "i", "z").With("h", dynamo.AppendBinary(nil, []byte{0, 255}))
	k, err := d.KeyOf(entry)
	if err != nil {
		f.Fatal(err)
	}
	seed, indexed := d.appendIndexKey(nil, &ix, entry, k)
	if !indexed {
		f.Fatal("the seed is not in the index")
	}
	f.Add(seed[len(prefix):])
	f.Add([]byte{1, 2, 3, 4, 'a', 0, 1})
	f.Fuzz(func(t *testing.T, key []byte) {
		stored := append(bytes.Clone(prefix), key...)
		suffix, err := d.suffixInEntry(&ix, stored)
		if err != nil {
			wantCorrupt(t, err)
			return
		}
		primary, err := keyItem(d.Key, suffix)
		parts, indexErr := keyItem(ix.Key, key)
		if err != nil || indexErr != nil {
			wantCorrupt(t, errors.Join(err, indexErr))
			return
		}
		for name, v := range primary.All() {
			parts = parts.With(string(name), v)
		}
		k, err := d.KeyOf(parts)
		if err != nil {
			return // an empty value, or one that is too long
		}
		again, indexed := d.appendIndexKey(nil, &ix, parts, k)
		if rest := len(prefix) + hashLen; indexed && !bytes.Equal(again[rest:], stored[rest:len(again)]) {
			t.Errorf("% x belongs to %v, whose entry is % x", stored, parts, again)
		}
	})
}

func FuzzRecord(f *testing.F) {
	images := Record{Event: Modify, Old: item("a", "k", "b", 1), New: item("a", "k", "b", 2)}
	f.Add(images.append(nil))
	keys := Record{Event: Remove, Service: true, Keys: item("a", "k")}
	f.Add(keys.append(nil))
	// keys beside an image
	f.Add([]byte("100000000\r\x02\x010\x03\x010\x011\x04\x03\xc000\r\x02\x010\x03\x010\x011\x04\x03\xc000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(recordSchema, 1, b)
		if err != nil {
			wantCorrupt(t, err)
			return
		}
		value := r.append(nil)
		setRecordInstant(value, r.At)
		again, err := decodeRecord(recordSchema, 1, value)
		if err != nil || again.Event != r.Event || !bytes.Equal(again.Old, r.Old) || !bytes.Equal(again.New, r.New) || !bytes.Equal(again.Keys, r.Keys) {
			t.Errorf("% x is %+v, then %+v: %v", b, r, again, err)
		}
	})
}

func wantCorrupt(t *testing.T, err error) {
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("not marked as corrupt: %v", err)
	}
}

// Copying the key of an item, which each record does, allocates no builder.
func TestPickAllocations(t *testing.T) {
	it := item("a", "p", "c", "another")
	if got := recordSchema.pick(it); got.String() != item("a", "p").String() {
		t.Errorf("got %s", got)
	}
	// the attributes, their places, and the key
	if n := testing.AllocsPerRun(100, func() { recordSchema.pick(it) }); n > 3 {
		t.Errorf("%v allocations; want at most 3", n)
	}
}
