package engine

import (
	"bytes"
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Index returns a secondary index by name, or nil.
func (d *TableDesc) Index(name string) *IndexDesc {
	return d.index(func(ix IndexDesc) bool { return ix.Name == name })
}

// indexByID returns a secondary index by number, or nil.
func (d *TableDesc) indexByID(id uint16) *IndexDesc {
	return d.index(func(ix IndexDesc) bool { return ix.ID == id })
}

func (d *TableDesc) index(is func(ix IndexDesc) bool) *IndexDesc {
	if i := slices.IndexFunc(d.Indexes, is); i >= 0 {
		return &d.Indexes[i]
	}
	return nil
}

// CheckIndexKeys checks that each index can hold the key attributes that the item has. An item
// without an attribute is valid: it is then not in that index. selects selects the attributes to
// check; nil selects all. It returns a *KeyError with Index set.
func (d *TableDesc) CheckIndexKeys(item dynamo.Item, selects func(attribute string) bool) error {
	for i := range d.Indexes {
		ix := &d.Indexes[i]
		_, _, err := appendKey(nil, ix.Key, item)
		var bad *KeyError
		if errors.As(err, &bad) && bad.Problem != KeyMissing && (selects == nil || slices.ContainsFunc(ix.Key.involved(bad), selects)) {
			bad.Index = ix.Name
			return bad
		}
		// The encoding stops at the first missing attribute. The attributes behind it are checked
		// against the schema too.
		for a := range ix.Key.Attrs {
			v := item.Get(a.Name)
			if v == nil || selects != nil && !selects(a.Name) {
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

// involved returns the attributes that cause a problem: the one with a wrong value, or all that are too
// long together.
func (s KeySchema) involved(bad *KeyError) []string {
	attrs := s.Partition
	switch bad.Problem {
	case KeyPartitionTooLong:
	case KeySortTooLong:
		attrs = s.Sort
	default:
		return []string{bad.Attribute}
	}
	names := make([]string, len(attrs))
	for i, a := range attrs {
		names[i] = a.Name
	}
	return names
}

// project returns the entry of an indexed item: the index key, the table key and the projected
// attributes.
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

// appendIndexKey appends the storage key of an item's entry, or returns false if the item is not in
// the index.
func (d *TableDesc) appendIndexKey(dst []byte, ix *IndexDesc, item dynamo.Item, primary Key) ([]byte, bool) {
	out, _, err := appendKey(indexPrefix(dst, d.ID, ix.ID), ix.Key, item)
	if err != nil {
		return dst, false
	}
	return append(out, primary.suffix()[hashLen:]...), true
}

// indexChange updates every index for one change of an item. Either item may be nil. It appends the
// changes of entries to writes, unless that is nil, and reports whether the new item has entries.
func (d *TableDesc) indexChange(b *kv.Batch, key Key, old, new dynamo.Item, oldHeader, newHeader header, writes *[]IndexWrite) (entries bool) {
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
			if writes != nil {
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
		if writes != nil && (change.OldBytes > 0 || change.NewBytes > 0) {
			*writes = append(*writes, change)
		}
	}
	return entries
}

// indexValue returns the stored value of an item's entry.
func (d *TableDesc) indexValue(ix *IndexDesc, item dynamo.Item, h header) []byte {
	entry := d.project(ix, item)
	return storedEntry(entry, entry.Size(), h)
}

// storedEntry returns an entry's stored value: the item's header with the entry's own size, and the
// projected item.
func storedEntry(entry dynamo.Item, size int, h header) []byte {
	h.size = size
	return append(h.append(make([]byte, 0, len(entry)+32)), entry...)
}

// ChangesIndex reports whether a change of an item changes the index: its entry is added, removed,
// moved, or gets another content. Either item may be nil.
func (d *TableDesc) ChangesIndex(ix *IndexDesc, old, new dynamo.Item) bool {
	return !bytes.Equal(d.entry(ix, old), d.entry(ix, new))
}

// entry returns the entry of an item, or nil if the item is not in the index.
func (d *TableDesc) entry(ix *IndexDesc, item dynamo.Item) dynamo.Item {
	if item == nil {
		return nil
	}
	if _, _, err := appendKey(nil, ix.Key, item); err != nil {
		return nil
	}
	return d.project(ix, item)
}
