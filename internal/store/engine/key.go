package engine

import (
	"encoding/binary"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/keyenc"
)

// The greatest key sizes, in bytes of the values (docs/spec/limits-and-capacity.md §1).
const (
	partitionKeyBytesMax = 2048
	sortKeyBytesMax      = 1024
)

// Key is an item's encoded primary key. Two keys of one table are equal if they compare equal with
// ==.
type Key struct {
	enc       string // the item's complete storage key: table prefix, hash, partition key, sort key
	partition int    // the end of the partition key in enc
}

// bytes returns the storage key without copying it; the caller must not modify it.
func (k Key) bytes() []byte { return unsafe.Slice(unsafe.StringData(k.enc), len(k.enc)) }

// suffix returns the part after the table's prefix: hash, partition key, sort key. Deadline entries
// end in it.
func (k Key) suffix() []byte { return k.bytes()[tablePrefixLen:] }

// hash returns the hash of the partition key.
func (k Key) hash() uint32 { return binary.BigEndian.Uint32(k.suffix()) }

// Len returns the number of key attributes.
func (s KeySchema) Len() int { return len(s.Partition) + len(s.Sort) }

// Attrs calls yield for each key attribute, first those of the partition key.
func (s KeySchema) Attrs(yield func(KeyAttr) bool) {
	for _, a := range s.Partition {
		if !yield(a) {
			return
		}
	}
	for _, a := range s.Sort {
		if !yield(a) {
			return
		}
	}
}

// Has reports whether the attribute is part of the key.
func (s KeySchema) Has(name string) bool {
	for a := range s.Attrs {
		if a.Name == name {
			return true
		}
	}
	return false
}

// KeyOf returns the encoded primary key of item, which may be a whole item or only a key. Its error
// is a *KeyError.
func (d *TableDesc) KeyOf(item dynamo.Item) (Key, error) {
	var scratch [256]byte
	buf := appendTablePrefix(scratch[:0], spaceItems, d.ID)
	buf, partition, err := appendKey(buf, d.Key, item)
	if err != nil {
		return Key{}, err
	}
	return Key{enc: string(buf), partition: partition}, nil
}

// keyFromSuffix returns the Key for a suffix read from a deadline entry or an item key.
func (d *TableDesc) keyFromSuffix(suffix []byte) (Key, error) {
	partition, err := partitionEnd(d.Key, suffix)
	if err != nil {
		return Key{}, err
	}
	buf := make([]byte, 0, tablePrefixLen+len(suffix))
	buf = appendTablePrefix(buf, spaceItems, d.ID)
	buf = append(buf, suffix...)
	return Key{enc: unsafe.String(unsafe.SliceData(buf), len(buf)), partition: tablePrefixLen + partition}, nil
}

// partitionEnd returns the end of the partition key in a suffix.
func partitionEnd(schema KeySchema, suffix []byte) (int, error) {
	if len(suffix) < hashLen {
		return 0, corrupt("key of %d bytes", len(suffix))
	}
	rest := suffix[hashLen:]
	for _, a := range schema.Partition {
		var err error
		if rest, err = keyenc.SkipPart(a.Kind, rest); err != nil {
			return 0, corrupt("partition key: %v", err)
		}
	}
	return len(suffix) - len(rest), nil
}

// appendKey appends hash, partition key and sort key of item under schema, and returns the end of
// the partition key.
func appendKey(dst []byte, schema KeySchema, item dynamo.Item) (out []byte, partition int, err error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if dst, err = appendAttrs(dst, schema.Partition, item, partitionKeyBytesMax, KeyPartitionTooLong); err != nil {
		return nil, 0, err
	}
	binary.BigEndian.PutUint32(dst[start:], partitionHash(dst[start+hashLen:]))
	partition = len(dst)
	if dst, err = appendAttrs(dst, schema.Sort, item, sortKeyBytesMax, KeySortTooLong); err != nil {
		return nil, 0, err
	}
	return dst, partition, nil
}

// appendAttrs appends the values of key attributes, which have bytesMax bytes at the most.
func appendAttrs(dst []byte, attrs []KeyAttr, item dynamo.Item, bytesMax int, tooLong KeyProblem) ([]byte, error) {
	size := 0
	for _, a := range attrs {
		v := item.Get(a.Name)
		if err := checkKeyValue(a, v); err != nil {
			return nil, err
		}
		size += v.Size()
		dst = keyenc.AppendValue(dst, v)
	}
	if size > bytesMax {
		return nil, &KeyError{Attribute: attrs[0].Name, Problem: tooLong}
	}
	return dst, nil
}

// checkKeyValue returns an error if v must not be the value of key attribute a.
func checkKeyValue(a KeyAttr, v dynamo.Value) error {
	switch {
	case v == nil:
		return &KeyError{Attribute: a.Name, Problem: KeyMissing, Want: a.Kind}
	case v.Kind() != a.Kind:
		return &KeyError{Attribute: a.Name, Problem: KeyWrongType, Want: a.Kind, Got: v.Kind()}
	case a.Kind != dynamo.KindNumber && len(v.Bytes()) == 0:
		return &KeyError{Attribute: a.Name, Problem: KeyEmpty, Want: a.Kind, Got: v.Kind()}
	}
	return nil
}

// partitionHash returns the hash that spreads partition keys over segments, shards and stripes: the
// upper half of XXH64 of the encoded partition key. The storage format depends on it.
func partitionHash(encoded []byte) uint32 { return uint32(xxhash.Sum64(encoded) >> 32) }

// keyItem returns an item of the key attributes in a suffix.
func keyItem(schema KeySchema, suffix []byte) (dynamo.Item, error) {
	if len(suffix) < hashLen {
		return nil, corrupt("key of %d bytes", len(suffix))
	}
	rest := suffix[hashLen:]
	var b dynamo.Builder
	for a := range schema.Attrs {
		v, left, err := keyenc.CutValue(nil, a.Kind, rest)
		if err != nil {
			return nil, corrupt("key attribute %s: %v", a.Name, err)
		}
		b.Set(a.Name, v)
		rest = left
	}
	return b.Item(), nil
}

// pick returns a copy of an item's key attributes under schema.
func (s KeySchema) pick(item dynamo.Item) dynamo.Item {
	var b dynamo.Builder
	for a := range s.Attrs {
		if v := item.Get(a.Name); v != nil {
			b.Set(a.Name, v)
		}
	}
	return b.Item()
}
