package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// directory is a data directory in memory that can be opened again and again, always with a clock
// at epoch.
type directory struct {
	fs     kv.FS
	change []func(*Options)
}

func newDirectory(change ...func(*Options)) directory {
	return directory{fs: kv.NewMemFS(), change: change}
}

// open opens the directory with its reaper running. The test closes it at its end, or earlier by
// close.
func (dir directory) open(t testing.TB) *db {
	t.Helper()
	d := open(t, dir.options())
	t.Cleanup(d.close)
	return d
}

// options returns the options of open, for tests that expect it to fail.
func (dir directory) options() Options {
	o := Options{Dir: "data", FS: dir.fs, Clock: frozenClock(), ClockControl: true, ReserveBytes: -1}
	for _, f := range dir.change {
		f(&o)
	}
	return o
}

// stream returns the description of a table's present stream, or of its last one.
func (d *db) stream(tab *Table) *StreamDesc {
	d.t.Helper()
	desc, err := d.StreamByLabel("default", tab.Desc().Name, tab.Desc().Stream.Label)
	if err != nil {
		d.t.Fatal(err)
	}
	return desc
}

// shardRecords reads a shard from its beginning to its present end.
func (d *db) shardRecords(stream uint32, sh ShardDesc) (out []Record, end bool) {
	d.t.Helper()
	for from := sh.Trimmed + 1; ; {
		page, err := d.Records(context.Background(), stream, sh.No, from, 3, 1<<20, 0)
		if err != nil {
			d.t.Fatal(err)
		}
		out = append(out, page.Records...)
		if page.End || len(page.Records) == 0 {
			return out, page.End
		}
		from = page.Next
	}
}

// crash cuts the power and opens the remaining disk, without background work.
func (d *db) crash(dir *directory, disk *kv.CrashFS) *db {
	d.t.Helper()
	disk.CutNow()
	d.Engine.Close() //nolint:errcheck // it reports the cut
	dir.fs = disk.AfterCrash()
	e, err := Open(dir.options())
	if err != nil {
		d.t.Fatal(err)
	}
	return &db{Engine: e, t: d.t}
}

// reopened returns a table from before a restart.
func (d *db) reopened(name string) *Table {
	d.t.Helper()
	tab, err := d.Table("default", name)
	if err != nil {
		d.t.Fatal(err)
	}
	return tab
}

// Records of each view type hold the images that it names, and always the keys.
func TestViewTypes(t *testing.T) {
	old, next := item("pk", "a", "sk", 1, "n", 1), item("pk", "a", "sk", 1, "n", 2)
	keys := item("pk", "a", "sk", 1)
	for view, has := range map[string]struct{ old, new bool }{
		"KEYS_ONLY": {false, false}, "OLD_IMAGE": {true, false}, "NEW_IMAGE": {false, true}, "NEW_AND_OLD_IMAGES": {true, true},
	} {
		t.Run(view, func(t *testing.T) {
			d := openMemory(t)
			tab := d.table("events", func(td *TableDesc) { td.Stream.ViewType = view })
			d.put(tab, old)
			d.put(tab, next)
			d.delete(tab, keys)
			d.put(tab, keys.With("ttl", number(fmt.Sprint(unix(time.Second)))))
			d.advance(time.Second)
			expiring := keys.With("ttl", number(fmt.Sprint(unix(time.Second))))
			want := []Record{
				{Event: Insert, New: old}, {Event: Modify, Old: old, New: next}, {Event: Remove, Old: next},
				{Event: Insert, New: expiring}, {Event: Remove, Service: true, Old: expiring},
			}
			got := d.records(tab)
			if len(got) != len(want) {
				t.Fatalf("%d records, want %d", len(got), len(want))
			}
			for i, w := range want {
				if !has.old {
					w.Old = nil
				}
				if !has.new {
					w.New = nil
				}
				g := got[i]
				if g.Event != w.Event || g.Service != w.Service || g.Old.String() != w.Old.String() || g.New.String() != w.New.String() || g.Keys.String() != keys.String() {
					t.Errorf("record %d is %+v, want %+v", i, g, w)
				}
				if g.Size() != keys.Size()+g.Old.Size()+g.New.Size() {
					t.Errorf("record %d counts %d bytes", i, g.Size())
				}
			}
		})
	}
}

// count writes n versions of each of some keys, in turn. A record's version is its position in its
// key's order.
func count(d *db, tab *Table, keys, from, n int) {
	for v := from; v < from+n; v++ {
		for k := range keys {
			d.put(tab, item("pk", fmt.Sprint("k", k), "sk", 1, "v", v))
		}
	}
}

// disorder returns the first record of a key that does not follow its predecessor, or 0.
func disorder(rs []Record) uint64 {
	last := map[string]string{}
	for _, r := range rs {
		key := r.Keys.String()
		if before, ok := last[key]; ok && r.Old.Get("v").Number().String() != before || !ok && r.Old != nil {
			return r.Seq
		}
		last[key] = r.New.Get("v").Number().String()
	}
	return 0
}

// parentsFirst returns shards ordered so that each follows its parent.
func parentsFirst(shards []ShardDesc) []ShardDesc {
	out := slices.Clone(shards)
	slices.SortFunc(out, func(a, b ShardDesc) int { return int(a.No) - int(b.No) })
	return out
}

// A shard closes when it has grown to ShardBytes and gets a child, also at a restart. A consumer
// that reads parents before children sees each key's records in order; one that ignores parents
// does not.
func TestShardsRollOver(t *testing.T) {
	dir := newDirectory(func(o *Options) { o.ShardBytes, o.StreamShards = 1000, 2 })
	d := dir.open(t)
	tab := d.table("events")
	count(d, tab, 6, 0, 20)
	d.close()
	d = dir.open(t)
	tab = d.reopened("events")
	count(d, tab, 6, 20, 20)

	desc := d.stream(tab)
	if len(desc.Shards) < 8 {
		t.Fatalf("%d shards after 40 kB", len(desc.Shards))
	}
	wantLineage(t, desc)
	var inOrder, ignoring []Record
	for _, sh := range parentsFirst(desc.Shards) {
		rs, end := d.shardRecords(desc.ID, sh)
		if end == sh.Open() {
			t.Errorf("shard %d, open %v: end of shard %v", sh.No, sh.Open(), end)
		}
		for _, r := range rs {
			if r.Seq < sh.First || !sh.Open() && r.Seq > sh.Last {
				t.Errorf("record %d lies outside of shard %d, %d to %d", r.Seq, sh.No, sh.First, sh.Last)
			}
		}
		inOrder = append(inOrder, rs...)
	}
	if len(inOrder) != 240 {
		t.Errorf("%d records, want 240", len(inOrder))
	}
	if seq := disorder(inOrder); seq != 0 {
		t.Errorf("record %d is out of its key's order", seq)
	}
	shuffled := slices.Clone(desc.Shards)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, sh := range shuffled {
		rs, _ := d.shardRecords(desc.ID, sh)
		ignoring = append(ignoring, rs...)
	}
	if disorder(ignoring) == 0 {
		t.Error("a consumer that ignores parents sees every key in order")
	}
}

// wantLineage checks that each slot has one open shard, that a child begins behind its parent's
// end, and that a parent has one child.
func wantLineage(t *testing.T, desc *StreamDesc) {
	t.Helper()
	open, children := map[int]int{}, map[uint32]int{}
	for _, sh := range desc.Shards {
		children[sh.Parent]++
		if sh.Open() {
			open[sh.Slot]++
		}
		if sh.Parent == 0 {
			continue
		}
		parent := desc.shard(sh.Parent)
		if parent == nil {
			t.Errorf("shard %d has a parent that is not there", sh.No)
			continue
		}
		if parent.Open() || parent.No >= sh.No || parent.Slot != sh.Slot || sh.First <= parent.Last {
			t.Errorf("shard %+v does not follow its parent %+v", sh, *parent)
		}
		if children[sh.Parent] > 1 {
			t.Errorf("shard %d has %d children", sh.Parent, children[sh.Parent])
		}
	}
	for slot := range desc.Slots {
		if open[slot] != 1 {
			t.Errorf("slot %d has %d open shards", slot, open[slot])
		}
	}
}

// A restart rolls only the shards that have records, so that an idle stream does not grow.
func TestRestartRollsWhatHasRecords(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events")
	d.put(tab, item("pk", "a", "sk", 1))
	first := d.records(tab)
	for range 3 {
		d.close()
		d = dir.open(t)
		tab = d.reopened("events")
	}
	desc := d.stream(tab)
	if len(desc.Shards) != 5 {
		t.Errorf("%d shards, want 4 and one child: %+v", len(desc.Shards), desc.Shards)
	}
	wantLineage(t, desc)
	d.put(tab, item("pk", "a", "sk", 2))
	rs := d.records(tab)
	if len(rs) != 2 || rs[0].Seq != first[0].Seq || rs[1].Seq <= first[0].Seq {
		t.Errorf("records: %+v, before the restart %+v", rs, first)
	}
}

// A waiting reader gets a record as soon as it is durable, and an empty page if none comes in time.
func TestRecordsWait(t *testing.T) {
	d := openMemory(t, func(o *Options) { o.StreamShards = 1 })
	tab := d.table("events")
	desc := d.stream(tab)
	page, err := d.Records(context.Background(), desc.ID, 1, 1, 10, 1<<20, time.Millisecond)
	if err != nil || len(page.Records) != 0 || page.End || page.Next != 1 {
		t.Fatalf("an empty shard: %+v %v", page, err)
	}
	type answer struct {
		page RecordPage
		err  error
	}
	answers := make(chan answer, 2)
	read := func(from uint64) {
		go func() {
			page, err := d.Records(context.Background(), desc.ID, 1, from, 10, 1<<20, time.Hour)
			answers <- answer{page, err}
		}()
	}
	st := d.streamByID(desc.ID)
	waiting := func(n int32) {
		for st.waiting.Load() != n {
			runtime.Gosched()
		}
	}
	read(1)
	read(d.NextSeq())
	waiting(2)
	d.put(tab, item("pk", "a", "sk", 1))
	for range 2 {
		if a := <-answers; a.err != nil || len(a.page.Records) != 1 || a.page.Next != 2 {
			t.Errorf("%+v", a)
		}
	}
	// The end of a shard ends a wait too, and so does the end of the engine.
	read(2)
	waiting(1)
	alterStream(t, d, tab, "")
	if a := <-answers; a.err != nil || !a.page.End {
		t.Errorf("the stream was disabled: %+v", a)
	}
	alterStream(t, d, tab, "KEYS_ONLY")
	desc = d.stream(tab)
	st = d.streamByID(desc.ID)
	read(d.NextSeq())
	waiting(1)
	d.close()
	if a := <-answers; !errors.Is(a.err, ErrClosed) {
		t.Errorf("the engine was closed: %+v", a)
	}
}

func alterStream(t *testing.T, d *db, tab *Table, view string) *TableDesc {
	t.Helper()
	desc, err := d.Alter(context.Background(), "default", tab.Desc().Name, func(td *TableDesc, _ Instant) error {
		td.Stream.ViewType = view
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

// A page ends at its limit of records or of bytes, and the next continues behind it.
func TestRecordPages(t *testing.T) {
	d := openMemory(t, func(o *Options) { o.StreamShards = 1 })
	tab := d.table("events")
	for i := range 5 {
		d.put(tab, item("pk", "a", "sk", i))
	}
	desc := d.stream(tab)
	size := d.records(tab)[0].Size()
	for _, c := range []struct{ limit, bytes, want int }{{2, 1 << 20, 2}, {10, 1 << 20, 5}, {10, size + 1, 2}, {10, 1, 1}} {
		page, err := d.Records(context.Background(), desc.ID, 1, 1, c.limit, c.bytes, 0)
		if err != nil || len(page.Records) != c.want || page.Next != uint64(c.want)+1 {
			t.Errorf("limit %d, %d bytes: %d records, next %d: %v", c.limit, c.bytes, len(page.Records), page.Next, err)
		}
	}
}

// Records and closed shards go when they are older than the retention, and not before. A read of
// trimmed records returns ErrTrimmed.
func TestTrim(t *testing.T) {
	d := openMemory(t, func(o *Options) { o.StreamShards, o.ShardBytes = 1, 300 })
	tab := d.table("events")
	count(d, tab, 1, 0, 10)
	d.advance(12 * time.Hour)
	count(d, tab, 1, 10, 1)
	d.advance(12*time.Hour - time.Millisecond)
	if rs := d.records(tab); len(rs) != 11 {
		t.Fatalf("%d records before the retention is over, want 11", len(rs))
	}
	first := d.stream(tab).Shards[0]
	d.advance(time.Minute)
	if rs := d.records(tab); len(rs) != 1 || rs[0].Seq != 11 {
		t.Fatalf("records: %+v, want the last", rs)
	}
	desc := d.stream(tab)
	wantOpenSlots(t, desc)
	if _, err := d.Records(context.Background(), desc.ID, first.No, 1, 10, 1<<20, 0); !errors.Is(err, ErrTrimmed) && !errors.Is(err, ErrShardNotFound) {
		t.Errorf("a shard that has gone: %v", err)
	}
	d.advance(24 * time.Hour)
	desc = d.stream(tab)
	if n := len(d.records(tab)); n != 0 {
		t.Errorf("%d records a day later", n)
	}
	last := desc.Shards[len(desc.Shards)-1]
	if _, err := d.Records(context.Background(), desc.ID, last.No, last.Trimmed, 10, 1<<20, 0); last.Trimmed != 0 && !errors.Is(err, ErrTrimmed) {
		t.Errorf("a record that has gone: %v", err)
	}
	count(d, tab, 1, 11, 1)
	if rs := d.records(tab); len(rs) != 1 || rs[0].Seq != 12 {
		t.Errorf("records: %+v, want the twelfth", rs)
	}
}

// Trimmed records leave the store, whether few or many go at once.
func TestTrimLeavesNothing(t *testing.T) {
	for _, n := range []int{1, trimFew, trimFew + 1, 3 * trimFew} {
		d := openMemory(t, func(o *Options) { o.StreamShards = 1 })
		tab := d.table("events")
		for range 2 {
			count(d, tab, 1, 0, n)
			d.advance(24*time.Hour + time.Minute)
			it := d.kv.NewIter(appendRecordKey(nil, d.stream(tab).ID, 0, 0), appendRecordKey(nil, d.stream(tab).ID+1, 0, 0))
			if it.First(); it.Valid() {
				t.Errorf("of %d records %d is left", n, seqOfKey(it.Key()))
			}
			if err := it.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func wantOpenSlots(t *testing.T, desc *StreamDesc) {
	t.Helper()
	open := 0
	for _, sh := range desc.Shards {
		if sh.Open() {
			open++
		}
	}
	if open != desc.Slots {
		t.Errorf("%d open shards, want %d", open, desc.Slots)
	}
}

// Sequence numbers continue after trimmed records, also after a restart without any
// record.
func TestSequenceSurvivesTrim(t *testing.T) {
	dir := newDirectory(func(o *Options) { o.StreamShards = 1 })
	d := dir.open(t)
	tab := d.table("events")
	count(d, tab, 1, 0, 3)
	last := d.NextSeq()
	d.advance(25 * time.Hour)
	d.close()
	d = dir.open(t)
	tab = d.reopened("events")
	d.advance(25 * time.Hour)
	count(d, tab, 1, 3, 1)
	if rs := d.records(tab); len(rs) != 1 || rs[0].Seq < last {
		t.Errorf("records: %+v, want one from %d on", rs, last)
	}
}

// A disabled stream stays readable to its end and goes after the retention. Enabling creates
// another stream with its own label, even within one millisecond.
func TestDisabledStreamAgesOut(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.put(tab, item("pk", "a", "sk", 1))
	first := d.stream(tab)
	if after := alterStream(t, d, tab, ""); after.Stream.Label != first.Label {
		t.Errorf("the latest stream is %q", after.Stream.Label)
	}
	d.put(tab, item("pk", "a", "sk", 2))
	second := alterStream(t, d, tab, "KEYS_ONLY")
	if second.Stream.Label == first.Label || second.Stream.ID == first.ID {
		t.Fatalf("the second stream is %+v", second.Stream)
	}
	d.put(tab, item("pk", "a", "sk", 3))
	streams, err := d.Streams()
	if err != nil || len(streams) != 2 || streams[0].Disabled == 0 || streams[1].Disabled != 0 {
		t.Fatalf("%+v: %v", streams, err)
	}
	var rs []Record
	for _, sh := range streams[0].Shards {
		got, end := d.shardRecords(first.ID, sh)
		if !end {
			t.Errorf("shard %d of a disabled stream has no end", sh.No)
		}
		rs = append(rs, got...)
	}
	if len(rs) != 1 || rs[0].New.String() != item("pk", "a", "sk", 1).String() {
		t.Errorf("the first stream holds %+v", rs)
	}
	if rs := d.records(tab); len(rs) != 1 || rs[0].Keys.String() != item("pk", "a", "sk", 3).String() {
		t.Errorf("the second stream holds %+v", rs)
	}
	d.advance(24*time.Hour - time.Millisecond)
	if _, err := d.StreamByLabel("default", "events", first.Label); err != nil {
		t.Errorf("gone before the retention is over: %v", err)
	}
	d.advance(time.Millisecond)
	if _, err := d.StreamByLabel("default", "events", first.Label); !errors.Is(err, ErrStreamNotFound) {
		t.Errorf("there after the retention: %v", err)
	}
	if _, err := d.Records(context.Background(), first.ID, 1, 1, 1, 1, 0); !errors.Is(err, ErrStreamNotFound) {
		t.Errorf("readable after the retention: %v", err)
	}
	if _, err := d.Records(context.Background(), second.Stream.ID, 99, 1, 1, 1, 0); !errors.Is(err, ErrShardNotFound) {
		t.Errorf("a shard that never was: %v", err)
	}
	lower, upper := appendRecordKey(nil, first.ID, 0, 0), appendRecordKey(nil, first.ID+1, 0, 0)
	it := d.kv.NewIter(lower, upper)
	defer it.Close()
	if it.First() {
		t.Error("records of a stream that has gone are in the store")
	}
}

// A dropped table's stream ends, stays readable, and is not confused with the stream of a new table
// of the same name.
func TestDroppedTablesStream(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.put(tab, item("pk", "a", "sk", 1))
	first := d.stream(tab)
	if _, err := d.DropTable(context.Background(), "default", "events", nil); err != nil {
		t.Fatal(err)
	}
	again := d.table("events")
	if d.stream(again).ID == first.ID || len(d.records(again)) != 0 {
		t.Error("the new table has the old stream")
	}
	old, err := d.StreamByLabel("default", "events", first.Label)
	if err != nil || old.Disabled == 0 {
		t.Fatalf("%+v %v", old, err)
	}
	n := 0
	for _, sh := range old.Shards {
		rs, end := d.shardRecords(old.ID, sh)
		if n += len(rs); !end {
			t.Errorf("shard %d has no end", sh.No)
		}
	}
	if n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// A later change of the number of shards does not move existing records.
func TestShardCountIsTheStreams(t *testing.T) {
	dir := newDirectory(func(o *Options) { o.StreamShards = 3 })
	d := dir.open(t)
	d.table("events")
	d.close()
	dir.change = append(dir.change, func(o *Options) { o.StreamShards = 5 })
	d = dir.open(t)
	tab := d.reopened("events")
	count(d, tab, 9, 0, 2)
	if n := len(d.stream(tab).Shards); n != 3 {
		t.Errorf("%d shards, want 3", n)
	}
	if n := len(d.records(tab)); n != 18 {
		t.Errorf("%d records, want 18", n)
	}
	other := d.table("other", func(td *TableDesc) { td.Key.Sort[0].Kind = dynamo.KindNumber })
	if n := len(d.stream(other).Shards); n != 5 {
		t.Errorf("%d shards of a new stream, want 5", n)
	}
}

// TestGather: a read waits for records while the reaper fills its stream: until it is done, until
// the page can be full, or for ten milliseconds.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openMemory(t)
		tab := d.table("events", func(td *TableDesc) { td.Stream.Shards = 2 })
		d.put(tab, item("pk", "a", "sk", 1))
		st := d.streamOf(tab.Desc())
		next := d.NextSeq()
		took := func(from uint64, limit int) time.Duration {
			start := time.Now()
			d.gather(t.Context(), st, from, limit)
			return time.Since(start)
		}
		if got := took(next, 1000); got != 0 {
			t.Errorf("waits %s although nothing is removed", got)
		}
		st.fill(2)
		if got := took(next, 1000); got != gatherMost {
			t.Errorf("waits %s for the reaper", got)
		}
		if got := took(next-20, 10); got != 0 {
			t.Errorf("waits %s although there is a page", got)
		}
		if got := took(next-19, 10); got != gatherMost {
			t.Errorf("waits %s for the rest of a page", got)
		}
		start := time.Now()
		if _, err := d.Records(t.Context(), st.desc.Load().ID, 1, next, 1000, 1<<20, 0); err != nil || time.Since(start) != gatherMost {
			t.Errorf("a read of the stream waits %s: %v", time.Since(start), err)
		}
		go func() {
			for range 2 {
				time.Sleep(time.Millisecond)
				st.fill(-1)
				st.published()
			}
		}()
		if got := took(next, 1000); got != 2*time.Millisecond {
			t.Errorf("waits %s until the reaper is done after two", got)
		}
		if st.waiting.Load() != 0 {
			t.Error("the stream still counts a reader")
		}
	})
}

// TestReapFillsStream: while records of removals are not on disk, reads of the stream and of the
// feed wait for them, and are woken then. They do not wait for a removal that has failed.
func TestReapFillsStream(t *testing.T) {
	g, d := gatedOpen(t)
	tab := d.table("events")
	d.feed(tab, feedOne)
	d.put(tab, item("pk", "a", "sk", 1, "ttl", unix(time.Second)))
	st, feed := d.streamOf(tab.Desc()), d.feedOf(tab.Desc())
	filling := func(when string, want int32) {
		t.Helper()
		if own, fed := st.filling.Load(), feed.filling.Load(); own != want || fed != want {
			t.Errorf("%d slices fill the stream and %d the feed %s, want %d", own, fed, when, want)
		}
	}
	d.still()
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	late := d.collect(tab, d.Now())
	st.waiting.Add(1)
	feed.waiting.Add(1)
	woken := map[string]<-chan struct{}{"stream": st.changed.Next(), "feed": feed.changed.Next()}
	g.close()
	if err := d.collect(tab, d.Now()).reap(); err != nil {
		t.Fatal(err)
	}
	filling("before the sync", 1)
	g.open(nil)
	d.background.Wait()
	filling("after the sync", 0)
	for name, changed := range woken {
		select {
		case <-changed:
		default:
			t.Errorf("a waiting reader of the %s is not woken", name)
		}
	}
	alterStream(t, d, tab, "")
	if err := late.reap(); !errors.Is(err, errStale) {
		t.Error(err)
	}
	filling("after one failed", 0)
}
