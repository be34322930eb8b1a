package engine

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Place is a part of a database in DynamoDB's words: items, stream records or descriptions.
type Place struct {
	Table string // empty: any table
	What  string // "items", "stream records", "descriptions of tables", "anything", the history
	// From and To bound the part, both inclusive, in the order of a Scan: keys as JSON, shard and
	// sequence number, or instants. Empty: no bound.
	From, To string
}

// String returns the place as text.
func (p Place) String() string {
	text := p.What
	if p.Table != "" {
		text = p.Table + ": " + text
	}
	if p.From != "" {
		text += " from " + p.From
	}
	if p.To != "" {
		text += " to " + p.To
	}
	return text
}

// places turns ranges of keys into places. It holds what the catalogue says, as far as it is
// readable.
type places struct {
	tables     []*TableDesc
	streams    []*StreamDesc
	backups    []*BackupDesc
	format     string
	ids        ids
	instant    Instant // the last commit known
	lastSeq    uint64
	clockKnown bool
}

// overlap reports whether keys in [from, to) lie between lower and upper, both inclusive; nil is no
// bound. lo is lower if that excludes some of them, and otherwise nil; hi likewise.
func overlap(lower, upper, from, to []byte) (lo, hi []byte, ok bool) {
	if upper != nil && bytes.Compare(upper, from) < 0 || bytes.Compare(lower, to) >= 0 {
		return nil, nil, false
	}
	if bytes.Compare(lower, from) > 0 {
		lo = lower
	}
	if upper != nil && bytes.Compare(upper, to) < 0 {
		hi = upper
	}
	return lo, hi, true
}

// overlapping returns the places that overlap a range of keys, both bounds inclusive. It omits
// index entries and deadline entries, which follow from the items.
func (p places) overlapping(lower, upper []byte) (out []Place) {
	if lower == nil && upper == nil {
		return []Place{{What: "anything"}}
	}
	if _, _, ok := overlap(lower, upper, []byte{spaceCatalogue}, []byte{spaceCatalogue + 1}); ok {
		out = append(out, Place{What: "descriptions of tables and streams"})
	}
	for _, d := range p.tables {
		from, to := tableSpan(spaceItems, d.ID)
		if lo, hi, ok := overlap(lower, upper, from, to); ok {
			show := func(key []byte) string {
				if len(key) <= tablePrefixLen {
					return ""
				}
				return d.shown(key[tablePrefixLen:])
			}
			out = append(out, Place{Table: d.Name, What: "items", From: show(lo), To: show(hi)})
		}
	}
	for _, d := range p.tables {
		from, to := tableSpan(spaceHistory, d.ID)
		if lo, hi, ok := overlap(lower, upper, from, to); ok && d.History.Days != 0 {
			show := func(key []byte) string {
				if len(key) != historyKeyLen {
					return ""
				}
				return readInstant(key[tablePrefixLen:]).Time().Format(time.RFC3339Nano)
			}
			out = append(out, Place{Table: d.Name, What: "the history for point-in-time recovery", From: show(lo), To: show(hi)})
		}
	}
	for _, d := range p.streams {
		from, to := streamSpan(d.ID)
		if lo, hi, ok := overlap(lower, upper, from, to); ok {
			show := func(key []byte) string {
				if len(key) != recordKeyLen {
					return ""
				}
				return fmt.Sprintf("shard %d, sequence number %d", binary.BigEndian.Uint32(key[5:]), seqOfKey(key))
			}
			out = append(out, Place{Table: d.Table, What: "stream records", From: show(lo), To: show(hi)})
		}
	}
	return out
}

// errEnough ends a walk over the keys early.
var errEnough = errors.New("enough has been read")

// add adds the contents of a catalogue key that concern the whole store, a table or a stream.
func (p *places) add(key, value []byte) error {
	switch catalogueKind(key) {
	case catFormat:
		p.format = string(value)
	case catClock:
		if len(value) != 2*instantLen {
			return fmt.Errorf("the clock key has %d bytes, not %d", len(value), 2*instantLen)
		}
		p.instant, p.lastSeq, p.clockKnown = readInstant(value), binary.BigEndian.Uint64(value[instantLen:]), true
	case catIDs:
		if err := json.Unmarshal(value, &p.ids); err != nil {
			return fmt.Errorf("the identifiers do not decode: %w", err)
		}
	case catTable:
		d := &TableDesc{}
		if err := json.Unmarshal(value, d); err != nil {
			return fmt.Errorf("the table description under %q does not decode: %w", key[2:], err)
		}
		p.tables = append(p.tables, d)
	case catStream:
		d := &StreamDesc{}
		if err := json.Unmarshal(value, d); err != nil {
			return fmt.Errorf("the stream description under %x does not decode: %w", key[2:], err)
		}
		p.streams = append(p.streams, d)
	case catBackup:
		b := &BackupDesc{}
		if err := json.Unmarshal(value, b); err != nil {
			return fmt.Errorf("the description of the backup %q does not decode: %w", key[2:], err)
		}
		p.backups = append(p.backups, b)
	}
	return nil
}

// sort orders by id.
func (p *places) sort() {
	slices.SortStableFunc(p.tables, func(a, b *TableDesc) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(p.streams, func(a, b *StreamDesc) int { return cmp.Compare(a.ID, b.ID) })
}

func (p *places) tableByID(id uint32) *TableDesc {
	return find(p.tables, func(d *TableDesc) int { return cmp.Compare(d.ID, id) })
}

func (p *places) streamByID(id uint32) *StreamDesc {
	return find(p.streams, func(d *StreamDesc) int { return cmp.Compare(d.ID, id) })
}

// find returns the description for which compare is 0 in an ascending list, or nil.
func find[T any](list []*T, compare func(*T) int) *T {
	i, ok := slices.BinarySearchFunc(list, 0, func(d *T, _ int) int { return compare(d) })
	if !ok {
		return nil
	}
	return list[i]
}

// orphaned reports whether an enabled stream has no table that writes to it.
func (p *places) orphaned(d *StreamDesc) bool {
	t := p.tableByID(d.TableID)
	if d.Feed() {
		return d.Disabled == 0 && (t == nil || t.Feed.ID != d.ID || t.Feed.Destination == "")
	}
	return d.Disabled == 0 && (t == nil || t.Stream.ID != d.ID || t.Stream.ViewType == "")
}

// damaged returns a file's fault as one that names the affected places.
func (p places) damaged(d kv.Damage) Fault {
	f := Fault{File: d.File, Offset: d.Offset, Fault: d.Fault}
	if d.Lower != nil || d.Upper != nil {
		f.Places = p.overlapping(d.Lower, d.Upper)
	}
	return f
}
