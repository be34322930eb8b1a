package guard

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sort"
	"time"

	"github.com/mayflydb/mayfly/guard/journal"
)

// PutBack reads the whole span before it writes, since the last image of a key wins and an outcome
// follows its image. It keeps a note of each entry and not the image. Keys beyond a limit are left
// for another pass over the files, so memory is bounded and a long span takes several passes.

// note is an entry of the journal in memory: 56 bytes.
type note struct {
	key    [16]byte // hash of the item's key
	id     uint64   // hash of the attempt's id
	at     int64    // ms
	offset int64
	file   int32 // index of the name
	length int32
	kind   noteKind
	item   bool // it has an item
}

type noteKind uint8

const (
	imageNote noteKind = iota
	removedNote
	keptNote
)

var noteKinds = map[journal.Kind]noteKind{journal.Image: imageNote, journal.Removed: removedNote, journal.Kept: keptNote}

const (
	notesMost = 2_000_000 // some 110 MB
	// outcomeSlack is the time between an image and its outcome, at most, with the steps of the
	// endpoint's clock.
	outcomeSlack = time.Hour
	damageLogged = 20 // damaged parts that are logged one by one
)

func newNote(r journal.Record, file int) note {
	key, id := sha256.Sum256(r.Key), sha256.Sum256([]byte(r.ID))
	return note{
		key: [16]byte(key[:16]), id: binary.BigEndian.Uint64(id[:8]), at: r.At.UnixMilli(), offset: r.Offset, file: int32(file), length: int32(r.Length),
		kind: noteKinds[r.Kind], item: len(r.Item) > 0,
	}
}

// part returns the pass, of so many, that restores the note's key.
func (n note) part(parts int) int {
	return int(binary.BigEndian.Uint64(n.key[:8]) % uint64(parts))
}

// read returns the notes of one of so many parts of the keys, and their number. The notes are nil if
// there are too many. first reports damage and counts other tables.
func (p *putBack) read(ctx context.Context, part, parts int, first bool) (notes []note, count int, err error) {
	for i, name := range p.files {
		if err := p.readFile(ctx, name, first, func(r journal.Record) {
			n := newNote(r, i)
			if n.part(parts) != part {
				return
			}
			if count++; count > p.o.notesMost && first {
				notes = nil
				return
			}
			notes = append(notes, n)
		}); err != nil {
			return nil, 0, err
		}
	}
	return notes, count, nil
}

// readFile calls visit with each record of the table in a file.
func (p *putBack) readFile(ctx context.Context, name string, first bool, visit func(journal.Record)) error {
	f, err := p.o.Journal.Open(ctx, name)
	if err != nil {
		return err
	}
	defer f.Close()
	for r, err := range f.Records() {
		d, damaged := errors.AsType[*journal.Damage](err)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case damaged && first:
			p.damage(d)
		case damaged:
		case err != nil:
			return err
		case r.Table == p.table.Label():
			visit(r)
		case first:
			p.others++
			p.other = r.Table
		}
	}
	return nil
}

// damage counts and logs a damaged part of a file.
func (p *putBack) damage(d *journal.Damage) {
	if d.Torn {
		p.torn++
		p.o.Logger.Info("the last entry of a file was cut off while it was written; no item was removed for it", "file", d.File, "offset", d.Offset)
		return
	}
	if p.damaged++; p.damaged <= damageLogged {
		p.o.Logger.Warn("a part of the journal is damaged and skipped", "file", d.File, "offset", d.Offset, "bytes", d.Length, "error", d.Err)
	}
	if p.damaged == damageLogged {
		p.o.Logger.Warn("more parts may be damaged; they are counted and not logged one by one")
	}
}

// pick is an image to put back.
type pick struct {
	note
	removed   int64 // when, in ms
	confirmed bool
	lost      bool // its image is damaged
}

// picks returns the image to put back for each key, in the order of the files, and the number of
// older removals of these keys.
func (p *putBack) picks(notes []note) (all []pick, older int64) {
	sort.Slice(notes, func(i, j int) bool {
		a, b := &notes[i], &notes[j]
		return cmp.Or(bytes.Compare(a.key[:], b.key[:]), cmp.Compare(a.id, b.id), cmp.Compare(a.kind, b.kind), cmp.Compare(a.file, b.file), cmp.Compare(a.offset, b.offset)) < 0
	})
	for len(notes) > 0 {
		n := 1
		for n < len(notes) && notes[n].key == notes[0].key {
			n++
		}
		last, removals := p.last(notes[:n])
		if removals > 0 {
			all = append(all, last)
			older += removals - 1
		}
		notes = notes[n:]
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := &all[i], &all[j]
		return a.file < b.file || a.file == b.file && a.offset < b.offset
	})
	return all, older
}

// last returns the last removal of a key in the span, and the number of its removals. The notes are
// of one key, in the order of attempts.
func (p *putBack) last(notes []note) (last pick, removals int64) {
	for len(notes) > 0 {
		n := 1
		for n < len(notes) && notes[n].id == notes[0].id {
			n++
		}
		one, removed := attempt(notes[:n])
		notes = notes[n:]
		if !removed || one.removed < p.o.From.UnixMilli() || one.removed >= p.o.To.UnixMilli() {
			continue
		}
		if removals++; removals == 1 || one.removed > last.removed || one.removed == last.removed && one.confirmed && !last.confirmed {
			last = one
		}
	}
	return last, removals
}

// attempt returns the outcome of an attempt, whose notes are in the order of their kinds. removed is
// false if it has certainly not removed the item.
func attempt(notes []note) (one pick, removed bool) {
	one = pick{note: notes[0], removed: notes[0].at, lost: !notes[0].item}
	for _, n := range notes {
		switch n.kind {
		case keptNote:
			return one, one.confirmed
		case removedNote:
			one.removed, one.confirmed = n.at, true
			if n.item {
				one.note, one.lost = n, false
			}
		}
	}
	return one, true
}
