package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Salvaged counts the copied parts of a table.
type Salvaged struct {
	Table          string
	Items, Records int64
}

// salvageBatch is the size of a batch of the new store, in bytes.
const salvageBatch = 1 << 20

// Salvage copies every readable part of a directory into a new one, which must be missing or empty.
// The source stays unchanged. Items and stream records are copied; index entries, deadline entries
// and low-water marks are derived from the items. Salvage calls lost with each part that is missing
// or may be old, and with each backup and history: those are not copied. The clock of the new
// database starts at now or later.
func Salvage(ctx context.Context, fs kv.FS, dir, to string, now Instant, progress func(done, total int64), lost func(Fault)) (tables []Salvaged, err error) {
	files, err := kv.OpenStopped(fs, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	store, err := kv.Create(fs, to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	total, done := files.Bytes(), int64(0)
	s := &salvage{
		store: store, batch: store.NewBatch(), lost: lost, wall: now, places: places{instant: minInstant},
		marks: map[uint32]Instant{}, copied: map[uint32]*Salvaged{}, restoring: map[uint32]bool{}, unknown: map[string]int64{}, progressKeys: map[string][]byte{}, seen: map[string]bool{},
	}
	defer func() { err = errors.Join(err, s.batch.Close()) }()
	err = files.Each(ctx, func(n int64) {
		done += n
		if progress != nil {
			progress(min(done, total), total)
		}
	}, s.damage, s.key)
	if err == nil {
		err = s.writeCatalogue()
	}
	if err != nil {
		return nil, err
	}
	for _, d := range s.tables {
		tables = append(tables, *s.copied[d.ID])
	}
	return tables, nil
}

// salvage is one run. The source yields its keys in order: the catalogue, then items, then stream
// records.
type salvage struct {
	places
	store *kv.DB
	batch *kv.Batch
	lost  func(Fault)

	faults       []kv.Damage // reported at the end, when all tables are known
	more         int         // the number of faults beyond damageMax, which are dropped
	wall         Instant
	began        bool // the catalogue has been read
	progressKeys map[string][]byte
	marks        map[uint32]Instant // by table: the earliest removal
	copied       map[uint32]*Salvaged
	restoring    map[uint32]bool // tables whose restore has not ended
	// items and records without a description, by the text that names them
	unknown map[string]int64
	seen    map[string]bool // faults that have been reported once
}

func (s *salvage) fault(table, format string, args ...any) {
	s.lost(Fault{Table: table, Fault: fmt.Sprintf(format, args...)})
}

// damage records a fault of a file; neighbours with the same bounds count as one.
func (s *salvage) damage(d kv.Damage) {
	name := fmt.Sprintf("%s %x %x", d.File, d.Lower, d.Upper)
	if s.seen[name] {
		return
	}
	if len(s.faults) == damageMax {
		s.more++
		return
	}
	s.seen[name] = true
	s.faults = append(s.faults, d)
}

// key handles one key of the source.
func (s *salvage) key(key, value []byte) error {
	if len(key) > 0 && key[0] == spaceCatalogue {
		return s.catalogueKey(key, value)
	}
	if !s.began {
		if err := s.begin(); err != nil {
			return err
		}
	}
	if len(key) <= tablePrefixLen {
		return nil
	}
	id := binary.BigEndian.Uint32(key[1:])
	switch key[0] {
	case spaceItems:
		s.ids.Table = max(s.ids.Table, id)
		return s.item(id, key, value)
	case spaceIndexes, spaceDeadlines:
		s.ids.Table = max(s.ids.Table, id)
		return nil
	case spaceStreams:
		s.ids.Stream = max(s.ids.Stream, id)
		return s.record(id, key, value)
	}
	return nil
}

// catalogueKey handles one key of the catalogue.
func (s *salvage) catalogueKey(key, value []byte) error {
	switch catalogueKind(key) {
	case catFormat, catClock, catIDs:
		_ = s.add(key, value) // writeCatalogue works without them
	case catTable, catStream, catBackup:
		if err := s.add(key, value); err != nil {
			s.fault("", "%v", err)
		}
	case catJob:
		if j, err := readJob(key, value); err != nil {
			s.fault("", "%v", err)
		} else if j.Running {
			s.fault("", "the %s %s in progress is not copied", strings.ToLower(string(j.Kind)), j.ID)
		}
	case catBackfill, catBuild:
		s.progressKeys[string(key)] = append([]byte(nil), value...)
	}
	return nil
}

// begin runs after the last key of the catalogue.
func (s *salvage) begin() error {
	s.began = true
	if s.format != formatVersion && s.format != "" && !isFormatBefore(s.format) {
		return fmt.Errorf("%w: the directory has format %q, this program writes %q; salvage it with the version of mayfly that wrote it", ErrFormat, s.format, formatVersion)
	}
	s.sort()
	for i := len(s.tables) - 1; i > 0; i-- {
		if s.tables[i].ID == s.tables[i-1].ID {
			s.fault(s.tables[i].Name, "its description has the id of table %s; the table is not copied", s.tables[i-1].Name)
			s.tables = append(s.tables[:i], s.tables[i+1:]...)
		}
	}
	for _, b := range s.backups {
		if b.Kind == backupRestore || b.Kind == backupExport {
			continue // of a table that is not copied, and of an export in progress, which is a fault itself
		}
		s.fault(b.Table.Name, "its backup %s (%s) is not copied", b.ID, b.Name)
	}
	s.tables = slices.DeleteFunc(s.tables, func(d *TableDesc) bool {
		if d.Restore.Running {
			s.fault(d.Name, "it is not copied: its %s has not ended", d.Restore.source())
			s.ids.Table = max(s.ids.Table, d.ID)
			s.restoring[d.ID] = true
		}
		return d.Restore.Running
	})
	for _, d := range s.tables {
		s.ids.Table = max(s.ids.Table, d.ID)
		s.ids.Stream = max(s.ids.Stream, d.Stream.ID, d.Feed.ID)
		s.ids.Revision = max(s.ids.Revision, d.API.Policy.Revision)
		s.instant = max(s.instant, d.Created, d.TTL.Since)
		s.marks[d.ID] = Never
		s.copied[d.ID] = &Salvaged{Table: d.Name}
	}
	for _, d := range s.streams {
		s.ids.Table = max(s.ids.Table, d.TableID)
		s.ids.Stream = max(s.ids.Stream, d.ID)
		s.ids.Revision = max(s.ids.Revision, d.Policy.Revision)
		s.instant = max(s.instant, d.Created, d.Disabled)
		for _, sh := range d.Shards {
			s.instant = max(s.instant, sh.Created, sh.Closed)
			s.lastSeq = max(s.lastSeq, sh.First-1, sh.Last, sh.Trimmed)
		}
	}
	return nil
}

// item copies one item with its entries.
func (s *salvage) item(id uint32, key, value []byte) error {
	if s.restoring[id] {
		return nil
	}
	d := s.tableByID(id)
	if d == nil {
		name := fmt.Sprintf("table id %d has no description", id)
		for _, st := range s.streams {
			if st.TableID == id {
				name = fmt.Sprintf("table %s (id %d) has no description", st.Table, id)
			}
		}
		s.unknown[name+": %d items are not copied"]++
		return nil
	}
	h, item, k, err := d.readItem(key, value)
	if err != nil {
		s.fault(d.Name, "item %s is not copied: %v", d.shown(key[tablePrefixLen:]), err)
		return nil
	}
	// item and description are of different times: apply the present setting
	if d.headerFault(h, item) != "" {
		h = d.headerFor(k, item, max(s.instant, s.wall))
		value = append(h.append(nil), item...)
	}
	s.batch.Set(key, value)
	entries := false
	for i := range d.Indexes {
		if entry, ok := d.appendIndexKey(nil, &d.Indexes[i], item, k); ok {
			entries = true
			s.batch.Set(entry, d.indexValue(&d.Indexes[i], item, h))
		}
	}
	if h.removal != Never {
		entry := deadlineEntry{generation: h.generation, size: h.size, indexed: entries}
		s.batch.Set(appendDeadlineKey(nil, id, h.removal, k.suffix()), entry.append(nil))
		s.marks[id] = min(s.marks[id], h.removal)
	}
	s.copied[id].Items++
	return s.flush(salvageBatch)
}

// record copies one stream record.
func (s *salvage) record(id uint32, key, value []byte) error {
	if len(key) != recordKeyLen {
		return nil
	}
	seq := seqOfKey(key)
	s.lastSeq = max(s.lastSeq, seq)
	d := s.streamByID(id)
	if d == nil {
		s.unknown[fmt.Sprintf("stream id %d has no description: %%d records are not copied", id)]++
		return nil
	}
	r, err := decodeRecord(d.Key, seq, value)
	sh := d.shard(binary.BigEndian.Uint32(key[5:]))
	if err != nil || sh == nil || seq < sh.First || seq <= sh.Trimmed || !sh.Open() && seq > sh.Last {
		s.unknown[fmt.Sprintf("%s: the description of its stream is older than %%d records, which are not copied", d.Table)]++
		return nil
	}
	s.instant = max(s.instant, r.At)
	s.batch.Set(key, value)
	if copied := s.copied[d.TableID]; copied != nil {
		copied.Records++
	}
	return s.flush(salvageBatch)
}

// flush writes the batch if it is larger than over bytes.
func (s *salvage) flush(over int) error {
	if s.batch.Size() < over || s.batch.Empty() {
		return nil
	}
	err := errors.Join(s.store.Apply(s.batch), s.batch.Close())
	s.batch = s.store.NewBatch()
	return err
}

// writeCatalogue writes the catalogue. The format version is last: without it Open refuses the new
// directory.
func (s *salvage) writeCatalogue() error {
	if !s.began {
		if err := s.begin(); err != nil {
			return err
		}
	}
	s.reportLost()
	if !s.clockKnown || len(s.faults) > 0 {
		s.lastSeq += seqGap // more than the lost commits can have used
	}
	s.instant = max(s.instant, 0)
	if !s.clockKnown {
		s.instant = max(s.instant, s.wall)
	}
	for _, d := range s.tables {
		if d.History.Days != 0 {
			d.History.Since, d.History.TTL = s.instant, []TTLDesc{d.TTL}
			s.fault(d.Name, "its history for point-in-time recovery is not copied: it begins again at %s", s.instant.Time().Format(time.RFC3339Nano))
		}
		s.joinStreams(d)
	}
	for _, d := range s.streams {
		if s.orphaned(d) {
			d.disable(s.lastSeq, s.instant)
			s.fault(d.Table, "its stream %s is disabled: the table's description is lost or names another", d.Label)
		}
		setJSON(s.batch, idKey(catStream, d.ID), d)
	}
	for _, d := range s.tables {
		s.batch.Set(idKey(catMark, d.ID), appendInstant(nil, s.marks[d.ID]))
		setJSON(s.batch, tableCatalogueKey(d.Namespace, d.Name), d)
	}
	for key, value := range s.progressKeys {
		if s.tableByID(binary.BigEndian.Uint32([]byte(key)[2:])) != nil {
			s.batch.Set([]byte(key), value)
		}
	}
	setJSON(s.batch, catalogueKey(catIDs), s.ids)
	s.batch.Set(catalogueKey(catClock), appendClock(nil, s.instant, s.lastSeq))
	if err := s.flush(0); err != nil {
		return err
	}
	s.batch.Set(catalogueKey(catFormat), []byte(formatVersion))
	return errors.Join(s.flush(0), s.store.Flush())
}

// reportLost reports the unreadable places, and the items and records without a description.
func (s *salvage) reportLost() {
	if s.format == "" {
		s.fault("", "the format version is missing: the latest one was assumed")
	}
	for _, d := range s.faults {
		f := Fault{File: d.File, Offset: d.Offset, Fault: d.Fault, Places: s.overlapping(d.Lower, d.Upper)}
		if len(f.Places) > 0 {
			s.lost(f)
		}
	}
	if s.more > 0 {
		s.fault("", "%d more faults of files", s.more)
	}
	for _, text := range slices.Sorted(maps.Keys(s.unknown)) {
		s.fault("", text, s.unknown[text])
	}
}

// joinStreams creates a new stream or feed for a table if the description of the old one is lost.
func (s *salvage) joinStreams(d *TableDesc) {
	if d.Stream.ViewType != "" && !s.written(ownStream, d, d.Stream.ID) {
		s.newStream(ownStream, d, d.Stream.Label)
		s.fault(d.Name, "the description of its stream is lost: it has a new stream, %s", d.Stream.Label)
	}
	if d.Feed.Destination != "" && !s.written(feedStream, d, d.Feed.ID) {
		s.newStream(feedStream, d, d.Feed.Label)
		s.fault(d.Name, "the description of the stream for its Kinesis destination is lost: it has a new one, and changes that were not delivered are lost")
	}
}

// written reports whether the table writes to the stream with this id, which must be of this kind.
func (s *salvage) written(kind streamKind, d *TableDesc, id uint32) bool {
	st := s.streamByID(id)
	return st != nil && d.writesTo(kind, st)
}

// newStream creates a stream under another label than the lost one.
func (s *salvage) newStream(kind streamKind, d *TableDesc, lost string) {
	s.ids.Stream++
	used := func(label string) bool {
		// looked up by the table's name, which a dropped table with streams may have had too
		return label == lost || slices.ContainsFunc(s.streams, func(other *StreamDesc) bool {
			return other.Namespace == d.Namespace && other.Table == d.Name && other.Label == label
		})
	}
	for used(kind.label(s.instant)) {
		s.instant++
	}
	s.streams = append(s.streams, d.newStream(kind, s.ids.Stream, s.instant, s.lastSeq, Options{}.withDefaults().StreamShards))
}
