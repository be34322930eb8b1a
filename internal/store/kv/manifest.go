package kv

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
)

// The MANIFEST is a log of version edits. Pebble's own decoder is internal and treats a damaged
// record as the end of the log, so this one reads the same format (Pebble v2,
// internal/manifest/version_edit.go) and refuses unknown tags. kv pins the format version, so an
// unknown tag is damage. So is a tag that Pebble writes at no format version up to the pinned one,
// such as those of values in files of their own.
const (
	tagComparer       = 1
	tagLogNumber      = 2
	tagNextFileNumber = 3
	tagLastSequence   = 4
	tagDeletedTable   = 6
	tagPrevLogNumber  = 9
	tagNewTable2      = 100
	tagNewTable4      = 103
	tagNewTable5      = 104 // with range keys
	tagCreatedBacking = 105
	tagRemovedBacking = 106

	fieldEnd      = 1
	fieldVirtual  = 66
	fieldMustKnow = 1 << 6 // fields below it hold bytes that may be skipped

	hasPointKeys       = 1 // bits of the bounds marker of tagNewTable5
	smallestIsPoint    = 2
	largestIsPoint     = 4
	manifestLevels     = 7
	internalKeyTrailer = 8 // sequence number and kind behind each user key
)

// manifestTable is a live table, part of the current version of the store.
type manifestTable struct {
	Number uint64
	File   string // base name of the file that holds it
	Level  int
	Size   int64 // of the table; of the file too unless Virtual
	// Lower and Upper are the least and the greatest user key, both inclusive (Upper may be the
	// exclusive end of a range deletion).
	Lower, Upper []byte
	Virtual      bool // it is a part of a file that other tables share
	backing      uint64
}

// tableAt names a table in a level.
type tableAt struct {
	level  int
	number uint64
}

// edit is one decoded record of the MANIFEST. A zero number means that the record omits it.
type edit struct {
	comparer                  string
	minLog, nextFile, lastSeq uint64
	deleted                   []tableAt
	added                     []manifestTable
	backings                  map[uint64]int64 // size of each new shared file
	unbacked                  []uint64
}

var errShortEdit = errors.New("record ends within a field")

// editReader reads the fields of a record. The first error stays.
type editReader struct {
	rest []byte
	err  error
}

func (r *editReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *editReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.short()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *editReader) short() {
	r.err = cmp.Or(r.err, errShortEdit)
	r.rest = nil
}

func (r *editReader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.short()
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *editReader) bytes() []byte { return r.take(r.uvarint()) }

func (r *editReader) size() int64 {
	v := r.uvarint()
	if v > 1<<62 {
		r.fail("file size %d", v)
		return 0
	}
	return int64(v)
}

func (r *editReader) level() int {
	v := r.uvarint()
	if v >= manifestLevels {
		r.fail("level %d", v)
		return 0
	}
	return int(v)
}

// userKey reads an internal key and returns a copy without its trailer.
func (r *editReader) userKey() []byte {
	k := r.bytes()
	if len(k) < internalKeyTrailer {
		r.fail("key of %d bytes", len(k))
		return nil
	}
	return slices.Clone(k[:len(k)-internalKeyTrailer])
}

// decodeEdit decodes a record of the MANIFEST.
func decodeEdit(record []byte) (edit, error) {
	r := &editReader{rest: record}
	var e edit
	for len(r.rest) > 0 && r.err == nil {
		switch tag := r.uvarint(); tag {
		case tagComparer:
			e.comparer = string(r.bytes())
		case tagLogNumber:
			e.minLog = r.uvarint()
		case tagNextFileNumber:
			e.nextFile = r.uvarint()
		case tagLastSequence:
			e.lastSeq = r.uvarint()
		case tagPrevLogNumber:
			r.uvarint()
		case tagDeletedTable:
			e.deleted = append(e.deleted, tableAt{r.level(), r.uvarint()})
		case tagNewTable2, tagNewTable4, tagNewTable5:
			e.added = append(e.added, r.table(tag))
		case tagCreatedBacking:
			if e.backings == nil {
				e.backings = map[uint64]int64{}
			}
			number := r.uvarint()
			e.backings[number] = r.size()
		case tagRemovedBacking:
			e.unbacked = append(e.unbacked, r.uvarint())
		default:
			r.fail("unknown tag %d", tag)
		}
	}
	return e, r.err
}

// table reads a new table.
func (r *editReader) table(tag uint64) manifestTable {
	t := manifestTable{Level: r.level(), Number: r.uvarint(), Size: r.size()}
	if tag == tagNewTable5 {
		r.boundsOfBoth(&t)
	} else {
		t.Lower, t.Upper = r.userKey(), r.userKey()
	}
	r.uvarint() // the least sequence number
	r.uvarint() // the greatest one
	if tag != tagNewTable2 {
		r.fields(&t)
	}
	t.File = tableName(t.Number)
	if t.Virtual {
		t.File = tableName(t.backing)
	}
	return t
}

// boundsOfBoth reads the bounds of a table that may hold point keys and holds range keys.
func (r *editReader) boundsOfBoth(t *manifestTable) {
	var marker byte
	if b := r.take(1); b != nil {
		marker = b[0]
	}
	var pointLower, pointUpper []byte
	if marker&hasPointKeys != 0 {
		pointLower, pointUpper = r.userKey(), r.userKey()
	} else if marker&(smallestIsPoint|largestIsPoint) != 0 {
		r.fail("bounds marker %#x", marker)
	}
	t.Lower, t.Upper = r.userKey(), r.userKey()
	if marker&smallestIsPoint != 0 {
		t.Lower = pointLower
	}
	if marker&largestIsPoint != 0 {
		t.Upper = pointUpper
	}
}

// fields reads the further fields of a table, up to their end mark.
func (r *editReader) fields(t *manifestTable) {
	for r.err == nil {
		switch field := r.uvarint(); field {
		case fieldEnd:
			return
		case fieldVirtual:
			t.Virtual = true
			t.backing = r.uvarint()
		default:
			if field&fieldMustKnow != 0 || field == 0 {
				r.fail("unknown field %d of table %d", field, t.Number)
				return
			}
			r.bytes()
		}
	}
}

// version is the sum of the edits of a MANIFEST.
type version struct {
	minLog, nextFile, lastSeq uint64
	tables                    map[tableAt]manifestTable
	backings                  map[uint64]int64
}

func newVersion() *version {
	return &version{tables: map[tableAt]manifestTable{}, backings: map[uint64]int64{}}
}

// apply adds an edit. It returns an error if the edit contradicts the earlier ones.
func (v *version) apply(e edit, comparer string) error {
	if e.comparer != "" && e.comparer != comparer {
		return fmt.Errorf("keys are ordered by %q instead of %q", e.comparer, comparer)
	}
	for _, at := range e.deleted {
		if _, ok := v.tables[at]; !ok {
			return fmt.Errorf("removes table %d, which is not in level %d", at.number, at.level)
		}
		delete(v.tables, at)
	}
	for _, t := range e.added {
		at := tableAt{t.Level, t.Number}
		if _, ok := v.tables[at]; ok {
			return fmt.Errorf("adds table %d to level %d twice", at.number, at.level)
		}
		v.tables[at] = t
	}
	maps.Copy(v.backings, e.backings)
	for _, number := range e.unbacked {
		delete(v.backings, number)
	}
	v.minLog = cmp.Or(e.minLog, v.minLog)
	v.nextFile = cmp.Or(e.nextFile, v.nextFile)
	v.lastSeq = cmp.Or(e.lastSeq, v.lastSeq)
	return nil
}

// sorted returns the live tables by level and number.
func (v *version) sorted() []manifestTable {
	all := slices.Collect(maps.Values(v.tables))
	sort.Slice(all, func(i, j int) bool {
		a, b := &all[i], &all[j]
		return a.Level < b.Level || a.Level == b.Level && a.Number < b.Number
	})
	return all
}
