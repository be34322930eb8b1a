package engine

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// afterCrash is a store opened after a crash, with the content of its streams.
type afterCrash struct {
	*db
	run     *crashRun
	tables  map[string]*Table
	records map[recordsOf][]Record // of a key of a table, in the stream's order
	last    uint64                 // a lower bound of the greatest sequence number before the crash
}

// recordsOf names the records of one key.
type recordsOf struct{ table, key string }

// check opens a disk after the crash and compares it with the run. It returns the number of
// expiries on the disk.
func (r *crashRun) check(t testing.TB, disk kv.FS) (expired int) {
	t.Helper()
	e, err := Open(crashOptions(disk))
	if err != nil {
		t.Fatalf("open after the crash: %v", err)
	}
	a := &afterCrash{db: &db{Engine: e, t: t}, run: r, tables: map[string]*Table{}, records: map[recordsOf][]Record{}}
	defer e.Close() //nolint:errcheck // a failed check closes it, and then nothing else counts
	if err := e.Verify(context.Background()); err != nil {
		t.Fatalf("after the crash: %v", err)
	}
	if !a.findTables() {
		return 0
	}
	a.checkRecords()
	a.checkFeeds()
	for _, h := range r.keys {
		a.checkKey(h)
		a.checkAnswers(h)
	}
	a.checkBatches()
	expired = a.expired()
	a.checkGoesOn()
	return expired
}

// expired counts the expiries on disk: by their records, and in tables without a stream by missing
// items.
func (a *afterCrash) expired() (n int) {
	for _, rs := range a.records {
		for _, r := range rs {
			if r.Service {
				n++
			}
		}
	}
	for _, h := range a.run.keys {
		if h.acked < 0 || slices.Contains(crashStreams, h.table) {
			continue
		}
		last := h.attempts[h.acked].item
		if _, it := a.stored(a.tables[h.table], h.key); it == nil && last != nil && a.hasExpired(h, last) {
			n++
		}
	}
	return n
}

// findTables finds the tables; false: the crash came before anything could be acknowledged.
func (a *afterCrash) findTables() bool {
	a.t.Helper()
	acked := false
	for _, h := range a.run.keys {
		acked = acked || h.acked >= 0
	}
	for _, name := range crashTableNames {
		tab, err := a.Table("default", name)
		if err != nil {
			if acked {
				a.t.Fatalf("table %s: %v", name, err)
			}
			return false
		}
		a.tables[name] = tab
	}
	for _, h := range a.run.indexes {
		ix := a.tables[h.table].Desc().Index(h.name)
		if h.acked && h.remove != (ix == nil) || h.read && (ix == nil || ix.Building) {
			a.t.Fatalf("%+v, and now it is %+v", h, ix)
		}
	}
	if a.run.ttlAcked && a.tables["late"].Desc().TTL.Attribute != "ttl" {
		a.t.Fatal("the enabling of TTL was acknowledged and is lost")
	}
	if x := a.tables["late"].Desc().TTL.Expiry; x != a.run.expiry && !a.run.changing {
		a.t.Fatalf("the expiry %+v was acknowledged and is lost: it is %+v", a.run.expiry, x)
	}
	return true
}

// checkRecords reads the streams, parents first. Numbers ascend and occur once, every record that a
// reader saw exists, and each key's records are a chain: each change follows its predecessor and
// nothing expires early.
func (a *afterCrash) checkRecords() {
	a.t.Helper()
	found := map[uint64]string{}
	for _, table := range crashStreams {
		a.readRecords(table, found)
	}
	for _, seq := range sortedSeqs(a.run.records) {
		if found[seq] != a.run.records[seq] {
			a.t.Errorf("a reader was given record %s; now it is %q", a.run.records[seq], found[seq])
		}
	}
	if next := a.NextSeq(); next < a.run.nextSeq || next <= a.last {
		a.t.Errorf("the next sequence number is %d; a reader was told %d, the last record is %d", next, a.run.nextSeq, a.last)
	}
	for key, rs := range a.records {
		if key.table == "keys" {
			a.checkKinds(key.key, rs)
		} else {
			a.checkChain(key.key, rs)
		}
	}
}

// readRecords reads the stream of a table.
func (a *afterCrash) readRecords(table string, found map[uint64]string) {
	a.t.Helper()
	desc := a.stream(a.tables[table])
	for _, sh := range parentsFirst(desc.Shards) {
		rs, _ := a.shardRecords(desc.ID, sh)
		var before uint64
		for _, r := range rs {
			if r.Seq <= before || found[r.Seq] != "" {
				a.t.Errorf("record %d of shard %d stands behind %d", r.Seq, sh.No, before)
			}
			before = r.Seq
			found[r.Seq] = recordText(r)
			key := recordsOf{table, r.Keys.String()}
			a.records[key] = append(a.records[key], r)
			a.last = max(a.last, r.Seq)
			if r.At > a.Now() {
				a.t.Errorf("it is %d, and record %d was made at %d", a.Now(), r.Seq, r.At)
			}
		}
	}
}

// checkKinds checks one key's records of a stream without images: an insert happens only to a
// missing item, and always does.
func (a *afterCrash) checkKinds(key string, rs []Record) {
	a.t.Helper()
	there := false
	for _, r := range rs {
		if (r.Event == Insert) == there || r.Service && r.Event != Remove || r.Old != nil || r.New != nil {
			a.t.Errorf("%s: record %s, and before it an item was there: %v", key, recordText(r), there)
		}
		there = r.Event != Remove
	}
}

// checkChain checks one key's records.
func (a *afterCrash) checkChain(key string, rs []Record) {
	a.t.Helper()
	var there dynamo.Item // the item after the records so far
	put := -1             // the attempt of the last put record
	for _, r := range rs {
		want := Modify
		switch {
		case there == nil:
			want = Insert
		case r.New == nil:
			want = Remove
		}
		if !bytes.Equal(r.Old, there) || r.Event != want || r.Old == nil && r.New == nil {
			a.t.Errorf("%s: record %s does not follow on %v", key, recordText(r), there)
		}
		if r.New != nil {
			if n := attemptOf(r.New); n <= put {
				a.t.Errorf("%s: attempt %d has a record behind that of %d", key, n, put)
			} else {
				put = n
			}
		}
		if r.Service {
			if at := a.removalOf("events", r.Old); r.Event != Remove || at > r.At {
				a.t.Errorf("%s: %s, which is to be removed at %d", key, recordText(r), at)
			}
		}
		there = r.New
	}
}

// checkKey checks the stored item of one key: it is of the last acknowledged attempt or a later
// one, or missing if that was a delete or has expired. In table events it matches the records
// exactly.
func (a *afterCrash) checkKey(h *history) {
	a.t.Helper()
	_, it := a.stored(a.tables[h.table], h.key)
	key := h.key.String()
	rs := a.records[recordsOf{h.table, key}]
	switch h.table {
	case "keys":
		if there := len(rs) > 0 && rs[len(rs)-1].Event != Remove; there != (it != nil) {
			a.t.Errorf("%s: stored is %v, by its records an item is there: %v", key, it, there)
		}
		a.checkPuts(h, rs)
	case "events":
		var there dynamo.Item
		if len(rs) > 0 {
			there = rs[len(rs)-1].New
		}
		if !bytes.Equal(there, it) {
			a.t.Errorf("%s: stored is %v, its records lead to %v", key, it, there)
		}
		a.checkAcked(h, rs)
	}
	least := max(h.acked, h.seen) // no earlier attempt may be stored
	if it != nil {
		n := attemptOf(it)
		if n < least && !(a.hasExpired(h, it) && a.hides(h) && h.onlyDeletes(n+1, least)) {
			a.t.Errorf("%s of %s: attempt %d is there; %d was acknowledged, %d was read: %+v", key, h.table, n, h.acked, h.seen, h.attempts)
		}
		if !bytes.Equal(h.attempts[n].item, it) {
			a.t.Errorf("%s of %s: stored is %v, attempt %d was %v", key, h.table, it, n, h.attempts[n].item)
		}
		return
	}
	for n := max(least, 0); n < len(h.attempts); n++ {
		if gone := h.attempts[n].item; gone == nil || a.hasExpired(h, gone) {
			return
		}
	}
	if least >= 0 {
		a.t.Errorf("%s of %s: nothing is there; attempt %d of %d was acknowledged, %d was read", key, h.table, h.acked, len(h.attempts), h.seen)
	}
}

// onlyDeletes reports whether the attempts from first to last are deletes, which leave an expired
// item to the reaper.
func (h *history) onlyDeletes(first, last int) bool {
	for n := first; n <= last; n++ {
		if h.attempts[n].item != nil {
			return false
		}
	}
	return true
}

// removalOf returns the earliest possible removal of an item of a table other than late.
func (a *afterCrash) removalOf(table string, it dynamo.Item) Instant {
	tab := a.tables[table]
	return tab.Desc().headerFor(keyOf(a.t, tab, it), it, minInstant/2).removal
}

// hides reports whether a key's table may have hidden items at their deadlines: table late has both
// modes in turn.
func (a *afterCrash) hides(h *history) bool {
	return h.table == "late" || a.tables[h.table].Desc().TTL.Expiry.Mode == ExpiryStrict
}

// hasExpired reports whether an item of a key may be gone by the clock alone.
func (a *afterCrash) hasExpired(h *history, it dynamo.Item) bool {
	v := it.Get("ttl")
	switch {
	case v == nil:
		return false
	case h.table != "late":
		return a.removalOf(h.table, it) <= a.Now()
	}
	ms, ok := v.Number().Millis()
	return ok && Instant(ms) <= a.Now()
}

// checkPuts checks by their number that each acknowledged put of table keys has one record.
func (a *afterCrash) checkPuts(h *history, rs []Record) {
	a.t.Helper()
	recorded, least, most := 0, 0, 0
	for _, r := range rs {
		if r.Event != Remove {
			recorded++
		}
	}
	for n, at := range h.attempts {
		if at.item == nil {
			continue
		}
		most++
		if n <= h.acked || n <= h.seen {
			least++
		}
	}
	if recorded < least || recorded > most {
		a.t.Errorf("%v of keys: %d records of puts; %d of %d were acknowledged or read", h.key, recorded, least, most)
	}
}

// checkAcked checks that each acknowledged put has a record. The chain excludes a second one.
func (a *afterCrash) checkAcked(h *history, rs []Record) {
	a.t.Helper()
	recorded := map[int]bool{}
	for _, r := range rs {
		if r.New != nil {
			recorded[attemptOf(r.New)] = true
		}
	}
	for n, at := range h.attempts {
		if at.item != nil && (n <= h.acked || n <= h.seen) && !recorded[n] {
			a.t.Errorf("%v: attempt %d was acknowledged (%d) or read (%d), and has no record", h.key, n, h.acked, h.seen)
		}
	}
}

// checkAnswers checks that no item has returned that a reader saw as gone: any visible item is of a
// later attempt.
func (a *afterCrash) checkAnswers(h *history) {
	a.t.Helper()
	if it := a.get(a.tables[h.table], h.key); it != nil && attemptOf(it) <= h.gone {
		a.t.Errorf("%v of %s: a reader was told that it is gone when attempt %d was acknowledged; now %v is there", h.key, h.table, h.gone, it)
	}
}

// checkBatches checks that no batch was applied in part.
func (a *afterCrash) checkBatches() {
	a.t.Helper()
	there := map[int]bool{} // by batch: one of its puts was applied
	lost := map[int]bool{}  // by batch: one of its puts was not applied
	for _, h := range a.run.keys {
		for n, at := range h.attempts {
			applied, known := a.applied(h, n)
			if at.item != nil && known {
				there[at.batch] = there[at.batch] || applied
				lost[at.batch] = lost[at.batch] || !applied
			}
		}
	}
	for batch := range there {
		if there[batch] && lost[batch] {
			a.t.Errorf("half of batch %d is there", batch)
		}
	}
}

// applied reports whether a put was applied, and whether that is known.
func (a *afterCrash) applied(h *history, n int) (applied, known bool) {
	if h.table == "events" {
		for _, r := range a.records[recordsOf{h.table, h.key.String()}] {
			if r.New != nil && attemptOf(r.New) == n {
				return true, true
			}
		}
		return false, true
	}
	_, it := a.stored(a.tables[h.table], h.key)
	if it == nil {
		return false, false
	}
	return attemptOf(it) >= n, true
}

// checkGoesOn checks that the store works normally: writes get later numbers, every deadline
// expires once, and then all parts agree.
func (a *afterCrash) checkGoesOn() {
	a.t.Helper()
	d := run(a.t, a.Engine)
	defer d.stop() //nolint:errcheck // ends with the context
	for _, h := range a.run.keys {
		if h.table != "late" {
			d.put(a.tables[h.table], h.key.With("v", number("1000")).With("ttl", number("1767225601")))
		}
	}
	d.advance(time.Hour)
	if err := d.Verify(context.Background()); err != nil {
		a.t.Errorf("an hour after the crash: %v", err)
	}
	for name, tab := range a.tables {
		for _, ix := range tab.Desc().Indexes {
			if ix.Building {
				a.t.Errorf("an hour after the crash %s of %s is not built", ix.Name, name)
				continue
			}
			d.wantBuilt(tab, ix.Name)
		}
		for _, it := range d.items(tab, Range{}) {
			if tab.Desc().TTL.Attribute != "" && it.Get("ttl") != nil {
				a.t.Errorf("an hour after the crash %v of %s has not expired", it, name)
			}
		}
		if n, _, err := tab.Backlog(10); n != 0 || err != nil {
			a.t.Errorf("an hour after the crash %d entries of %s are due: %v", n, name, err)
		}
	}
	for _, h := range a.run.keys {
		if _, it := d.stored(a.tables[h.table], h.key); it != nil && it.Get("ttl") != nil && a.tables[h.table].Desc().TTL.Attribute != "" {
			a.t.Errorf("an hour after the crash %v of %s is stored", it, h.table)
		}
	}
	before, known := a.last, a.records
	a.records = map[recordsOf][]Record{}
	a.checkRecords()
	a.checkFeeds()
	for key, rs := range a.records {
		for i, r := range rs {
			if i >= len(known[key]) && r.Seq <= max(before, a.run.nextSeq-1) {
				a.t.Errorf("record %d was made after the crash; %d and %d were given out before", r.Seq, before, a.run.nextSeq-1)
			}
		}
		if r := rs[len(rs)-1]; r.Event != Remove || !r.Service {
			a.t.Errorf("%s ends with %s", key, recordText(r))
		}
	}
}
