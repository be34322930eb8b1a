package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/keyenc"
)

// The key values that the tests of ranges draw from: few, so that keys share parts, and awkward.
var (
	stringPool = []string{"a", "a\x00", "a\x00b", "a\x01", "ab", "b", "ÿ"}
	numberPool = []string{"-1e30", "-2.5", "-2", "0", "0.001", "2", "2.5", "10", "12345678901234567890123456789012345678"}
	binaryPool = []string{"\x00", "\x00\x01", "\x00\xff", "\x7f", "\xff", "\xff\xff"}
)

// drawKeyValue draws a value for a key attribute.
func drawKeyValue(t *rapid.T, kind dynamo.Kind, label string) dynamo.Value {
	switch kind {
	case dynamo.KindNumber:
		return number(rapid.SampledFrom(numberPool).Draw(t, label))
	case dynamo.KindBinary:
		return dynamo.AppendBinary(nil, []byte(rapid.SampledFrom(binaryPool).Draw(t, label)))
	default:
		return dynamo.AppendString(nil, rapid.SampledFrom(stringPool).Draw(t, label))
	}
}

// drawSchema draws a key of one to eight attributes named prefix1, prefix2, ….
func drawSchema(t *rapid.T, prefix string) (s KeySchema) {
	kinds := rapid.SliceOfN(rapid.SampledFrom([]dynamo.Kind{dynamo.KindString, dynamo.KindNumber, dynamo.KindBinary}), 1, 8).Draw(t, prefix+" kinds")
	partition := rapid.IntRange(1, min(4, len(kinds))).Draw(t, prefix+" partition")
	if len(kinds)-partition > 4 {
		partition = len(kinds) - 4
	}
	for i, kind := range kinds {
		a := KeyAttr{Name: fmt.Sprint(prefix, i+1), Kind: kind}
		if i < partition {
			s.Partition = append(s.Partition, a)
		} else {
			s.Sort = append(s.Sort, a)
		}
	}
	return s
}

// compareValues compares two key values of one kind as DynamoDB does, without the encoding under
// test.
func compareValues(a, b dynamo.Value) int {
	if a.Kind() != dynamo.KindNumber {
		return bytes.Compare(a.Bytes(), b.Bytes())
	}
	x, okX := new(big.Rat).SetString(a.Number().String())
	y, okY := new(big.Rat).SetString(b.Number().String())
	if !okX || !okY {
		panic("a number does not read as one")
	}
	return x.Cmp(y)
}

// keyModel is a naive model of a table or an index: items that are sorted by comparing values.
type keyModel struct {
	desc   *TableDesc
	index  *IndexDesc
	schema KeySchema
	items  []dynamo.Item
}

func (m *keyModel) hash(it dynamo.Item) uint32 {
	var parts []byte
	for _, a := range m.schema.Partition {
		parts = keyenc.AppendValue(parts, it.Get(a.Name))
	}
	return partitionHash(parts)
}

// compare orders by hash, key, and for an index by the table's key behind it.
func (m *keyModel) compare(a, b dynamo.Item) int {
	if c := cmp.Compare(m.hash(a), m.hash(b)); c != 0 {
		return c
	}
	for _, s := range []KeySchema{m.schema, m.desc.Key} {
		for attr := range s.Attrs {
			if c := compareValues(a.Get(attr.Name), b.Get(attr.Name)); c != 0 {
				return c
			}
		}
	}
	return 0
}

// matches reports whether an item lies in the range, ignoring the start key.
func (m *keyModel) matches(r Range, it dynamo.Item) bool {
	if r.Partition == nil {
		if r.Segments == 0 {
			return true
		}
		segment := new(big.Int).Mul(big.NewInt(int64(m.hash(it))), big.NewInt(int64(r.Segments)))
		// Segment s begins at ⌊s·2³²/n⌋: the last s whose beginning is not past the hash.
		s := int(segment.Rsh(segment, 32).Int64())
		if s+1 < r.Segments && uint64(s+1)<<32/uint64(r.Segments) <= uint64(m.hash(it)) {
			s++
		}
		return s == r.Segment
	}
	for i, a := range m.schema.Partition {
		if compareValues(it.Get(a.Name), r.Partition[i]) != 0 {
			return false
		}
	}
	for i, c := range r.Sort {
		if !satisfies(it.Get(m.schema.Sort[i].Name), c) {
			return false
		}
	}
	return true
}

// satisfies compares without the code under test.
func satisfies(v dynamo.Value, s dynamo.SortCondition) bool {
	if s.Op == dynamo.SortBegins {
		return bytes.HasPrefix(v.Bytes(), s.Low.Bytes())
	}
	c := compareValues(v, s.Low)
	switch s.Op {
	case dynamo.SortEQ:
		return c == 0
	case dynamo.SortLT:
		return c < 0
	case dynamo.SortLE:
		return c <= 0
	case dynamo.SortGT:
		return c > 0
	case dynamo.SortGE:
		return c >= 0
	default:
		return c >= 0 && compareValues(v, s.High) <= 0
	}
}

// want returns the items that a range must visit.
func (m *keyModel) want(r Range) (out []string) {
	sorted := slices.Clone(m.items)
	slices.SortFunc(sorted, m.compare)
	if r.Backward {
		slices.Reverse(sorted)
	}
	for _, it := range sorted {
		if r.After != nil {
			c := m.compare(it, r.After)
			if r.Backward && c >= 0 || !r.Backward && c <= 0 {
				continue
			}
		}
		if m.matches(r, it) {
			out = append(out, it.String())
		}
	}
	return out
}

// drawRange draws a range over the model: a Query with conditions on some or all sort attributes, a
// Scan, or a segment of one, in both directions, with or without a start key, which need not be in the range.
func (m *keyModel) drawRange(t *rapid.T) Range {
	r := Range{Index: m.index, Backward: rapid.Bool().Draw(t, "backward")}
	some := rapid.SampledFrom(m.items)
	if rapid.Bool().Draw(t, "start key") {
		r.After = some.Draw(t, "after")
	}
	switch rapid.SampledFrom([]string{"query", "query", "query", "scan", "segment"}).Draw(t, "read") {
	case "scan":
		return r
	case "segment":
		r.Segments = rapid.SampledFrom([]int{1, 2, 3, 7, 1000}).Draw(t, "segments")
		r.Segment = rapid.IntRange(0, r.Segments-1).Draw(t, "segment")
		return r
	}
	near := some.Draw(t, "near")
	for _, a := range m.schema.Partition {
		r.Partition = append(r.Partition, near.Get(a.Name))
	}
	conditions := rapid.IntRange(0, len(m.schema.Sort)).Draw(t, "conditions")
	for i, a := range m.schema.Sort[:conditions] {
		if i < conditions-1 {
			r.Sort = append(r.Sort, dynamo.SortCondition{Op: dynamo.SortEQ, Low: near.Get(a.Name)})
			continue
		}
		last := dynamo.SortBegins
		if a.Kind == dynamo.KindNumber {
			last = dynamo.SortBetween
		}
		op := dynamo.SortOp(rapid.IntRange(int(dynamo.SortEQ), int(last)).Draw(t, "op"))
		r.Sort = append(r.Sort, dynamo.SortCondition{Op: op, Low: drawKeyValue(t, a.Kind, "low"), High: drawKeyValue(t, a.Kind, "high")})
	}
	return r
}

// A range visits exactly the items of a naive model, in its order: all sort conditions, both
// directions, start keys, segments; tables and indexes; keys of one to eight parts of types S, N
// and B.
func TestRangeAgainstModel(t *testing.T) {
	d := openMemory(t)
	tables := 0
	rapid.Check(t, func(rt *rapid.T) {
		tables++
		index := IndexDesc{Name: "index", Global: true, Key: drawSchema(rt, "i"), Projection: Projection{Type: "ALL"}}
		tab := d.table(fmt.Sprint("t", tables), func(td *TableDesc) {
			td.Key, td.Indexes, td.TTL, td.Stream = drawSchema(rt, "k"), []IndexDesc{index}, TTLDesc{}, StreamSpec{}
		})
		desc := tab.Desc()
		base := keyModel{desc: desc, schema: desc.Key}
		byIndex := keyModel{desc: desc, index: desc.Index("index"), schema: index.Key}
		seen := map[Key]bool{}
		for range rapid.IntRange(1, 25).Draw(rt, "items") {
			var b dynamo.Builder
			for _, s := range []KeySchema{desc.Key, index.Key} {
				for a := range s.Attrs {
					b.Set(a.Name, drawKeyValue(rt, a.Kind, a.Name))
				}
			}
			it := b.Item()
			indexed := rapid.IntRange(0, 4).Draw(rt, "indexed") > 0
			if !indexed {
				it = it.With(fmt.Sprint("i", rapid.IntRange(1, index.Key.Len()).Draw(rt, "missing")), nil)
			}
			if k := keyOf(t, tab, it); !seen[k] {
				seen[k] = true
				d.put(tab, it)
				base.items = append(base.items, it)
				if indexed {
					byIndex.items = append(byIndex.items, it)
				}
			}
		}
		for i := range 20 {
			m := &base
			if i%2 == 1 && len(byIndex.items) > 0 {
				m = &byIndex
			}
			r := m.drawRange(rt)
			var got []string
			for _, it := range d.items(tab, r) {
				got = append(got, it.String())
			}
			if want := m.want(r); !slices.Equal(got, want) {
				rt.Fatalf("%+v gives\n%s\nwant\n%s", r, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			wantSegment(rt, m, r)
		}
	})
}

// wantSegment checks that SegmentOf returns for each item the segment whose Scan visits it.
func wantSegment(t *rapid.T, m *keyModel, r Range) {
	if r.Segments == 0 {
		return
	}
	for _, it := range m.items {
		segment, err := m.desc.SegmentOf(m.index, it, r.Segments)
		if err != nil {
			t.Fatal(err)
		}
		r.Segment, r.After = segment, nil
		if !m.matches(r, it) {
			t.Fatalf("SegmentOf puts %v with hash %#x into segment %d of %d", it, m.hash(it), segment, r.Segments)
		}
	}
}

// The segments of a Scan partition all hashes: each begins at the end of its predecessor, up to the
// greatest number of segments.
func TestSegmentsPartitionHashes(t *testing.T) {
	d := &TableDesc{ID: 1, Key: recordSchema}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1_000_000).Draw(t, "segments")
		s := rapid.IntRange(0, n-1).Draw(t, "segment")
		lower, upper, err := Range{Segment: s, Segments: n}.bounds(d)
		if err != nil {
			t.Fatal(err)
		}
		if s == 0 && hashOf(lower) != 0 {
			t.Fatalf("the first segment begins at %#x", hashOf(lower))
		}
		if s == n-1 {
			if _, end := tableSpan(spaceItems, 1); !bytes.Equal(upper, end) {
				t.Fatalf("the last segment ends at % x", upper)
			}
			return
		}
		next, _, err := Range{Segment: s + 1, Segments: n}.bounds(d)
		if err != nil || !bytes.Equal(upper, next) {
			t.Fatalf("segment %d ends at % x, the next begins at % x: %v", s, upper, next, err)
		}
		if size := hashOf(upper) - hashOf(lower); math.Abs(float64(size)-(1<<32)/float64(n)) > 1 {
			t.Fatalf("segment %d of %d holds %d hashes", s, n, size)
		}
	})
}

// TestSegmentBoundaries: each key lies in the segment that SegmentOf names, also where rounding
// decides.
func TestSegmentBoundaries(t *testing.T) {
	d := &TableDesc{ID: 1, Key: KeySchema{Partition: []KeyAttr{{"a", dynamo.KindString}}}}
	const n = 1_000_000
	onBoundary := 0
	for i := range 40_000 {
		it := item("a", fmt.Sprint(i))
		key, err := d.KeyOf(it)
		if err != nil {
			t.Fatal(err)
		}
		segment, err := d.SegmentOf(nil, it, n)
		if err != nil {
			t.Fatal(err)
		}
		r := Range{Segments: n}
		if key.hash() < r.segmentStart(segment) || segment+1 < n && key.hash() >= r.segmentStart(segment+1) {
			t.Fatalf("hash %#x is not in segment %d", key.hash(), segment)
		}
		if key.hash() == r.segmentStart(segment) {
			onBoundary++
		}
	}
	if onBoundary == 0 {
		t.Error("no key lies on a boundary: this shows nothing")
	}
}

// TestSortConditionAtTheKey: each sort condition includes or excludes the key that is its operand.
func TestSortConditionAtTheKey(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	for sk := 1; sk <= 5; sk++ {
		d.put(tab, item("pk", "a", "sk", sk))
	}
	for op, want := range map[dynamo.SortOp][]int{
		dynamo.SortAny: {1, 2, 3, 4, 5}, dynamo.SortEQ: {3}, dynamo.SortLT: {1, 2}, dynamo.SortLE: {1, 2, 3}, dynamo.SortGT: {4, 5}, dynamo.SortGE: {3, 4, 5}, dynamo.SortBetween: {3, 4},
	} {
		var got []int
		r := Range{Partition: []dynamo.Value{item("pk", "a").Get("pk")}, Sort: []dynamo.SortCondition{{Op: op, Low: number("3"), High: number("4")}}}
		for _, it := range d.items(tab, r) {
			ms, _ := it.Get("sk").Number().Millis()
			got = append(got, int(ms/1000))
		}
		if !slices.Equal(got, want) {
			t.Errorf("condition %d from 3 to 4 has %v, want %v", op, got, want)
		}
	}
}

// A start key that contradicts the schema is an error, not a position.
func TestStartKeyMustFit(t *testing.T) {
	d := &TableDesc{ID: 1, Key: recordSchema, Indexes: []IndexDesc{{ID: 1, Name: "index", Key: KeySchema{Partition: []KeyAttr{{"b", dynamo.KindNumber}}}}}}
	for name, r := range map[string]Range{
		"no key":           {After: item("z", 1)},
		"another type":     {After: item("a", 1)},
		"no index key":     {Index: d.Index("index"), After: item("a", "x")},
		"no table key":     {Index: d.Index("index"), After: item("b", 1)},
		"another key type": {Index: d.Index("index"), After: item("a", "x", "b", "y")},
	} {
		if _, _, err := r.bounds(d); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := d.SegmentOf(nil, item("z", 1), 4); err == nil {
		t.Error("a key without its attribute has a segment")
	}
}
