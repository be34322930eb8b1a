package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// TestReapSlices: a pass takes 128 entries at most and leaves the marks behind them, in memory to
// the key and on disk to the instant. The passes together take everything.
func TestReapSlices(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.still()
	const items = 300
	for i := range items {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "ttl", unix(time.Second)))
	}
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	now := d.Now()
	left := func() (n int) {
		n, _, err := tab.Backlog(items + 1)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n, oldest, err := tab.Backlog(100); n != 100 || oldest != now || err != nil {
		t.Errorf("of the backlog, up to 100 are counted as %d since %d, at %d: %v", n, oldest, now, err)
	}
	for _, want := range []int{items - 128, items - 256, 0} {
		before := left()
		next, err := (&reaper{t: tab}).drain(int64(now))
		if err != nil || (next <= int64(now)) != (want > 0) {
			t.Errorf("with %d left, the next pass is at %d, and now is %d: %v", want, next, now, err)
		}
		if got := left(); got != want {
			t.Fatalf("a pass took %d entries and left %d; want %d", before-got, got, want)
		}
		d.order.Lock()
		low := tab.marks.low
		d.order.Unlock()
		if want > 0 && (low.removal != now || low.suffix == "") {
			t.Errorf("with %d left, the mark is at %d, key %q, and not at the next entry", want, low.removal, low.suffix)
		}
		mark, _, err := get(d.kv, idKey(catMark, tab.id))
		if err != nil || len(mark) != instantLen || readInstant(mark) != now {
			t.Errorf("the mark on disk is %x, and not %d: %v", mark, now, err)
		}
	}
	d.verify()
}

// TestStaleReapComesAgain: a pass that a change of the table overtakes asks for an immediate
// repetition.
func TestStaleReapComesAgain(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.still()
	a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
	d.put(tab, a)
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	held := d.lockStripes([]uint32{stripeOf(tab.id, keyOf(t, tab, a).hash())})
	type answer struct {
		next int64
		err  error
	}
	drained := make(chan answer, 1)
	go func() {
		next, err := (&reaper{t: tab}).drain(int64(d.Now()))
		drained <- answer{next, err}
	}()
	for begun := false; !begun; runtime.Gosched() {
		d.order.Lock()
		begun = tab.marks.since.removal == Never
		d.order.Unlock()
	}
	alterStream(t, d, tab, "")
	d.unlockStripes(held)
	if got := <-drained; got.err != nil || got.next > int64(d.Now()) {
		t.Errorf("the next pass is at %d, and now is %d: %v", got.next, d.Now(), got.err)
	}
}

// TestAnswerAfterReapFollowsSync: a read does not report an item as gone before its removal is on
// disk.
func TestAnswerAfterReapFollowsSync(t *testing.T) {
	g, d := gatedOpen(t)
	tab := d.table("events")
	a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
	d.put(tab, a)
	d.still()
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	g.close()
	if _, err := (&reaper{t: tab}).drain(int64(d.Now())); err != nil {
		t.Fatal(err)
	}
	r := newRunning()
	r.start("get", func() (answer string, err error) {
		err = d.Read(context.Background(), func(v *View) error {
			it, _, err := v.Get(tab, keyOf(t, tab, a))
			answer = it.String()
			return err
		})
		return answer, err
	})
	settle()
	if early := r.early(); len(early) > 0 {
		t.Errorf("%v before the removal is on disk", early)
	}
	g.open(nil)
	r.wg.Wait()
	if r.errs["get"] != nil || r.answers["get"] != dynamo.Item(nil).String() {
		t.Errorf("%v %v", r.answers, r.errs)
	}
	d.close()
}

// TestSecondLookTakesBothAtOnce: the second pass of a read takes instant and snapshot together,
// inside the commit section.
func TestSecondLookTakesBothAtOnce(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.still()
	a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
	d.put(tab, a)
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	d.order.Lock()
	var looks []Instant
	first, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- d.ReadSnapshot(context.Background(), func(v *View) error {
			if looks = append(looks, v.Now()); len(looks) == 1 {
				close(first)
			}
			_, _, err := v.Get(tab, keyOf(t, tab, a))
			return err
		})
	}()
	<-first
	settle()
	if err := d.clock.Advance(time.Second); err != nil {
		t.Error(err)
	}
	d.order.Unlock()
	if err := <-ended; err != nil || len(looks) != 2 || looks[1] != d.Now() {
		t.Errorf("looked at %v, and the commit section was free at %d: %v", looks, d.Now(), err)
	}
}

// TestAlterOvertakesBackfill: a step of a backfill that a change of the table overtakes does
// nothing.
func TestAlterOvertakesBackfill(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.still()
	a := item("pk", "a", "sk", 1, "ttl", unix(time.Hour), "other", unix(time.Minute))
	d.put(tab, a)
	desc := d.setTTL("events", "other")
	held := d.lockStripes([]uint32{stripeOf(tab.id, keyOf(t, tab, a).hash())})
	stepped := make(chan error, 1)
	go func() {
		_, err := tab.backfills(desc)[0].step()
		stepped <- err
	}()
	settle()
	d.setTTL("events", "ttl")
	d.unlockStripes(held)
	if err := <-stepped; !errors.Is(err, errStale) {
		t.Errorf("a step that was overtaken: %v", err)
	}
	if h, _ := d.stored(tab, a); h.generation != 1 {
		t.Errorf("it wrote %+v", h)
	}
}

// TestTrimAtTheInstant: a record goes when it is as old as the retention, not a millisecond before.
// The record behind it stays, and so does a closed shard with a younger record.
func TestTrimAtTheInstant(t *testing.T) {
	d := openMemory(t, oneShard)
	tab := d.table("events")
	d.still()
	const old = trimFew + 20
	count(d, tab, 1, 0, old)
	written, retention := d.Now(), d.retention()
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	count(d, tab, 1, old, 1)
	tr := &trimmer{s: d.streamByID(tab.Desc().Stream.ID)}
	if f, err := tr.find(written + retention - 1); err != nil || len(f.cuts) != 0 || f.left != written+retention {
		t.Errorf("a millisecond early: %+v, %v", f, err)
	}
	if f, err := tr.find(written + retention); err != nil || len(f.cuts) != 1 || f.cuts[0].through != old {
		t.Errorf("at the instant: %+v, %v", f, err)
	} else if err := tr.apply(f); err != nil {
		t.Error(err)
	}
	if rs := d.records(tab); len(rs) != 1 || rs[0].Seq != old+1 {
		t.Errorf("%+v is left, want the record that is a second younger", rs)
	}
	alterStream(t, d, tab, "")
	if f, err := tr.find(written + retention); err != nil || len(f.cuts) != 0 {
		t.Errorf("of a shard that was closed a moment ago: %+v, %v", f, err)
	}
}
