package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// The store does not sync an empty batch, so a commit with one would falsely mark all commits
// before it as durable. A reap whose entries were all renewed, in the instant of the previous
// commit, would make such a commit.
func TestNoCommitIsEmpty(t *testing.T) {
	d := openMemory(t)
	d.table("events")
	for range 2 {
		b := d.kv.NewBatch()
		c, err := d.commitSection(b, func(*commit) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if c.batch.Empty() {
			t.Error("a commit has nothing to sync")
		}
		if err := d.finish(c); err != nil {
			t.Fatal(err)
		}
		b.Close()
	}
}

// A refusal because an item has expired is valid only if its deadline still counts: TTL may be
// about to be disabled, at an instant before the deadline.
func TestRefusedWhileDisabling(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
	d.put(tab, a)
	d.still()
	gone := errors.New("gone")
	refused, answer := make(chan struct{}), make(chan error)
	w := &Write{Table: tab, Key: keyOf(t, tab, a), ReadOld: true, Decide: func(old dynamo.Item, _ Instant) (dynamo.Item, error) {
		if old == nil {
			close(refused)
			return nil, gone
		}
		return old, nil
	}}
	_, err := d.Alter(context.Background(), "default", "events", func(td *TableDesc, now Instant) error {
		if err := d.clock.Advance(time.Second); err != nil {
			return err
		}
		go func() { answer <- d.Write(context.Background(), w) }()
		<-refused
		td.TTL.Attribute = ""
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Errorf("%v: an item that outlived its deadline because TTL went off", err)
	}
	if d.get(tab, a) == nil {
		t.Error("gone")
	}
}

// A reader's description may be newer than its snapshot, or older than the items that it reads.
func TestJudgedByAnotherDescription(t *testing.T) {
	d := openMemory(t)
	d.still()
	tab := d.table("events")
	a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
	d.put(tab, a)
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	err := d.ReadSnapshot(context.Background(), func(v *View) error {
		d.setTTL("events", "other")
		if err := tab.backfill(context.Background()); err != nil {
			return err
		}
		if it, _, err := v.Get(tab, keyOf(t, tab, a)); err != nil || it != nil {
			t.Errorf("expired before the read began: %v, %v", it, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	before := &TableDesc{TTL: TTLDesc{Attribute: "ttl", Generation: 1}}
	if !before.expired(header{deadline: 5, removal: 5, generation: 2}, 5) {
		t.Error("an item of a later generation, expired by it, is shown")
	}
}

// An answer waits for the change that made its description, and for the drop of a missing table.
func TestAnswersRestOnDescriptions(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	a := item("pk", "a", "sk", 1)
	d.put(tab, a)
	ctx := context.Background()
	looks := map[string]func(v *View) error{
		"get": func(v *View) error { _, _, err := v.Get(tab, keyOf(t, tab, a)); return err },
		"scan": func(v *View) error {
			return v.Range(tab, Range{}, func(dynamo.Item) (bool, error) { return true, nil })
		},
	}
	wantRest := func(when string, want error) {
		t.Helper()
		for name, look := range looks {
			v := &View{e: d.Engine, now: d.Now(), hidden: minInstant}
			if err := look(v); !errors.Is(err, want) {
				t.Errorf("%s %s: %v", name, when, err)
			}
			if v.depends < d.lastCommit.Load() {
				t.Errorf("%s %s rests on commit %d, not on %d", name, when, v.depends, d.lastCommit.Load())
			}
		}
	}
	if _, err := d.Alter(ctx, "default", "events", func(td *TableDesc, _ Instant) error { td.API.Read++; return nil }); err != nil {
		t.Fatal(err)
	}
	wantRest("after a change", nil)
	if td, err := tab.Describe(); err != nil || td != tab.Desc() {
		t.Errorf("described as %v, %v", td, err)
	}
	if _, err := d.DropTable(ctx, "default", "events", nil); err != nil {
		t.Fatal(err)
	}
	wantRest("after the drop", ErrTableNotFound)
	if _, err := tab.Describe(); !errors.Is(err, ErrTableNotFound) {
		t.Errorf("described after the drop: %v", err)
	}
}

// Calls that describe the catalogue answer once the change that they show is durable, also if they
// find nothing. Here the change is inside the commit section, not yet on its way to the disk.
func TestCatalogueAnswersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openMemory(t)
		tab := d.table("events")
		stream := d.stream(tab)
		d.still()
		n := d.lastCommit.Load() + 1
		d.catalogue.commit.Store(n)
		d.streams.commit.Store(n)
		tab.changed.Store(n)
		var answered atomic.Int32
		calls := []func() error{
			func() error { _, err := d.Table("default", "events"); return err },
			func() error { _, _, err := d.TableNames("default", "", 1); return err },
			func() error { _, err := tab.Describe(); return err },
			func() error { _, err := d.Streams(); return err },
			func() error { _, err := d.StreamByLabel("default", "events", stream.Label); return err },
			func() error {
				if _, err := d.StreamByLabel("default", "events", "none"); !errors.Is(err, ErrStreamNotFound) {
					return errors.New("a stream of that label was found")
				}
				return nil
			},
		}
		for i, call := range calls {
			go func() {
				if err := call(); err != nil {
					t.Errorf("call %d: %v", i, err)
				}
				answered.Add(1)
			}()
		}
		synctest.Wait()
		if got := answered.Load(); got != 0 {
			t.Errorf("%d of %d calls answered too early", got, len(calls))
		}
		d.put(tab, item("pk", "a", "sk", 1))
		synctest.Wait()
		if got := answered.Load(); int(got) != len(calls) {
			t.Errorf("%d of %d calls answered", got, len(calls))
		}
	})
}

// A Decide that panics releases its key: the server continues after such a request.
func TestPanicInDecide(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	a := item("pk", "a", "sk", 1)
	func() {
		defer func() { recover() }()
		_ = d.Write(context.Background(), &Write{Table: tab, Key: keyOf(t, tab, a), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { panic("a bug") }})
	}()
	d.put(tab, a)
}

// A range is of one state: it never shows an item beside one that was written long after the first
// was gone.
func TestRangeIsOneState(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.still()
	d.put(tab, item("pk", "a", "sk", 1, "ttl", unix(time.Second)))
	var got []string
	looks := 0
	err := d.Read(context.Background(), func(v *View) error {
		if looks++; looks == 1 {
			if err := d.clock.Advance(2 * time.Second); err != nil {
				return err
			}
			d.put(tab, item("pk", "b", "sk", 1))
		}
		got = nil
		return v.Range(tab, Range{}, func(it dynamo.Item) (bool, error) {
			got = append(got, string(it.Get("pk").Bytes()))
			return true, nil
		})
	})
	if err != nil || !slices.Equal(got, []string{"b"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// An item written after its deadline never exists, even for a reader that began before that
// deadline.
func TestBornExpiredIsNeverThere(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.still()
	a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
	looks := 0
	err := d.Read(context.Background(), func(v *View) error {
		if looks++; looks == 1 {
			if err := d.clock.Advance(2 * time.Second); err != nil {
				return err
			}
			d.put(tab, a)
		}
		it, _, err := v.Get(tab, keyOf(t, tab, a))
		if it != nil {
			t.Errorf("look %d shows %v", looks, it)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
