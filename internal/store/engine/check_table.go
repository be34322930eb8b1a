package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// table checks one table: every entry that its items require exists, and no other.
func (c *checker) table(d *TableDesc) error {
	t := &tableCheck{checker: c, d: d, low: position{removal: minInstant}}
	if stored, known := c.stored[d.ID]; known {
		t.low.removal = stored
	}
	t.stored = t.low.removal
	if low, known := c.lows[d.ID]; known {
		t.low = low
	}
	if err := t.readBuilt(); err != nil {
		return err
	}
	lower, upper := tableSpan(spaceItems, d.ID)
	if err := c.each(lower, upper, t.item); err != nil {
		return err
	}
	if err := t.surplusEntries(spaceDeadlines, t.deadlines, t.deadlineEntry); err != nil {
		return err
	}
	if err := t.surplusEntries(spaceIndexes, t.entries, t.indexEntry); err != nil {
		return err
	}
	return t.history()
}

// history checks the table's history records. Nothing else in the store follows from them.
func (t *tableCheck) history() error {
	lower, upper := tableSpan(spaceHistory, t.d.ID)
	n := 0
	err := t.each(lower, upper, func(key, value []byte) error {
		if n++; t.d.History.Days != 0 {
			t.historyRecord(key, value)
		}
		return nil
	})
	if n > 0 && t.d.History.Days == 0 {
		t.fault("it has %d history records, and its point-in-time recovery is off", n)
	}
	return err
}

// historyRecord checks one history record.
func (t *tableCheck) historyRecord(key, value []byte) {
	if len(key) != historyKeyLen {
		t.fault("history key %x has %d bytes, not %d", key, len(key), historyKeyLen)
		return
	}
	at := readInstant(key[tablePrefixLen:])
	if at > t.instant {
		t.fault("history record %d is of %d, after the last commit of %d", seqOfKey(key), at, t.instant)
	}
	suffix, stored, err := splitHistory(value)
	if err == nil && len(stored) > 0 {
		_, _, _, err = t.d.readItem(append(appendTablePrefix(nil, spaceItems, t.d.ID), suffix...), stored)
	} else if err == nil {
		_, err = keyItem(t.d.Key, suffix)
	}
	if err != nil {
		t.fault("history record %d of %d: %v", seqOfKey(key), at, err)
	}
}

// surplusEntries calls check with every entry of a keyspace if there are more than the items
// require.
func (t *tableCheck) surplusEntries(space byte, required int, check func(key, value []byte) error) error {
	lower, upper := tableSpan(space, t.d.ID)
	n := 0
	if err := t.each(lower, upper, func(_, _ []byte) error { n++; return nil }); err != nil || n == required {
		return err
	}
	return t.each(lower, upper, check)
}

// tableCheck is the check of one table.
type tableCheck struct {
	*checker
	d      *TableDesc
	low    position
	stored Instant
	// of each index under construction: the last finished item key
	built              map[uint16][]byte
	deadlines, entries int // the entries that items require and that exist
}

func (t *tableCheck) fault(format string, args ...any) { t.checker.fault(t.d.Name, format, args...) }

// shown returns the key attributes in a key's suffix as JSON, or the bytes if they do not decode.
func (d *TableDesc) shown(suffix []byte) string {
	if item, err := keyItem(d.Key, suffix); err == nil {
		return string(dynamo.AppendItemJSON(nil, item))
	}
	return fmt.Sprintf("%x", suffix)
}

// readBuilt reads the progress of each index under construction.
func (t *tableCheck) readBuilt() error {
	t.built = map[uint16][]byte{}
	for i := range t.d.Indexes {
		if ix := &t.d.Indexes[i]; ix.Building {
			after, _, err := get(t.kv, buildKey(t.d.ID, ix.ID))
			if err != nil {
				return err
			}
			t.built[ix.ID] = after
		}
	}
	return nil
}

// readItem decodes a stored item and checks that it is stored under its key.
func (d *TableDesc) readItem(key, value []byte) (h header, item dynamo.Item, k Key, err error) {
	if h, item, err = splitStored(value); err != nil {
		return h, nil, k, err
	}
	if err = dynamo.CheckItem(item); err != nil {
		return h, nil, k, corrupt("%v", err)
	}
	if k, err = d.KeyOf(item); err == nil && !bytes.Equal(k.bytes(), key) {
		err = corrupt("its attributes have the key %s", d.shown(k.suffix()))
	}
	return h, item, k, err
}

// item checks one item, and reads the entries that it requires.
func (t *tableCheck) item(key, value []byte) error {
	d := t.d
	h, item, k, err := d.readItem(key, value)
	if err != nil {
		t.fault("item %s: %v", d.shown(key[tablePrefixLen:]), err)
		return nil
	}
	if fault := d.headerFault(h, item); fault != "" {
		t.fault("item %s: %s", d.shown(k.suffix()), fault)
	}
	indexed := false
	for i := range d.Indexes {
		ix := &d.Indexes[i]
		entry, ok := d.appendIndexKey(nil, ix, item, k)
		if !ok {
			continue
		}
		// the backfill has not reached this key
		mayMiss := ix.Building && bytes.Compare(k.suffix(), t.built[ix.ID]) > 0
		if !mayMiss {
			indexed = d.deadlineOf(h) != Never
		}
		got, found, err := get(t.kv, entry)
		switch want := d.indexValue(ix, item, h); {
		case err != nil:
			return err
		case found:
			t.entries++
			if !bytes.Equal(got, want) {
				t.fault("item %s: its entry in index %s is %x, the item asks for %x", d.shown(k.suffix()), ix.Name, got, want)
			}
		case !mayMiss:
			t.fault("item %s: its entry in index %s is missing", d.shown(k.suffix()), ix.Name)
		}
	}
	if h.removal == Never {
		return nil
	}
	// A deadline of an ended generation may count as none. Its entry goes when it is due, or with
	// the backfill.
	mayMiss := d.deadlineOf(h) == Never
	got, found, err := get(t.kv, appendDeadlineKey(nil, d.ID, h.removal, k.suffix()))
	want := deadlineEntry{generation: h.generation, size: h.size, indexed: indexed}.append(nil)
	switch {
	case err != nil:
		return err
	case found:
		t.deadlines++
		if !armsAs(got, want) {
			t.fault("item %s: its deadline entry at %d is %x, the item asks for %x", d.shown(k.suffix()), h.removal, got, want)
		}
	case !mayMiss:
		t.fault("item %s: its deadline entry at %d is missing", d.shown(k.suffix()), h.removal)
	}
	if p := (position{h.removal, k.enc[tablePrefixLen:]}); !mayMiss && (p.compare(t.low) < 0 || h.removal < t.stored) {
		t.fault("item %s: its deadline %d lies below the low-water mark %d", d.shown(k.suffix()), h.removal, t.stored)
	}
	return nil
}

// headerFault returns the contradiction between an item's header, the item and the table's TTL
// setting, or "" if there is none.
func (d *TableDesc) headerFault(h header, item dynamo.Item) string {
	switch {
	case h.size != item.Size():
		return fmt.Sprintf("its header says %d bytes, it has %d", h.size, item.Size())
	case h.generation > d.TTL.Generation || h.generation < d.TTL.Generation && !d.TTL.Backfill:
		return fmt.Sprintf("it is of TTL generation %d, the table is at %d", h.generation, d.TTL.Generation)
	case h.deadline == Never || h.generation != d.TTL.Generation:
		return ""
	case h.removal < h.deadline:
		return fmt.Sprintf("it is to be removed at %d, before its deadline %d", h.removal, h.deadline)
	}
	if ms, ok := millisOf(item.Get(d.TTL.Attribute)); !ok || ms != h.deadline {
		return fmt.Sprintf("its deadline %d is not the value of %q", h.deadline, d.TTL.Attribute)
	}
	return ""
}

// armsAs reports whether a deadline entry matches its item. The entry may claim index entries
// although their index has been removed: the reaper then reads an item needlessly. The opposite
// claim would leave index entries behind.
func armsAs(got, want []byte) bool {
	g, err := decodeDeadlineEntry(got)
	w, wantErr := decodeDeadlineEntry(want)
	w.indexed = w.indexed || g.indexed
	return err == nil && wantErr == nil && g == w
}

// deadlineEntry reports a deadline entry that no item requires.
func (t *tableCheck) deadlineEntry(key, _ []byte) error {
	d := t.d
	if len(key) < tablePrefixLen+instantLen+hashLen {
		t.fault("deadline entry %x: its key is cut short", key)
		return nil
	}
	removal, suffix := readInstant(key[tablePrefixLen:]), key[tablePrefixLen+instantLen:]
	item := append(appendTablePrefix(nil, spaceItems, d.ID), suffix...)
	value, found, err := get(t.kv, item)
	if err != nil {
		return err
	}
	if h, _, _ := splitStored(value); !found || h.removal != removal { // a bad item is reported already
		t.fault("the deadline entry at %d of %s belongs to no item", removal, d.shown(suffix))
	}
	return nil
}

// indexEntry reports an index entry that no item requires.
func (t *tableCheck) indexEntry(key, _ []byte) error {
	d := t.d
	if len(key) < tablePrefixLen+2+hashLen {
		t.fault("index entry %x: its key is cut short", key)
		return nil
	}
	id := binary.BigEndian.Uint16(key[tablePrefixLen:])
	ix := d.indexByID(id)
	if ix == nil {
		t.fault("index entry %x belongs to index id %d, which the table has not", key, id)
		return nil
	}
	suffix, err := d.suffixInEntry(ix, key)
	if err != nil {
		t.fault("index %s: entry %x: %v", ix.Name, key, err)
		return nil
	}
	stored := append(appendTablePrefix(nil, spaceItems, d.ID), suffix...)
	value, found, err := get(t.kv, stored)
	if err != nil {
		return err
	}
	if found {
		_, item, k, err := d.readItem(stored, value)
		if err != nil {
			return nil // already reported
		}
		if want, ok := d.appendIndexKey(nil, ix, item, k); ok && bytes.Equal(want, key) {
			return nil
		}
	}
	t.fault("index %s: the entry %x of %s belongs to no item", ix.Name, key, d.shown(suffix))
	return nil
}

// suffixInEntry returns the suffix of the item's key at the end of an index entry's key.
func (d *TableDesc) suffixInEntry(ix *IndexDesc, key []byte) ([]byte, error) {
	rest := key[tablePrefixLen+2:]
	end, err := partitionEnd(KeySchema{Partition: slices.Concat(ix.Key.Partition, ix.Key.Sort)}, rest)
	if err != nil {
		return nil, err
	}
	suffix := append(make([]byte, hashLen), rest[end:]...)
	if end, err = partitionEnd(d.Key, suffix); err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(suffix, partitionHash(suffix[hashLen:end]))
	return suffix, nil
}
