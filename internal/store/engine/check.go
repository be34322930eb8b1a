package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Fault is damage of a file, or a contradiction between the parts of a store.
type Fault struct {
	File   string  // empty: the files are sound
	Offset int64   // of the first bad byte or block in File; -1 if unknown
	Table  string  // empty: the fault concerns no single table
	Fault  string  // a clause that names the entry and the fault
	Places []Place // of a damaged file: the parts that may be unreadable
}

// String returns the fault as one line.
func (f Fault) String() string {
	text := f.Fault
	if f.Table != "" {
		text = f.Table + ": " + text
	}
	if f.File != "" {
		text = kv.Damage{File: f.File, Offset: f.Offset, Fault: text}.String()
	}
	if len(f.Places) == 0 {
		return text
	}
	places := make([]string, len(f.Places))
	for i, p := range f.Places {
		places[i] = p.String()
	}
	return text + " (concerns " + strings.Join(places, "; ") + ")"
}

// verifyFaults limits the faults that an error of Verify lists.
const verifyFaults = 20

// Verify reads the whole store and checks every relation between its parts. It returns an error
// that lists the first faults. It reads one snapshot, so writes may run meanwhile.
func (e *Engine) Verify(ctx context.Context) error { return e.verifyTables(ctx, nil) }

// verifyTables is Verify for the relations of some tables only; nil: everything.
func (e *Engine) verifyTables(ctx context.Context, tables []*Table) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	lows := map[uint32]position{}
	e.order.Lock()
	snap := e.kv.NewSnapshot()
	for _, t := range e.Tables() {
		lows[t.id] = t.marks.lowest()
	}
	e.order.Unlock()
	defer snap.Close()
	var errs []error
	n := 0
	c := &checker{ctx: ctx, kv: snap, lows: lows, step: func(int) {}, report: func(f Fault) {
		if n++; n <= verifyFaults {
			errs = append(errs, errors.New(f.String()))
		}
	}}
	var err error
	if tables == nil {
		err = c.all()
	} else if err = c.catalogue(); err == nil {
		for _, t := range tables {
			if d := c.tableByID(t.id); d != nil && err == nil {
				err = c.table(d)
			}
		}
	}
	if n > verifyFaults {
		errs = append(errs, fmt.Errorf("and %d more", n-verifyFaults))
	}
	return errors.Join(append(errs, err)...)
}

// Check checks a directory that no process has open: every byte of its files and, if they are
// sound, every relation between items, index entries, deadline entries, low-water marks,
// descriptions and stream records. It changes nothing. It calls report with each fault and progress,
// unless it is nil, with the work done so far. It returns an error if it could not finish the check. Only
// descriptions stay in memory, no items.
func Check(ctx context.Context, fs kv.FS, dir string, progress func(done, total int64), report func(Fault)) (err error) {
	files, err := kv.OpenStopped(fs, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	total := 2 * files.Bytes() // the files are read once as bytes and once as keys
	done := int64(0)
	step := func(n int64) {
		done = min(done+n, total)
		if progress != nil {
			progress(done, total)
		}
	}
	var damage []kv.Damage
	more := 0
	if err := files.Check(ctx, step, func(d kv.Damage) {
		if len(damage) == damageMax {
			more++
			return
		}
		damage = append(damage, d)
	}); err != nil {
		return err
	}
	if len(damage) > 0 {
		return reportDamage(ctx, files, damage, more, report)
	}
	store, err := files.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	c := &checker{ctx: ctx, kv: store, report: report, unjournaled: files.Unjournaled(), step: func(n int) { step(int64(n)) }}
	if err := c.all(); err != nil {
		return err
	}
	if err := files.CheckBelow(backupsDir); err != nil {
		report(Fault{File: backupsDir, Offset: -1, Fault: "the directory of the backups cannot be read: " + err.Error()})
	}
	for _, b := range c.backups {
		if err := checkBackup(ctx, files, b, report); err != nil {
			return err
		}
	}
	return nil
}

// checkBackup checks the files of a backup.
func checkBackup(ctx context.Context, files *kv.Stopped, b *BackupDesc, report func(Fault)) error {
	if b.Creating {
		return nil // the next start removes it
	}
	below, err := files.Below(backupsDir, b.ID)
	switch {
	case errors.Is(err, os.ErrNotExist):
		report(Fault{Table: b.Table.Name, Fault: fmt.Sprintf("the files of its backup %s (%s) are missing", b.ID, b.Name)})
		return nil
	case err != nil:
		return err
	}
	defer below.Close()
	return below.Check(ctx, func(int64) {}, func(d kv.Damage) {
		report(Fault{File: path.Join(backupsDir, b.ID, d.File), Offset: d.Offset, Table: b.Table.Name, Fault: "in a backup of it: " + d.Fault})
	})
}

// damageMax bounds the faults of files that wait for the table names.
const damageMax = 100_000

// reportDamage reports faults of files with the affected tables and keys.
func reportDamage(ctx context.Context, files *kv.Stopped, damage []kv.Damage, more int, report func(Fault)) error {
	var p places
	ignore := func(kv.Damage) {}
	err := files.Each(ctx, func(int64) {}, ignore, func(key, value []byte) error {
		if key[0] > spaceCatalogue {
			return errEnough
		}
		_ = p.add(key, value) // without the description the table has no name
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	p.sort()
	for _, d := range damage {
		report(p.damaged(d))
	}
	if more > 0 {
		report(Fault{Fault: fmt.Sprintf("%d more faults of files are not listed", more)})
	}
	return nil
}

// checker checks one state of a store. For each item it reads the deadline entry and the index
// entries that the item requires. Only if a table has more entries than its items require does it
// look for the item of each entry.
type checker struct {
	ctx context.Context
	kv  kv.Reader
	// by table: the low-water mark in memory, at or above the one on disk; missing: the one on disk
	lows   map[uint32]position
	step   func(bytes int)
	report func(Fault)

	unjournaled bool // see kv.Stopped

	places
	stored map[uint32]Instant
	keys   int
}

func (c *checker) fault(table, format string, args ...any) {
	c.report(Fault{Table: table, Fault: fmt.Sprintf(format, args...)})
}

// all checks everything.
func (c *checker) all() error {
	if err := c.catalogue(); err != nil {
		return err
	}
	for _, d := range c.tables {
		if err := c.table(d); err != nil {
			return err
		}
	}
	for _, d := range c.streams {
		if err := c.stream(d); err != nil {
			return err
		}
	}
	return c.strays()
}

// each calls fn for every key in [lower, upper). The slices are valid until fn returns.
func (c *checker) each(lower, upper []byte, fn func(key, value []byte) error) error {
	it := c.kv.NewIter(lower, upper)
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if c.keys++; c.keys%1024 == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		c.step(len(it.Key()) + len(it.Value()))
		if err := fn(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Error()
}

// catalogue reads the descriptions, and checks them against one another.
func (c *checker) catalogue() error {
	c.instant, c.stored = minInstant, map[uint32]Instant{}
	var owned [][]byte // keys of kinds that belong to a table
	err := c.each(catalogueKey(0), []byte{spaceCatalogue + 1}, func(key, value []byte) error {
		switch catalogueKind(key) {
		case catFormat, catClock, catIDs, catTable, catStream:
			if err := c.places.add(key, value); err != nil {
				c.fault("", "%v", err)
				break
			}
			if d := last(c.tables); key[1] == catTable && !bytes.Equal(key, tableCatalogueKey(d.Namespace, d.Name)) {
				c.fault(d.Name, "its description is stored under %q", key[2:])
			}
			if d := last(c.streams); key[1] == catStream && !bytes.Equal(key, idKey(catStream, d.ID)) {
				c.fault(d.Table, "the description of its stream %d is stored under %x", d.ID, key[2:])
			}
		case catBackup:
			if err := c.places.add(key, value); err != nil {
				c.fault("", "%v", err)
			} else if b := last(c.backups); b.ID != string(key[2:]) {
				c.fault("", "the description of the backup %s is stored under %q", b.ID, key[2:])
			}
		case catJob:
			if _, err := readJob(key, value); err != nil {
				c.fault("", "%v", err)
			}
		case catMark, catBackfill, catBuild, catRestore, catUndo:
			owned = append(owned, bytes.Clone(key))
			if key[1] != catMark {
				break
			}
			if len(value) != instantLen {
				c.fault("", "the low-water mark of table id %d has %d bytes, not %d", binary.BigEndian.Uint32(key[2:]), len(value), instantLen)
				break
			}
			c.stored[binary.BigEndian.Uint32(key[2:])] = readInstant(value)
		default:
			c.fault("", "catalogue key %x is of no known kind", key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch format := c.format; {
	case isJournaled(format) && c.unjournaled:
		c.report(Fault{File: kv.JournalName, Offset: -1, Fault: "is missing: nothing tells whether other files were lost with it"})
	case format == formatVersion || isFormatBefore(format):
	case format == "":
		c.fault("", "the format version is missing")
	default:
		c.fault("", "the format version is %q, this program knows %q", format, formatVersion)
	}
	c.places.sort()
	for _, key := range owned {
		if id := binary.BigEndian.Uint32(key[2:]); c.tableByID(id) == nil {
			c.fault("", "catalogue key %x belongs to table id %d, which has no description", key, id)
		}
	}
	for i, d := range c.tables {
		if d.ID == 0 || d.ID > c.ids.Table {
			c.fault(d.Name, "its id %d lies above %d, the last assigned id", d.ID, c.ids.Table)
		}
		if i > 0 && c.tables[i-1].ID == d.ID {
			c.fault(d.Name, "it has the id %d of table %s", d.ID, c.tables[i-1].Name)
		}
		if d.API.Policy.Revision > c.ids.Revision {
			c.fault(d.Name, "the revision %d of its policy lies above %d, the last assigned revision", d.API.Policy.Revision, c.ids.Revision)
		}
		c.description(d)
	}
	for _, d := range c.streams {
		if d.ID == 0 || d.ID > c.ids.Stream {
			c.fault(d.Table, "the id %d of its stream lies above %d, the last assigned id", d.ID, c.ids.Stream)
		}
		if d.Policy.Revision > c.ids.Revision {
			c.fault(d.Table, "the revision %d of its stream's policy lies above %d, the last assigned revision", d.Policy.Revision, c.ids.Revision)
		}
		c.shards(d)
	}
	return nil
}

func last[T any](of []*T) *T {
	if len(of) == 0 {
		return nil
	}
	return of[len(of)-1]
}

// catalogueKind returns the kind of a catalogue key, or 0 if the length does not match the kind.
func catalogueKind(key []byte) byte {
	lengths := map[byte]int{catFormat: 2, catClock: 2, catIDs: 2, catStream: 6, catMark: 6, catBackfill: 6, catBuild: 8, catRestore: 6, catUndo: 6}
	if len(key) < 2 {
		return 0
	}
	if n, fixed := lengths[key[1]]; fixed && len(key) != n {
		return 0
	}
	return key[1]
}

// description checks one table's description.
func (c *checker) description(d *TableDesc) {
	for name, schema := range schemas(d) {
		if len(schema.Partition) == 0 || schema.Len() > 8 {
			c.fault(d.Name, "the key of %s has %d attributes", name, schema.Len())
		}
		for a := range schema.Attrs {
			if a.Kind != dynamo.KindString && a.Kind != dynamo.KindNumber && a.Kind != dynamo.KindBinary {
				c.fault(d.Name, "the key attribute %s of %s has kind %d", a.Name, name, a.Kind)
			}
		}
	}
	seen := map[uint16]bool{}
	for i := range d.Indexes {
		ix := &d.Indexes[i]
		if ix.ID == 0 || seen[ix.ID] || d.NextIndex != 0 && uint32(ix.ID) >= d.NextIndex {
			c.fault(d.Name, "the id %d of index %s is 0, used twice or above the last assigned id", ix.ID, ix.Name)
		}
		seen[ix.ID] = true
	}
	if h := &d.History; h.Days < 0 || h.Days > historyDaysMax || h.Days != 0 && (len(h.TTL) == 0 || h.Since > c.instant) {
		c.fault(d.Name, "its history of %d days begins at %d with %d TTL settings, after the last commit of %d or not validly", h.Days, h.Since, len(h.TTL), c.instant)
	}
	c.feed(d)
	if d.Stream.ViewType == "" {
		return
	}
	s := c.streamByID(d.Stream.ID)
	switch {
	case s == nil:
		c.fault(d.Name, "its stream %d has no description", d.Stream.ID)
	case !d.writesTo(ownStream, s):
		c.fault(d.Name, "the description of its stream %d is of another stream: table id %d, label %s, %s, disabled at %d", s.ID, s.TableID, s.Label, s.ViewType, s.Disabled)
	}
}

// schemas yields the key schema of the table and of each index with its name.
func schemas(d *TableDesc) func(yield func(name string, schema KeySchema) bool) {
	return func(yield func(string, KeySchema) bool) {
		if !yield("the table", d.Key) {
			return
		}
		for i := range d.Indexes {
			if !yield("index "+d.Indexes[i].Name, d.Indexes[i].Key) {
				return
			}
		}
	}
}

// shards checks one stream's description.
func (c *checker) shards(d *StreamDesc) {
	fault := func(format string, args ...any) { c.fault(d.Table, fmt.Sprintf("stream %d: ", d.ID)+format, args...) }
	if c.orphaned(d) {
		fault("it is enabled, and its table does not write to it")
	}
	open := map[int]uint32{}
	before := uint32(0)
	for i := range d.Shards {
		sh := &d.Shards[i]
		if sh.No <= before || sh.No >= d.NextShard {
			fault("shard %d does not lie between shard %d and the next one's number %d", sh.No, before, d.NextShard)
		}
		before = sh.No
		if sh.Slot < 0 || sh.Slot >= d.Slots {
			fault("shard %d has slot %d of %d", sh.No, sh.Slot, d.Slots)
		}
		if p := d.shard(sh.Parent); sh.Parent != 0 && p != nil && (p.No >= sh.No || p.Slot != sh.Slot || p.Open() || p.Last >= sh.First) {
			fault("shard %d begins at sequence number %d of slot %d; its parent %d ends at %d of slot %d", sh.No, sh.First, sh.Slot, p.No, p.Last, p.Slot)
		}
		if !sh.Open() {
			if sh.Last+1 < sh.First {
				fault("shard %d ends at sequence number %d, before it begins at %d", sh.No, sh.Last, sh.First)
			}
			continue
		}
		if other, occupied := open[sh.Slot]; occupied || d.Disabled != 0 {
			fault("shard %d is open; slot %d has open shard %d, the stream was disabled at %d", sh.No, sh.Slot, other, d.Disabled)
		}
		open[sh.Slot] = sh.No
	}
	if d.Disabled == 0 && len(open) != d.Slots {
		fault("%d of %d slots have an open shard", len(open), d.Slots)
	}
}

// stream checks the records of one stream.
func (c *checker) stream(d *StreamDesc) error {
	fault := func(format string, args ...any) { c.fault(d.Table, fmt.Sprintf("stream %d: ", d.ID)+format, args...) }
	shard, at := uint32(0), minInstant
	lower, upper := streamSpan(d.ID)
	return c.each(lower, upper, func(key, value []byte) error {
		if len(key) != recordKeyLen {
			fault("record key %x has %d bytes, not %d", key, len(key), recordKeyLen)
			return nil
		}
		no, seq := binary.BigEndian.Uint32(key[5:]), seqOfKey(key)
		if no != shard {
			shard, at = no, minInstant
		}
		sh := d.shard(no)
		switch {
		case sh == nil:
			fault("record %d belongs to shard %d, which the stream has not", seq, no)
			return nil
		case seq < sh.First || !sh.Open() && seq > sh.Last:
			fault("record %d lies outside of shard %d, which holds %d to %d", seq, no, sh.First, sh.Last)
		case seq <= sh.Trimmed:
			fault("record %d of shard %d is there, and all up to %d have been trimmed", seq, no, sh.Trimmed)
		}
		r, err := decodeRecord(d.Key, seq, value)
		if err != nil {
			fault("%v", err)
			return nil
		}
		suffix, _, err := appendKey(nil, d.Key, r.Keys)
		if err != nil {
			fault("record %d has no key of the table: %v", seq, err)
			return nil
		}
		if slot := d.slotOf(binary.BigEndian.Uint32(suffix)); slot != sh.Slot {
			fault("record %d belongs to slot %d by its key, and lies in shard %d of slot %d", seq, slot, no, sh.Slot)
		}
		if r.At < at || r.At > c.instant {
			fault("record %d of shard %d is of %d; the one before it is of %d, the last commit of %d", seq, no, r.At, at, c.instant)
		}
		at = r.At
		return nil
	})
}

// strays reports the keys that belong to no table and to no stream.
func (c *checker) strays() error {
	tables := make([]uint32, len(c.tables))
	for i, d := range c.tables {
		tables[i] = d.ID
	}
	streams := make([]uint32, len(c.streams))
	for i, d := range c.streams {
		streams[i] = d.ID
	}
	err := c.straysIn(nil, []byte{spaceCatalogue}, "keyspace")
	for _, space := range []byte{spaceItems, spaceIndexes, spaceDeadlines, spaceStreams, spaceHistory} {
		owners, what := tables, "table"
		if space == spaceStreams {
			owners, what = streams, "stream"
		}
		lower := []byte{space}
		for _, id := range owners {
			err = errors.Join(err, c.straysIn(lower, appendTablePrefix(nil, space, id), what))
			lower = appendTablePrefix(nil, space, id+1)
		}
		err = errors.Join(err, c.straysIn(lower, []byte{space + 1}, what))
	}
	return errors.Join(err, c.straysIn([]byte{spaceHistory + 1}, nil, "keyspace"))
}

// straysIn reports the keys in a range that should be empty, one fault for each owner.
func (c *checker) straysIn(lower, upper []byte, owner string) error {
	var prefix []byte
	n := 0
	reportPrefix := func() {
		if n > 0 {
			c.fault("", "%d keys under %x belong to no %s", n, prefix, owner)
		}
	}
	err := c.each(lower, upper, func(key, _ []byte) error {
		head := key[:min(len(key), tablePrefixLen)]
		if !bytes.Equal(head, prefix) {
			reportPrefix()
			prefix, n = bytes.Clone(head), 0
		}
		n++
		return nil
	})
	reportPrefix()
	return err
}
