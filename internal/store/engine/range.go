package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/keyenc"
)

// Range names a part of a table or of an index, in key order.
type Range struct {
	Index *IndexDesc // of a description from before the read began; nil: the table
	// the partition key's values, in the schema's order; nil: all partitions
	Partition []dynamo.Value
	// with Partition only: conditions on the first attributes of the sort key, in the schema's order;
	// all but the last are SortEQ
	Sort []dynamo.SortCondition
	// with Segments > 0 and without Partition: the part of the hashes to read
	Segment  int
	Segments int
	Backward bool
	After    dynamo.Item // start behind this entry (before it, if Backward); nil: at the beginning
}

// errStartKey reports an exclusive start key that contradicts the schema. The service checks start
// keys before, so clients never see it.
var errStartKey = errors.New("the exclusive start key does not fit the schema")

// bounds returns the storage keys of the range's ends.
func (r Range) bounds(d *TableDesc) (lower, upper []byte, err error) {
	prefix, schema := appendTablePrefix(nil, spaceItems, d.ID), d.Key
	if r.Index != nil {
		prefix, schema = indexPrefix(nil, d.ID, r.Index.ID), r.Index.Key
	}
	switch {
	case r.Partition != nil:
		lower, upper = r.partitionBounds(prefix, schema)
	case r.Segments > 0:
		lower = appendHash(prefix, r.segmentStart(r.Segment))
		upper = keyenc.PrefixSuccessor(prefix)
		if r.Segment+1 < r.Segments {
			upper = appendHash(prefix, r.segmentStart(r.Segment+1))
		}
	default:
		lower, upper = prefix, keyenc.PrefixSuccessor(prefix)
	}
	if r.After == nil {
		return lower, upper, nil
	}
	after, err := r.startKey(d)
	if err != nil {
		return nil, nil, err
	}
	if r.Backward {
		if bytes.Compare(after, upper) < 0 {
			upper = after
		}
	} else if after = append(after, 0); bytes.Compare(after, lower) > 0 {
		lower = after
	}
	if bytes.Compare(lower, upper) > 0 {
		lower = upper
	}
	return lower, upper, nil
}

func appendHash(prefix []byte, hash uint32) []byte {
	return binary.BigEndian.AppendUint32(bytes.Clone(prefix), hash)
}

// segmentStart returns the first hash of a segment.
func (r Range) segmentStart(segment int) uint32 {
	return uint32(uint64(segment) * (math.MaxUint32 + 1) / uint64(r.Segments))
}

// SegmentOf returns the segment that holds a key. The service uses it to check that an exclusive
// start key lies in the requested segment.
func (d *TableDesc) SegmentOf(ix *IndexDesc, start dynamo.Item, segments int) (int, error) {
	schema := d.Key
	if ix != nil {
		schema = ix.Key
	}
	buf, _, err := appendKey(nil, schema, start)
	if err != nil {
		return 0, errStartKey
	}
	hash := uint64(binary.BigEndian.Uint32(buf))
	segment := int(hash * uint64(segments) >> 32)
	// Rounding may put a hash at a boundary one segment off.
	for r := (Range{Segments: segments}); segment+1 < segments && hash >= uint64(r.segmentStart(segment+1)); {
		segment++
	}
	return segment, nil
}

// partitionBounds bounds one item collection, narrowed by the conditions on the sort key.
func (r Range) partitionBounds(prefix []byte, schema KeySchema) (lower, upper []byte) {
	base := appendHash(prefix, 0)
	for _, v := range r.Partition {
		base = keyenc.AppendValue(base, v)
	}
	binary.BigEndian.PutUint32(base[len(prefix):], partitionHash(base[len(prefix)+hashLen:]))
	last := dynamo.SortCondition{}
	if n := len(r.Sort); n > 0 {
		for _, c := range r.Sort[:n-1] {
			base = keyenc.AppendValue(base, c.Low)
		}
		last = r.Sort[n-1]
	}
	end := keyenc.PrefixSuccessor(base)
	at := func(v dynamo.Value) []byte { return keyenc.AppendValue(bytes.Clone(base), v) }
	past := func(v dynamo.Value) []byte { return keyenc.PrefixSuccessor(at(v)) }
	switch last.Op {
	case dynamo.SortEQ:
		return at(last.Low), past(last.Low)
	case dynamo.SortLT:
		return base, at(last.Low)
	case dynamo.SortLE:
		return base, past(last.Low)
	case dynamo.SortGT:
		return past(last.Low), end
	case dynamo.SortGE:
		return at(last.Low), end
	case dynamo.SortBetween:
		return at(last.Low), past(last.High)
	case dynamo.SortBegins:
		begin := keyenc.AppendBytesPrefix(bytes.Clone(base), last.Low.Bytes())
		return begin, keyenc.PrefixSuccessor(begin)
	default:
		return base, end
	}
}

// startKey returns the storage key of the entry before the range's first.
func (r Range) startKey(d *TableDesc) ([]byte, error) {
	key, err := d.KeyOf(r.After)
	if err != nil {
		return nil, errStartKey
	}
	if r.Index == nil {
		return bytes.Clone(key.bytes()), nil
	}
	out, ok := d.appendIndexKey(nil, r.Index, r.After, key)
	if !ok {
		return nil, errStartKey
	}
	return out, nil
}

// hashOf returns the hash in a table's storage key or a bound of one.
func hashOf(key []byte) uint32 { return binary.BigEndian.Uint32(key[tablePrefixLen:]) }
