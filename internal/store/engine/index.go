package engine

import (
	"bytes"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Index finds a secondary index by name; nil when there is none.
func (d *TableDesc) Index(name string) *IndexDesc {
	for i := range d.Indexes {
		if d.Indexes[i].Name == name {
			return &d.Indexes[i]
		}
	}
	return nil
}

// CheckIndexKeys says whether each index key attribute that the item has is one that its index can hold. An absent one is fine:
// the item is then not in that index. Only attributes of which of says so are looked at; nil: all. Its error is a *KeyError with Index set.
func (d *TableDesc) CheckIndexKeys(item dynamo.Item, of func(attribute string) bool) error {
	for i := range d.Indexes {
		ix := &d.Indexes[i]
		_, _, err := appendKey(nil, ix.Key, item)
		var bad *KeyError
		if errors.As(err, &bad) && bad.Problem != KeyMissing && (of == nil || of(bad.Attribute)) {
			bad.Index = ix.Name
			return bad
		}
		// The encoding stops at the first missing attribute; those behind it are held to the schema too.
		for a := range ix.Key.Attrs {
			v := item.Get(a.Name)
			if v == nil || of != nil && !of(a.Name) {
				continue
			}
			if err := checkKeyValue(a, v); errors.As(err, &bad) {
				bad.Index = ix.Name
				return bad
			}
		}
	}
	return nil
}

// project gives an index's entry for an item that is in it: the index key, the table key and what is projected.
func (d *TableDesc) project(ix *IndexDesc, item dynamo.Item) dynamo.Item {
	if ix.Projection.Type == "ALL" {
		return item
	}
	var b dynamo.Builder
	for a := range ix.Key.Attrs {
		b.Set(a.Name, item.Get(a.Name))
	}
	for a := range d.Key.Attrs {
		b.Set(a.Name, item.Get(a.Name))
	}
	for _, name := range ix.Projection.NonKey {
		if v := item.Get(name); v != nil {
			b.Set(name, v)
		}
	}
	return b.Item()
}

// appendIndexKey appends the storage key of an item's entry; false: the item is not in the index.
func (d *TableDesc) appendIndexKey(dst []byte, ix *IndexDesc, item dynamo.Item, primary Key) ([]byte, bool) {
	out, _, err := appendKey(indexPrefix(dst, d.ID, ix.ID), ix.Key, item)
	if err != nil {
		return dst, false
	}
	return append(out, primary.suffix()[hashLen:]...), true
}

// indexChange keeps every index in step with one change of an item. Either item may be nil. told gets what becomes of entries; nil: nobody asks.
func (d *TableDesc) indexChange(b *kv.Batch, key Key, old, new dynamo.Item, oldHeader, newHeader header, told *[]IndexWrite) (entries bool) {
	for i := range d.Indexes {
		ix := &d.Indexes[i]
		var oldKey, newKey []byte
		var inOld, inNew bool
		if old != nil {
			oldKey, inOld = d.appendIndexKey(nil, ix, old, key)
		}
		if new != nil {
			newKey, inNew = d.appendIndexKey(nil, ix, new, key)
		}
		same := inOld && inNew && bytes.Equal(oldKey, newKey)
		change := IndexWrite{Index: ix, Moved: inOld && inNew && !same}
		if inOld && !same {
			b.Delete(oldKey)
			if told != nil {
				change.OldBytes = d.project(ix, old).Size()
			}
		}
		if inNew {
			entries = true
			entry := d.project(ix, new)
			change.NewBytes = entry.Size()
			value := storedEntry(entry, change.NewBytes, newHeader)
			if same {
				oldEntry := d.project(ix, old)
				change.OldBytes = oldEntry.Size()
				if bytes.Equal(value, storedEntry(oldEntry, change.OldBytes, oldHeader)) {
					continue
				}
				if bytes.Equal(entry, oldEntry) { // only the header differs
					change = IndexWrite{}
				}
			}
			b.Set(newKey, value)
		}
		if told != nil && (change.OldBytes > 0 || change.NewBytes > 0) {
			*told = append(*told, change)
		}
	}
	return entries
}

// indexValue is what is stored as an item's entry.
func (d *TableDesc) indexValue(ix *IndexDesc, item dynamo.Item, h header) []byte {
	entry := d.project(ix, item)
	return storedEntry(entry, entry.Size(), h)
}

// storedEntry is an entry's stored value: the item's header with the entry's own size, and the projected item.
func storedEntry(entry dynamo.Item, size int, h header) []byte {
	h.size = size
	return append(h.append(make([]byte, 0, len(entry)+32)), entry...)
}
