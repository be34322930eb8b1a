package engine

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// prepare prepares the removals of entries that are due soon after an instant.
func (d *db) prepare(tab *Table, now Instant) *slice {
	d.t.Helper()
	s := &slice{t: tab, d: tab.Desc(), ahead: true, seen: d.commitsSeen()}
	if err := s.prepare(now); err != nil {
		d.t.Error(err)
	}
	return s
}

// TestPrepared: what changes after the preparation counts, and not what was prepared. Afterwards
// nothing of the preparation is left.
func TestPrepared(t *testing.T) {
	for _, x := range []Expiry{{}, awsExpiry} {
		eachShape(t, x, func(t *testing.T, s shape) { testPrepared(t, x, s) })
	}
}

func testPrepared(t *testing.T, x Expiry, sh shape) {
	d, _ := removals(t)
	tab := d.table("events", sh.shape, by(x))
	d.still()
	due := unix(5 * time.Second)
	was := func(name string) dynamo.Item {
		return item("pk", name, "sk", 1, "g", "x", "v", 1, "ttl", due)
	}
	removalOf := map[string]Instant{}
	for _, name := range []string{"left", "renewed", "disarmed", "deleted", "changed", "grown", "moved", "again"} {
		d.put(tab, was(name))
		h, _ := d.stored(tab, was(name))
		removalOf[name] = h.removal
	}
	for _, at := range slices.Sorted(maps.Values(removalOf)) {
		d.prepare(tab, at-1000)
	}
	if n := len(tab.prepared.list); n < len(removalOf) {
		t.Fatalf("%d removals are prepared of %d", n, len(removalOf))
	}
	changed, grown := was("changed").With("v", number("2")), was("grown").With("n", number("1"))
	moved := was("moved").With("g", dynamo.AppendString(nil, "y"))
	d.put(tab, was("renewed").With("ttl", number("1e9")))
	d.put(tab, item("pk", "disarmed", "sk", 1))
	d.delete(tab, was("deleted"))
	d.put(tab, changed)
	d.put(tab, grown)
	d.put(tab, moved)
	d.delete(tab, was("again"))
	d.put(tab, was("again"))

	d.stop = run(t, d.Engine).stop
	d.advance(24 * time.Hour)
	d.verify()
	if err := d.stop(); err != nil { // the table's own preparer
		t.Error(err)
	}
	if _, err := (&preparer{t: tab}).Drain(t.Context(), int64(d.Now())); err != nil { // discards what no deadline needs any more
		t.Error(err)
	}
	for name := range removalOf {
		_, it := d.stored(tab, was(name))
		if lives := name == "renewed" || name == "disarmed"; lives != (it != nil) {
			t.Errorf("%s is stored as %v", name, it)
		}
	}
	if left := d.room.Load(); tab.prepared.list != nil || left != prepareBytes {
		t.Errorf("%d prepared removals are left, and room for %d bytes of %d", len(tab.prepared.list), left, prepareBytes)
	}
	if sh.view == "" {
		return
	}
	removed := map[string]dynamo.Item{}
	for _, r := range d.records(tab) {
		if r.Service {
			removed[string(r.Keys.Get("pk").Bytes())] = r.Old
		}
	}
	want := map[string]dynamo.Item{"left": was("left"), "changed": changed, "grown": grown, "moved": moved, "again": was("again")}
	if len(removed) != len(want) {
		t.Errorf("records of the removal of %v", removed)
	}
	for name, old := range want {
		got, ok := removed[name]
		if !sh.hasOld() {
			old = nil
		}
		if !ok || got.String() != old.String() {
			t.Errorf("%s was removed (%v) with the old image %v", name, ok, got)
		}
	}
}

// TestPreparedIsUsed: a removal that was prepared does not read its item again, although the reaper
// and writers of other items have changed the table since.
func TestPreparedIsUsed(t *testing.T) {
	d, tab := preparedTable(t)
	const items = 1500 // many slices
	for i := range items {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "v", "before", "ttl", unix(time.Second)))
	}
	for range items/reapSlice + 1 {
		d.prepare(tab, d.Now())
	}
	for _, p := range tab.prepared.list {
		p.record.value = bytes.Replace(p.record.value, []byte("before"), []byte("ahead!"), 1)
	}
	d.put(tab, item("pk", "other", "sk", 1))
	d.drainAt(tab, time.Second)
	used := 0
	for _, r := range d.records(tab) {
		if r.Service && string(r.Old.Get("v").Bytes()) == "ahead!" {
			used++
		}
	}
	if used < items-items/50 { // one of them may share a stripe with the other item
		t.Errorf("%d of %d prepared removals were used", used, items)
	}
	d.verify()
}

// preparedTable returns a table with both images in a memory engine without background work.
func preparedTable(t *testing.T) (*db, *Table) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) { td.Indexes, td.Stream.ViewType = nil, "NEW_AND_OLD_IMAGES" })
	d.still()
	return d, tab
}

// drainAt moves the clock forward and reaps.
func (d *db) drainAt(tab *Table, by time.Duration) {
	d.t.Helper()
	if err := d.clock.Advance(by); err != nil {
		d.t.Fatal(err)
	}
	d.drain(tab)
}

// TestPreparer: the preparer begins a second and a half before the next deadline that it does not
// know, prepares all that is due within two seconds, and never what is due already.
func TestPreparer(t *testing.T) {
	d, tab := preparedTable(t)
	p, now := &preparer{t: tab}, int64(d.Now())
	step := func(want int64, prepared int) {
		t.Helper()
		next, err := p.Drain(context.Background(), now)
		if err != nil || next != want || len(tab.prepared.list) != prepared {
			t.Fatalf("%d prepared, the next step at %d ms: %v; want %d and %d ms", len(tab.prepared.list), next-now, err, prepared, want-now)
		}
	}
	near := func(i int) dynamo.Item { return item("pk", fmt.Sprint("near", i), "sk", 1, "ttl", unix(3*time.Second)) }
	atHand := item("pk", "at hand", "sk", 1, "ttl", unix(time.Second))
	other := d.table("other")
	d.put(other, atHand)
	if head := other.soon.Head(); head != int64(Never) {
		t.Errorf("a write with a near deadline wakes the preparer at %d ms", head-now)
	}
	step(int64(Never), 0)
	for i := range 200 {
		d.put(tab, near(i))
	}
	d.put(tab, item("pk", "far", "sk", 1, "ttl", unix(5*time.Second)))
	if head := tab.soon.Head(); head != now+3000-prepareFrom {
		t.Errorf("a write wakes the preparer at %d ms", head-now)
	}
	step(now+3000-prepareFrom, 0)
	now += 1500
	step(now, reapSlice)
	d.room.Store(0)
	step(now+prepareAgain, reapSlice)
	d.room.Store(prepareBytes)
	step(now+2000, 200) // half a second behind the last one: the next entry is later
	if err := d.clock.Advance(3 * time.Second); err != nil {
		t.Fatal(err)
	}
	now += 2000
	step(now+prepareAgain, 200) // beside a backlog it waits
	reaping, stop := context.WithCancel(t.Context())
	defer stop()
	go d.queue.Run(reaping)
	if err := d.queue.Settled(t.Context(), int64(d.Now())); err != nil {
		t.Fatal(err)
	}
	if n := len(tab.prepared.list); n != 0 {
		t.Errorf("%d prepared removals are left", n)
	}
	step(now+2000, 1)
	d.delete(tab, item("pk", "far", "sk", 1))
	if err := d.clock.Advance(3 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := d.queue.Settled(t.Context(), int64(d.Now())); err != nil {
		t.Fatal(err)
	}
	now += 2000
	step(int64(Never), 0) // what no deadline needs any more goes
}

// TestPreparerIdle: a table whose removals need no item is not prepared, until that changes. What
// was prepared under another description is discarded, and so is that of a table that is dropped.
func TestPreparerIdle(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", shape{view: "KEYS_ONLY"}.shape)
	d.still()
	a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
	d.put(tab, a)
	p, now := &preparer{t: tab}, int64(d.Now())
	if next, err := p.Drain(context.Background(), now); err != nil || next != int64(Never) {
		t.Errorf("the next step is at %d: %v", next, err)
	}
	alterStream(t, d, tab, "")
	alterStream(t, d, tab, "OLD_IMAGE")
	if head := tab.soon.Head(); head > now {
		t.Errorf("the preparer wakes at %d", head)
	}
	d.prepare(tab, d.Now())
	if n := len(tab.prepared.list); n != 1 {
		t.Fatalf("%d removals are prepared", n)
	}
	alterStream(t, d, tab, "")
	d.drainAt(tab, time.Second)
	if _, it := d.stored(tab, a); it != nil || tab.prepared.list != nil {
		t.Errorf("stored: %v, prepared: %d", it, len(tab.prepared.list))
	}
	alterStream(t, d, tab, "OLD_IMAGE")
	d.put(tab, item("pk", "b", "sk", 1, "ttl", unix(2*time.Second)))
	d.prepare(tab, d.Now())
	d.drop(tab)
	if left := d.room.Load(); left != prepareBytes {
		t.Errorf("a dropped table leaves room for %d bytes of %d", left, prepareBytes)
	}
}

// TestPreparersRun: Run prepares before the deadline by itself, also the items of a table that was
// there at the start.
func TestPreparersRun(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", shape{indexed: true, view: "NEW_AND_OLD_IMAGES"}.shape)
	d.put(tab, item("pk", "a", "sk", 1, "ttl", unix(10*time.Second)))
	d.advance(9 * time.Second)
	for end := time.Now().Add(10 * time.Second); d.room.Load() == prepareBytes; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is prepared a second before the deadline")
		}
	}
	d.advance(time.Second)
	if left := d.room.Load(); left != prepareBytes || len(d.items(tab, Range{})) != 0 {
		t.Errorf("room for %d bytes of %d after the deadline", left, prepareBytes)
	}
}
