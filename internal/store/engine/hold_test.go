package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// hold registers a consumer of a table's present stream.
func (d *db) hold(consumer string, tab *Table) *Hold {
	d.t.Helper()
	h, err := d.Hold(consumer, tab.Desc().Stream.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	return h
}

// passAll makes a consumer pass all existing records.
func (d *db) passAll(h *Hold) {
	for _, sh := range h.s.desc.Load().Shards {
		h.Passed(sh.No, d.NextSeq()-1)
	}
}

// seqs returns the sequence numbers of a table's stream.
func (d *db) seqs(tab *Table) (out []uint64) {
	d.t.Helper()
	for _, r := range d.records(tab) {
		out = append(out, r.Seq)
	}
	return out
}

func oneShard(o *Options) { o.StreamShards = 1 }

// TestDeliveredAtLeastOnce, the stream's part: no record behind a consumer's checkpoint is trimmed,
// at any age; those before it are.
func TestDeliveredAtLeastOnce(t *testing.T) {
	holds(t, func(t testing.TB) {
		d := openMemory(t, oneShard)
		tab := d.table("events")
		fast, slow := d.hold("fast", tab), d.hold("slow", tab)
		count(d, tab, 1, 0, 6)
		for _, h := range []*Hold{fast, slow} {
			d.passAll(h)
		}
		d.advance(25 * time.Hour)
		if got := d.seqs(tab); len(got) != 6 {
			t.Fatalf("records %v: neither consumer has said where its checkpoint is", got)
		}
		fast.Checkpoint(1, 6)
		slow.Checkpoint(1, 3)
		d.advance(time.Hour)
		if got := d.seqs(tab); !slices.Equal(got, []uint64{4, 5, 6}) {
			t.Fatalf("records %v behind a checkpoint at 3", got)
		}
		slow.Checkpoint(1, 2) // a report that comes too late
		slow.Checkpoint(1, 5)
		d.advance(time.Hour)
		if got := d.seqs(tab); !slices.Equal(got, []uint64{6}) {
			t.Fatalf("records %v behind a checkpoint at 5", got)
		}
		slow.Close()
		slow.Close()
		d.advance(time.Hour)
		if got := d.seqs(tab); len(got) != 0 {
			t.Fatalf("records %v when their only consumer has passed them", got)
		}
	}, invariant.TrimHeld)
}

// TestDeliveredAtLeastOnceAmidTrim: a reader gets an error for records that are trimmed while it
// reads, and does not skip them. The reader has loaded the stream's description, and waits for the
// disk while the records go.
func TestDeliveredAtLeastOnceAmidTrim(t *testing.T) {
	holds(t, func(t testing.TB) {
		d := openMemory(t, oneShard, func(o *Options) { o.ShardBytes = 200 })
		tab := d.table("events")
		count(d, tab, 1, 0, 10)
		desc := d.stream(tab)
		first := desc.Shards[0]
		if first.Open() {
			t.Fatal("the first shard is still open")
		}
		// as if the description were not durable until so many commits later
		d.streams.commit.Store(d.lastCommit.Load() + 100)
		read := make(chan error, 1)
		go func() {
			page, err := d.Records(context.Background(), desc.ID, first.No, first.First, 10, 1<<20, 0)
			if err == nil {
				err = fmt.Errorf("the page is %+v", page)
			}
			read <- err
		}()
		for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
			d.durable.mu.Lock()
			waiting = d.durable.waiting
			d.durable.mu.Unlock()
		}
		d.advance(25 * time.Hour)
		for v := 10; ; v++ {
			select {
			case err := <-read:
				if !errors.Is(err, ErrTrimmed) {
					t.Errorf("a reader whose records were trimmed: %v", err)
				}
				return
			default:
				count(d, tab, 1, v, 1)
			}
		}
	}, invariant.SkipTrimCheck)
}

// A shard goes when no consumer needs its records; an empty one is not waited for. A report about a
// child ends its parents.
func TestHeldShards(t *testing.T) {
	d := openMemory(t, oneShard, func(o *Options) { o.ShardBytes = 200 })
	tab := d.table("events")
	h := d.hold("consumer", tab)
	count(d, tab, 1, 0, 10)
	d.passAll(h)
	shards := d.stream(tab).Shards
	d.advance(50 * time.Hour)
	if got := d.stream(tab).Shards; len(got) != len(shards) {
		t.Fatalf("%d of %d shards are left", len(got), len(shards))
	}
	h.Checkpoint(shards[0].No, shards[0].Last)
	d.advance(time.Minute)
	if got := d.stream(tab).Shards; got[0].No != shards[1].No {
		t.Errorf("the first shard left is %d", got[0].No)
	}
	h.Checkpoint(shards[2].No, shards[2].First)
	d.advance(time.Minute)
	got := d.stream(tab).Shards
	if got[0].No != shards[2].No || got[0].Trimmed != shards[2].First {
		t.Errorf("the first shard left is %+v", got[0])
	}
	h.Checkpoint(99, 1) // of a shard that does not exist
	h.Close()
	d.advance(time.Minute)
	if got := d.stream(tab).Shards; len(got) != 1 || !got[0].Open() {
		t.Errorf("left: %+v", got)
	}
}

// A disabled stream, or the stream of a dropped table, goes when it has aged out and no consumer
// needs its records.
func TestHeldDisabledStream(t *testing.T) {
	for what, end := range map[string]func(d *db, tab *Table){
		"disabled": func(d *db, tab *Table) {
			_, err := d.Alter(context.Background(), "default", "events", func(td *TableDesc, _ Instant) error {
				td.Stream.ViewType = ""
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		},
		"dropped": func(d *db, tab *Table) {
			if _, err := d.DropTable(context.Background(), "default", "events", nil); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for how, letGo := range map[string]func(h *Hold, last map[uint32]uint64){
			"checkpoint": func(h *Hold, last map[uint32]uint64) {
				for shard, seq := range last {
					h.Checkpoint(shard, seq)
				}
			},
			"close": func(h *Hold, _ map[uint32]uint64) { h.Close() },
		} {
			t.Run(what+" "+how, func(t *testing.T) {
				d := openMemory(t, func(o *Options) { o.StreamShards = 2 })
				tab := d.table("events")
				stream := d.stream(tab)
				h := d.hold("consumer", tab)
				count(d, tab, 8, 0, 1)
				d.passAll(h)
				end(d, tab)
				d.advance(25 * time.Hour)
				left, err := d.StreamByLabel("default", "events", stream.Label)
				if err != nil || len(left.Shards) != 2 {
					t.Fatalf("%+v, %v", left, err)
				}
				records, last := 0, map[uint32]uint64{}
				for _, sh := range left.Shards {
					rs, end := d.shardRecords(left.ID, sh)
					last[sh.No] = rs[len(rs)-1].Seq
					if records += len(rs); !end {
						t.Errorf("shard %d has no end", sh.No)
					}
				}
				if records != 8 {
					t.Errorf("%d records are left", records)
				}
				letGo(h, last)
				d.advance(25 * time.Hour)
				if _, err := d.StreamByLabel("default", "events", stream.Label); !errors.Is(err, ErrStreamNotFound) {
					t.Errorf("there when nobody needs it: %v", err)
				}
				h.Checkpoint(1, 99) // of a removed stream: no effect
				h.Passed(1, 99)
				h.Rest(d.Now() + 1000)
				h.Close()
				if _, err := d.Hold("consumer", left.ID); !errors.Is(err, ErrStreamNotFound) {
					t.Errorf("a stream that is gone was registered for: %v", err)
				}
				if held := d.Held(); len(held) != 0 || d.heldBytes.Load() != 0 {
					t.Errorf("it counts as held: %+v, %d bytes", held, d.heldBytes.Load())
				}
				d.advance(time.Hour)
			})
		}
	}
}

// Consumers register between Open and Run: a directory that was closed for days is not trimmed
// before they have.
func TestHoldBeforeRun(t *testing.T) {
	holds(t, func(t testing.TB) {
		disk := kv.NewCrashFS()
		dir := newDirectory(oneShard)
		dir.fs = disk
		d := dir.open(t)
		tab := d.table("events")
		count(d, tab, 1, 0, 4)
		h := d.hold("consumer", tab)
		d.passAll(h)
		h.Checkpoint(1, 1)
		d.advance(48 * time.Hour)
		if got := d.seqs(tab); len(got) != 3 {
			t.Fatalf("%d records before the crash", len(got))
		}
		d.stop() //nolint:errcheck // the crash ends it
		d = d.crash(&dir, disk)
		tab = d.reopened("events")

		registered := d.HoldAll()
		d = run(d.t, d.Engine)
		d.stillThere(tab, 3, "before its consumer has registered")
		if r, err := d.Advance(context.Background(), time.Hour, 20*time.Millisecond); err != nil || !r.Unfinished || len(r.Busy) != 1 {
			t.Errorf("an advance before consumers have registered: %+v, %v", r, err)
		}
		h = d.hold("consumer", tab)
		registered()
		registered()
		d.stillThere(tab, 3, "before its consumer has said anything")
		h.Checkpoint(1, 2)
		shards := d.stream(tab).Shards
		h.Passed(shards[0].No, shards[0].Last)
		d.advance(time.Hour)
		if got := d.seqs(tab); len(got) != 2 {
			t.Errorf("%d records behind its checkpoint", len(got))
		}
		d.close()
	}, invariant.TrimHeld)
}

// stillThere runs the trimmer, and counts the records.
func (d *db) stillThere(tab *Table, want int, when string) {
	d.t.Helper()
	d.streamByID(tab.Desc().Stream.ID).due.Wake(int64(minInstant))
	if err := d.queue.Settled(context.Background(), int64(d.Now())); err != nil {
		d.t.Fatal(err)
	}
	if got := d.seqs(tab); len(got) != want {
		d.t.Fatalf("%d records %s, want %d", len(got), when, want)
	}
}

// A consumer that registers during a trim has its records or finds them gone; it never loses them
// afterwards.
func TestHoldWhileTrimming(t *testing.T) {
	d := openMemory(t, oneShard)
	tab := d.table("events")
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	d.stop = func() error { return nil }
	count(d, tab, 1, 0, 3)
	d.moveTo(d.Now() + 25*3600*1000)
	tr := &trimmer{s: d.streamByID(tab.Desc().Stream.ID)}
	f, err := tr.find(d.Now())
	if err != nil || len(f.cuts) != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	h := d.hold("consumer", tab)
	if err := tr.apply(f); !errors.Is(err, errStale) {
		t.Fatalf("trimmed what is held: %v", err)
	}
	h.Close()
	release := d.HoldAll()
	if err := tr.apply(f); !errors.Is(err, errStale) {
		t.Fatalf("trimmed while all is held: %v", err)
	}
	release()
	if err := tr.apply(f); err != nil || len(d.seqs(tab)) != 0 {
		t.Fatalf("%v, %v", err, d.seqs(tab))
	}
}

// reader is a consumer in a goroutine of its own: it reads a stream of one shard and handles each
// record before the next.
type reader struct {
	d     *db
	h     *Hold
	shard uint32
	next  uint64
}

func (d *db) reader(consumer string, tab *Table) *reader {
	return &reader{d: d, h: d.hold(consumer, tab), shard: 1, next: 1}
}

// read returns the next records, waiting for them; none at the end of the shard.
func (r *reader) read(ctx context.Context, limit int) []Record {
	page, err := r.d.Records(ctx, r.h.s.desc.Load().ID, r.shard, r.next, limit, 1<<20, time.Minute)
	if err != nil {
		return nil
	}
	r.next = page.Next
	return page.Records
}

// pass reports that a record is done.
func (r *reader) pass(rec Record) {
	r.h.Checkpoint(r.shard, rec.Seq)
}

// TestAdvanceWaitsForConsumers: an advance continues only when consumers have passed the records of
// the step, however slow they are.
func TestAdvanceWaitsForConsumers(t *testing.T) {
	holds(t, func(t testing.TB) {
		d := openMemory(t, oneShard)
		tab := d.table("events", func(td *TableDesc) { td.Stream.ViewType = "OLD_IMAGE" })
		slow := d.reader("slow", tab)
		for i := range 3 {
			d.put(tab, item("pk", "a", "sk", i, "ttl", unix(time.Duration(i+1)*time.Second)))
		}
		d.passAll(slow.h)
		done := make(chan error, 1)
		go func() {
			_, err := d.Advance(context.Background(), time.Minute, 0)
			done <- err
		}()
		for range 6 {
			rs := slow.read(context.Background(), 1)
			if len(rs) != 1 {
				t.Fatal("no record")
			}
			if rs[0].Event == Remove {
				select { // slow: an advance that does not wait would be over by now
				case <-done:
					t.Fatal("the advance ended before its records were passed")
				case <-time.After(20 * time.Millisecond):
				}
				if now := d.Now(); now != rs[0].At {
					t.Fatalf("the clock shows %v while a record of %v is handled", now.Time(), rs[0].At.Time())
				}
			}
			slow.pass(rs[0])
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if want := Instant(epoch.Add(time.Minute).UnixMilli()); d.Now() != want {
			t.Errorf("the clock shows %v", d.Now().Time())
		}
	}, invariant.LeaveBehind)
}

// Consumers that trigger each other and themselves see every record at its own instant: each firing
// arms the next, and writes to another table, whose consumer writes again.
func TestAdvanceThroughChains(t *testing.T) {
	t.Run("memory", func(t *testing.T) { advanceThroughChains(t, func(t testing.TB) *db { return openMemory(t, oneShard) }) })
	t.Run("directory", func(t *testing.T) {
		advanceThroughChains(t, func(t testing.TB) *db { return newDirectory(oneShard).open(t) })
	})
}

func advanceThroughChains(t *testing.T, open func(testing.TB) *db) {
	holds(t, func(t testing.TB) {
		d := open(t)
		armed, told := d.table("armed"), d.table("told")
		a, b := d.reader("arming", armed), d.reader("telling", told)
		const firings = 200
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ended := make(chan struct{}, 2)
		late := make(chan string, 10*firings)
		onTime := func(r Record) {
			if now := d.Now(); now != r.At {
				late <- fmt.Sprintf("record %d of %v at %v", r.Seq, r.At.Time(), now.Time())
			}
		}
		write := func(tab *Table, it dynamo.Item) {
			if err := d.Write(context.Background(), set(t, tab, it)); err != nil {
				late <- err.Error()
			}
		}
		go func() {
			defer func() { ended <- struct{}{} }()
			for fired := 0; fired < firings; {
				for _, r := range a.read(ctx, 10) {
					onTime(r)
					if r.Service {
						fired++
						if fired < firings {
							write(armed, item("pk", "a", "sk", fired, "ttl", unix(time.Duration(fired+1)*time.Second)))
						}
						// Due already: it is reaped within the same step.
						write(told, item("pk", "b", "sk", fired, "ttl", unix(time.Duration(fired)*time.Second)))
					}
					a.pass(r)
				}
				if ctx.Err() != nil {
					return
				}
			}
		}()
		reaped := 0
		go func() {
			defer func() { ended <- struct{}{} }()
			for reaped < firings && ctx.Err() == nil {
				for _, r := range b.read(ctx, 10) {
					onTime(r)
					if r.Service {
						reaped++
					}
					b.pass(r)
				}
			}
		}()
		d.put(armed, item("pk", "a", "sk", 0, "ttl", unix(time.Second)))
		r, err := d.Advance(context.Background(), time.Hour, 30*time.Second)
		cancel()
		<-ended
		<-ended
		if err != nil || r.Unfinished || len(late) > 0 || reaped != firings {
			t.Errorf("%+v, %v; %d were told of; %d were late", r, err, reaped, len(late))
		}
		if len(late) > 0 {
			t.Error(<-late)
		}
	}, invariant.LeaveBehind)
}

// The instant of a consumer's rest is a stop of the walk, at which the consumer runs. A record
// before that instant makes it busy again.
func TestRestIsAStop(t *testing.T) {
	d := openMemory(t, oneShard)
	tab := d.table("events")
	r := d.reader("window", tab)
	start := d.Now()
	d.put(tab, item("pk", "a", "sk", 1))
	d.put(tab, item("pk", "a", "sk", 2, "ttl", unix(4*time.Second)))
	first := r.read(context.Background(), 10)
	window := start + 10_000
	r.h.Rest(window)
	r.h.Taken(1, first[1].Seq)
	type moved struct {
		AdvanceReport
		err error
	}
	done := make(chan moved, 1)
	go func() {
		report, err := d.Advance(context.Background(), time.Minute, 0)
		done <- moved{report, err}
	}()
	// The item that expires on the way falls into the same window.
	second := r.read(context.Background(), 10)
	select {
	case <-done:
		t.Fatal("the advance left a record behind")
	case <-time.After(20 * time.Millisecond):
	}
	if len(first) != 2 || len(second) != 1 || d.Now() != start+4000 {
		t.Fatalf("%d, then %d records at %v", len(first), len(second), d.Now().Time())
	}
	r.h.Taken(1, second[0].Seq)
	for d.Now() < window {
		if err := d.clock.Sleep(context.Background(), int64(window), nil); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-done:
		t.Fatal("the advance did not wait for what the window held")
	case <-time.After(20 * time.Millisecond):
	}
	if d.Now() != window {
		t.Errorf("the window ended at %v", d.Now().Time())
	}
	r.h.Rest(0)
	r.pass(second[0])
	if m := <-done; m.err != nil || m.Unfinished || m.To != start+60_000 || m.Steps != 3 {
		t.Errorf("%+v", m)
	}
	r.h.Rest(Never) // it does not rest
	d.put(tab, item("pk", "a", "sk", 3))
	if report, err := d.Advance(context.Background(), time.Second, 20*time.Millisecond); err != nil || !report.Unfinished {
		t.Errorf("%+v, %v", report, err)
	}
}

// An advance that consumers delay reports them. It ends when such a consumer closes, and with its
// context.
func TestAdvanceBusy(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.put(tab, item("pk", "a", "sk", 1, "ttl", unix(time.Second)))
	hung, other := d.hold("hung", tab), d.hold("other", tab)
	d.passAll(hung)
	d.passAll(other)
	stop := Instant(epoch.Add(time.Second).UnixMilli())
	r, err := d.Advance(context.Background(), time.Minute, 50*time.Millisecond)
	for err == nil && r.To < stop { // a slow machine
		r, err = d.Advance(context.Background(), time.Minute, 50*time.Millisecond)
	}
	slices.Sort(r.Busy)
	if err != nil || !r.Unfinished || r.To != stop || !slices.Equal(r.Busy, []string{"hung", "other"}) {
		t.Errorf("%+v, %v", r, err)
	}
	d.passAll(other)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { _, err := d.Advance(ctx, time.Minute, 0); done <- err }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled advance: %v", err)
	}
	go func() { _, err := d.Advance(context.Background(), time.Minute, 0); done <- err }()
	hung.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	// A consumer that registers after all records are gone has nothing to pass.
	other.Close()
	d.advance(25 * time.Hour)
	d.hold("late", tab)
	d.advance(time.Second)
}

// The records kept for a consumer beyond the retention are counted and logged at intervals, and at
// the limit HoldsFull reports it.
func TestHeldIsMeasured(t *testing.T) {
	var log bytes.Buffer
	d := openMemory(t, oneShard, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.HoldBytes = 1000
	})
	tab := d.table("events")
	h := d.hold("slow", tab)
	warned := func() int { return strings.Count(log.String(), "a consumer has not read them") }
	size := func(from uint64) (n int64) {
		it := d.kv.NewIter(appendRecordKey(nil, tab.Desc().Stream.ID, 1, from), appendRecordKey(nil, tab.Desc().Stream.ID, 2, 0))
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			n += int64(len(it.Key()) + len(it.Value()))
		}
		return n
	}
	var written []Instant
	for i := range 20 {
		count(d, tab, 1, i, 1)
		written = append(written, d.Now())
		d.passAll(h)
		d.advance(10 * time.Minute)
	}
	d.advance(23 * time.Hour) // 26:20 since the first
	aged := 0
	for _, at := range written {
		if at+d.retention() <= d.Now() {
			aged++
		}
	}
	want := HeldStream{Namespace: "default", Table: "events", Label: tab.Desc().Stream.Label, Consumer: "slow",
		Records: int64(aged), Bytes: size(0) - size(uint64(aged)+1), Oldest: written[0]}
	if got := d.Held(); len(got) != 1 || got[0] != want {
		t.Errorf("held: %+v, want %+v", got, want)
	}
	if n := warned(); n != 3 || !strings.Contains(log.String(), "consumer=slow") {
		t.Errorf("warned %d times in two hours and twenty minutes:\n%s", n, log.String())
	}
	if !d.HoldsFull() || strings.Count(log.String(), "have reached their limit") != 1 {
		t.Errorf("%d bytes are held, and full is %v:\n%s", d.heldBytes.Load(), d.HoldsFull(), log.String())
	}
	h.Checkpoint(1, 15)
	d.advance(time.Minute)
	want.Records, want.Bytes, want.Oldest = 0, 0, 0
	if aged > 15 {
		want.Records, want.Bytes, want.Oldest = int64(aged-15), size(16)-size(uint64(aged)+1), written[15]
	}
	if got := d.Held(); (len(got) == 1) != (aged > 15) || aged > 15 && got[0] != want {
		t.Errorf("held: %+v, want %+v", got, want)
	}
	if d.heldBytes.Load() != want.Bytes || d.HoldsFull() != (want.Bytes >= 1000) {
		t.Errorf("%d bytes are held, want %d", d.heldBytes.Load(), want.Bytes)
	}
	d.advance(5 * time.Hour)
	if got := d.Held(); len(got) != 1 || got[0].Records != 5 || got[0].Bytes != size(16) {
		t.Errorf("held: %+v, want 5 records of %d bytes", got, size(16))
	}
	h.Close()
	d.advance(time.Minute)
	if got := d.Held(); len(got) != 0 || d.heldBytes.Load() != 0 || len(d.seqs(tab)) != 0 {
		t.Errorf("held: %+v, %d bytes", got, d.heldBytes.Load())
	}
}

// Records kept for a consumer cost nothing while nothing happens: at most one pass each time that
// some have aged.
func TestHoldIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Open(Options{Durability: kv.Memory, StreamShards: 1})
		if err != nil {
			t.Fatal(err)
		}
		d := run(t, e)
		tab := d.table("events")
		h := d.hold("slow", tab)
		h.Passed(1, 1)
		h.Rest(d.Now() + 3600_000)
		count(d, tab, 1, 0, 10)
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		if got := d.Held(); len(got) != 1 || got[0].Records != 10 {
			t.Errorf("held: %+v", got)
		}
		before := e.queue.Passes()
		time.Sleep(30 * 24 * time.Hour)
		synctest.Wait()
		if n := e.queue.Passes() - before; n > 1 {
			t.Errorf("the due queue looked %d times in a month with nothing due", n)
		}
		h.Checkpoint(1, 7)
		synctest.Wait()
		if got := d.seqs(tab); len(got) != 3 {
			t.Errorf("%d records behind the checkpoint, at once", len(got))
		}
		if err := d.stop(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// While a shard's records rest, its child's records cannot be taken in: an advance does not wait
// for them before the shard itself is done.
func TestRestBeforeChild(t *testing.T) {
	d := openMemory(t, oneShard, func(o *Options) { o.ShardBytes = 200 })
	tab := d.table("events")
	h := d.hold("window", tab)
	count(d, tab, 1, 0, 10)
	shards := d.stream(tab).Shards
	h.Taken(1, shards[0].Last)
	h.Rest(d.Now() + 1000)
	d.advance(999 * time.Millisecond)
	h.Rest(d.Now() + 10_000)
	h.Passed(1, shards[0].Last-1)
	d.advance(time.Second)
	h.Passed(1, shards[0].Last)
	if r, err := d.Advance(context.Background(), time.Second, 20*time.Millisecond); err != nil || !r.Unfinished {
		t.Errorf("the child can be read and is left behind: %+v, %v", r, err)
	}
	h.Taken(2, shards[1].Last)
	d.advance(time.Second)
}
