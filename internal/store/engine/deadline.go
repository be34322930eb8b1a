package engine

import (
	"bytes"
	"encoding/binary"
)

// deadlineEntry is the value of an entry in the due index. It holds the facts that a reap needs
// without the item.
type deadlineEntry struct {
	generation uint32 // the TTL generation that armed it
	size       int    // of the item, as DynamoDB counts it
	indexed    bool   // the item has index entries
}

const entryIndexed = 1 << 0

func (d deadlineEntry) append(dst []byte) []byte {
	flags := byte(0)
	if d.indexed {
		flags |= entryIndexed
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(d.generation))
	return binary.AppendUvarint(dst, uint64(d.size))
}

func decodeDeadlineEntry(b []byte) (deadlineEntry, error) {
	if len(b) == 0 || b[0]&^entryIndexed != 0 {
		return deadlineEntry{}, corrupt("deadline entry has no valid flags")
	}
	generation, n := binary.Uvarint(b[1:])
	if n <= 0 || generation > 1<<32-1 {
		return deadlineEntry{}, corrupt("deadline entry's generation does not decode")
	}
	size, m := binary.Uvarint(b[1+n:])
	if m <= 0 || size > 1<<30 {
		return deadlineEntry{}, corrupt("deadline entry's size does not decode")
	}
	return deadlineEntry{generation: uint32(generation), size: int(size), indexed: b[0]&entryIndexed != 0}, nil
}

// armed is a deadline entry as the reaper read it.
type armed struct {
	removal Instant
	key     Key
	raw     []byte // the entry's value, for comparison with the store under the lock
	entry   deadlineEntry
	ready   *prepared // nil: the removal was not prepared
}

// entryKey returns the storage key of an armed entry.
func (d *TableDesc) entryKey(a *armed) []byte {
	return appendDeadlineKey(nil, d.ID, a.removal, a.key.suffix())
}

// position returns the entry's position.
func (a *armed) position() position {
	return position{removal: a.removal, suffix: a.key.enc[tablePrefixLen:]}
}

// decodeArmed decodes a deadline entry.
func (d *TableDesc) decodeArmed(key, value []byte) (armed, error) {
	if len(key) < tablePrefixLen+instantLen+hashLen {
		return armed{}, corrupt("deadline key of %d bytes", len(key))
	}
	a := armed{removal: readInstant(key[tablePrefixLen:]), raw: bytes.Clone(value)}
	var err error
	if a.entry, err = decodeDeadlineEntry(value); err != nil {
		return armed{}, err
	}
	a.key, err = d.keyFromSuffix(key[tablePrefixLen+instantLen:])
	return a, err
}
