package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// reapsOf collects the calls of OnReap.
func reapsOf(o *Options) (reaps func() []Reap) {
	var mu sync.Mutex
	var told []Reap
	o.OnReap = func(r Reap) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, r)
	}
	return func() []Reap {
		mu.Lock()
		defer mu.Unlock()
		return told
	}
}

// A pass of the reaper and a step of a backfill are bounded by bytes too: a batch of 256 of the
// largest items would be 100 MB.
func TestSlicesAreBoundedByBytes(t *testing.T) {
	var reaps func() []Reap
	d := openMemory(t, func(o *Options) { reaps = reapsOf(o) })
	tab := d.table("events")
	big := strings.Repeat("x", 300_000)
	const items = 40
	for i := range items {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "big", big, "ttl", unix(time.Second), "other", unix(2*time.Second)))
	}
	before := d.lastCommit.Load()
	d.setTTL("events", "other")
	d.awaitBackfill(tab)
	if steps := d.lastCommit.Load() - before - 2; steps < 3 {
		t.Errorf("a backfill of 12 MB took %d steps", steps)
	}
	d.advance(2 * time.Second)
	n := 0
	for _, r := range reaps() {
		n += len(r.Due)
		if len(r.Due) > 15 {
			t.Errorf("one slice reaped %d items of 300 kB", len(r.Due))
		}
	}
	if n != items {
		t.Errorf("%d of %d reaped", n, items)
	}
	d.verify()
}

// Every removal of an expired item is reported, regardless of its cause.
func TestEveryReapIsTold(t *testing.T) {
	var reaps func() []Reap
	d := openMemory(t, func(o *Options) { reaps = reapsOf(o) })
	tab := d.table("events")
	for i := range 3 {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "ttl", unix(time.Second)))
	}
	d.still()
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	d.put(tab, item("pk", "0", "sk", 1))
	d.setTTL("events", "other")
	if err := tab.backfill(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, r := range reaps() {
		if r.Table != "events" || r.Durable.IsZero() {
			t.Errorf("%+v", r)
		}
		for _, deadline := range r.Due {
			if want := Instant(epoch.Add(time.Second).UnixMilli()); deadline != want {
				t.Errorf("deadline %d, want %d", deadline, want)
			}
			told++
		}
	}
	if told != 3 {
		t.Errorf("told of %d removals, not of 3", told)
	}
}

// The mark in memory passes renewed and deleted items. Otherwise every seek of the first entry
// would cross their tombstones.
func TestMarkPassesTheRenewed(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	a := item("pk", "a", "sk", 1, "ttl", unix(10*time.Second))
	d.put(tab, a)
	d.put(tab, a.With("ttl", number(fmt.Sprint(unix(20*time.Second)))))
	d.advance(10 * time.Second)
	d.order.Lock()
	low := tab.marks.low.removal
	d.order.Unlock()
	if want := Instant(epoch.Add(20 * time.Second).UnixMilli()); low != want {
		t.Errorf("the mark is at %d, the first entry at %d", low, want)
	}
	d.put(tab, a.With("ttl", number(fmt.Sprint(unix(15*time.Second)))))
	d.verify()
	d.advance(5 * time.Second)
	if d.get(tab, a) != nil {
		t.Error("there at its deadline")
	}
}

// The mark on disk passes the removed items. Otherwise each start would cross their tombstones.
func TestMarkOnDisk(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	for i := range 3 {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "ttl", unix(time.Duration(10+10*i)*time.Second)))
	}
	d.advance(25 * time.Second)
	stored, ok, err := get(d.kv, idKey(catMark, tab.Desc().ID))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if got, first := readInstant(stored), Instant(epoch.Add(10*time.Second).UnixMilli()); got <= first {
		t.Errorf("the mark on disk is at %d, the first entry was at %d", got, first)
	}
}

// fullFS has no room for the reserve while full is set, as a full disk has none.
type fullFS struct {
	kv.FS
	full atomic.Bool
}

func (f *fullFS) PathJoin(elem ...string) string {
	if f.full.Load() && elem[len(elem)-1] == "RESERVE" {
		return f.FS.PathJoin("nowhere", "RESERVE")
	}
	return f.FS.PathJoin(elem...)
}

// On a full disk writes that grow data are refused, a backfill waits, and deletes and reaping
// continue. Once there is room everything works as before.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &fullFS{FS: kv.NewMemFS()}
		o := crashOptions(fs)
		o.ReserveBytes = 4096
		d := open(t, o)
		tab := d.table("events")
		for i := range 3 {
			d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "ttl", unix(time.Second)))
		}
		d.close()
		fs.full.Store(true)
		d = open(t, o)
		tab = d.reopened("events")
		if err := d.Write(t.Context(), set(t, tab, item("pk", "new", "sk", 1))); !errors.Is(err, ErrDiskFull) {
			t.Errorf("a new item: %v", err)
		}
		if _, err := d.CreateTable(t.Context(), *d.reopened("events").Desc()); !errors.Is(err, ErrTableExists) {
			t.Errorf("the same table: %v", err)
		}
		if _, err := d.CreateTable(t.Context(), TableDesc{Namespace: "default", Name: "new", Key: recordSchema}); !errors.Is(err, ErrDiskFull) {
			t.Errorf("a new table: %v", err)
		}
		d.delete(tab, item("pk", "0", "sk", 1))
		d.put(tab, item("pk", "1", "sk", 1))
		d.advance(time.Second)
		if got := len(d.items(tab, Range{})); got != 1 {
			t.Errorf("%d items", got)
		}
		d.setTTL("events", "other")
		synctest.Wait()
		if !tab.Desc().TTL.Backfill {
			t.Error("a backfill went on without room")
		}
		fs.full.Store(false)
		time.Sleep(backfillPause)
		synctest.Wait()
		if tab.Desc().TTL.Backfill {
			t.Error("the backfill does not go on")
		}
		d.put(tab, item("pk", "new", "sk", 1))
		d.verify()
		d.close()
	})
}
