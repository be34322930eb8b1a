package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// keepHistory turns point-in-time recovery on with a period in days, or off with 0.
func (e *Engine) keepHistory(table string, days int) error {
	_, err := e.Alter(context.Background(), "default", table, func(td *TableDesc, _ Instant) error {
		td.History.Days = days
		return nil
	})
	return err
}

func (d *db) keepHistory(table string, days int) {
	d.t.Helper()
	if err := d.Engine.keepHistory(table, days); err != nil {
		d.t.Fatal(err)
	}
}

// beginRestoreTo begins the restore of a table to an instant, with all its indexes.
func (d *db) beginRestoreTo(table string, at Instant, name string) (*Table, error) {
	return d.RestoreToInstant(context.Background(), "default", table, at, func(td *TableDesc) (TableDesc, error) {
		next := TableDesc{Namespace: "default", Name: name, Key: td.Key, Indexes: slices.Clone(td.Indexes)}
		for i := range next.Indexes {
			next.Indexes[i].Building = false
		}
		return next, nil
	})
}

// restoreTo restores a table to an instant, and waits until it can be used.
func (d *db) restoreTo(table string, at Instant, name string) *Table {
	d.t.Helper()
	if _, err := d.beginRestoreTo(table, at, name); err != nil {
		d.t.Fatal(err)
	}
	d.advance(0)
	tab, err := d.Table("default", name)
	if err != nil {
		d.t.Fatalf("table %s: %v", name, err)
	}
	return tab
}

// historyKeys counts the history records of the store.
func (d *db) historyKeys() (n int) {
	d.t.Helper()
	it := d.kv.NewIter([]byte{spaceHistory}, []byte{spaceHistory + 1})
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if err := it.Error(); err != nil {
		d.t.Fatal(err)
	}
	return n
}

func bareTable(td *TableDesc) { td.Indexes, td.TTL, td.Stream = nil, TTLDesc{}, StreamSpec{} }

// blind returns a put that does not ask for the item before.
func blind(t testing.TB, tab *Table, it dynamo.Item) *Write {
	return &Write{Table: tab, Key: keyOf(t, tab, it), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }}
}

// The plain case: every change of an item can be undone, to the millisecond.
func TestHistoryPlain(t *testing.T) {
	for name, dir := range map[string]directory{
		"memory": newDirectory(func(o *Options) { o.Dir, o.FS = "", nil }),
		"sync":   newDirectory(),
		"async":  newDirectory(func(o *Options) { o.Durability = kv.Async }),
	} {
		t.Run(name, func(t *testing.T) {
			d := dir.open(t)
			tab := d.table("plain", bareTable)
			d.put(tab, item("pk", "old", "sk", 1, "v", "before"))
			d.keepHistory("plain", 35)
			var want [][]dynamo.Item
			for i := range 4 {
				switch i {
				case 1:
					d.put(tab, item("pk", "new", "sk", 1))
				case 2:
					if err := d.Write(context.Background(), blind(t, tab, item("pk", "old", "sk", 1, "v", "after"))); err != nil {
						t.Fatal(err)
					}
					d.delete(tab, item("pk", "new", "sk", 1))
				case 3:
					d.delete(tab, item("pk", "old", "sk", 1))
				}
				want = append(want, d.items(tab, Range{}))
				d.advance(time.Millisecond)
			}
			for i := range want {
				d.wantItems(d.restoreTo("plain", Instant(epoch.UnixMilli())+Instant(i), fmt.Sprint("at", i)), want[i])
			}
			d.wantItems(d.restoreTo("plain", Never, "latest"), want[3])
			if names, err := d.kv.ListBelow(backupsDir); err != nil || len(names) != 0 {
				t.Errorf("the restores left %v, %v", names, err)
			}
			if list, err := d.Backups(); err != nil || len(list) != 0 {
				t.Errorf("the restores left backups: %v, %v", list, err)
			}
			d.verify()
		})
	}
}

// A table without point-in-time recovery has no history, and its batches are as large as before.
func TestHistoryOffIsFree(t *testing.T) {
	d := openMemory(t)
	tab := d.table("plain", bareTable)
	size := func(v string) int {
		it := item("pk", "a", "sk", 1, "v", v)
		w := &Write{Table: tab, Key: keyOf(t, tab, it), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }}
		p := &plan{e: d.Engine, writes: []planned{{w: w}}, ids: []uint32{stripeOf(tab.id, w.Key.hash())}, batch: d.kv.NewBatch()}
		defer p.batch.Close()
		c, _, err := p.commit()
		if err != nil {
			t.Fatal(err)
		}
		n := p.batch.Size()
		if err := d.finishWrite(c, p); err != nil {
			t.Fatal(err)
		}
		return n
	}
	size("first")
	before := size("one")
	if d.historyKeys() != 0 || tab.history.trim.Load() != nil {
		t.Error("a table that never had a history has records or a trimmer")
	}
	d.keepHistory("plain", 1)
	if on := size("two"); on <= before || d.historyKeys() != 1 {
		t.Errorf("with a history: %d bytes after %d, %d records", on, before, d.historyKeys())
	}
	d.keepHistory("plain", 0)
	if n := d.historyKeys(); n != 0 {
		t.Errorf("%d records after switching off", n)
	}
	if off := size("six"); off != before || d.historyKeys() != 0 {
		t.Errorf("switched off: %d bytes, not %d; %d records", off, before, d.historyKeys())
	}
	d.verify()
}

// Switching off deletes the history, so switching on again does not bring it back.
func TestHistoryOffAndOn(t *testing.T) {
	d := openMemory(t)
	tab := d.table("plain", bareTable)
	d.keepHistory("plain", 2)
	start := d.Now()
	d.put(tab, item("pk", "a", "sk", 1))
	d.advance(time.Hour)
	d.keepHistory("plain", 0)
	if _, err := d.beginRestoreTo("plain", Never, "none"); err != ErrNoHistory {
		t.Errorf("a restore without a history: %v", err)
	}
	d.delete(tab, item("pk", "a", "sk", 1))
	d.keepHistory("plain", 2)
	again := d.Now()
	d.put(tab, item("pk", "b", "sk", 1))
	d.advance(time.Hour)
	d.delete(tab, item("pk", "b", "sk", 1))
	for _, at := range []Instant{start, again - 1, d.Now() + 1} {
		if _, err := d.beginRestoreTo("plain", at, "none"); err != ErrRestoreInstant {
			t.Errorf("a restore to %d, with a history from %d to %d: %v", at, again, d.Now(), err)
		}
	}
	d.wantItems(d.restoreTo("plain", again, "again"), []dynamo.Item{item("pk", "b", "sk", 1)})
	if _, err := d.beginRestoreTo("plain", Never, "again"); err != ErrTableExists {
		t.Errorf("a restore into a table that exists: %v", err)
	}
	if names, err := d.kv.ListBelow(backupsDir); err != nil || len(names) != 0 {
		t.Errorf("refused restores left %v, %v", names, err)
	}
	d.verify()
}

// Records are trimmed once they are older than the period, and the table can be restored to each
// instant within it. A longer period does not bring back what a shorter one gave up.
func TestHistoryTrim(t *testing.T) {
	for _, many := range []int{1, trimFew + 1} {
		d := openMemory(t)
		tab := d.table("plain", bareTable)
		d.keepHistory("plain", 3)
		const days = 8
		want := map[Instant][]dynamo.Item{}
		for i := range days {
			for j := range many {
				d.put(tab, item("pk", fmt.Sprint(j), "sk", 1, "day", i))
			}
			want[d.Now()] = d.items(tab, Range{})
			d.advance(24 * time.Hour)
		}
		// at 8 days: the records of day 6 and 7, and that of day 5 has just aged out
		if n := d.historyKeys(); n != 2*many {
			t.Errorf("%d records are left, not %d", n, 2*many)
		}
		now := d.Now()
		if h := tab.Desc().History; h.Earliest(now) != now-3*dayMillis {
			t.Errorf("the earliest instant is %d", h.Earliest(now))
		}
		if _, err := d.beginRestoreTo("plain", now-3*dayMillis-1, "none"); err != ErrRestoreInstant {
			t.Errorf("before the period: %v", err)
		}
		for at := now - 3*dayMillis; at < now; at += dayMillis {
			d.wantItems(d.restoreTo("plain", at, fmt.Sprint("at", at)), want[at])
		}
		d.keepHistory("plain", 1)
		d.advance(0)
		if n := d.historyKeys(); n != 0 {
			t.Errorf("%d records after the period became a day", n)
		}
		d.keepHistory("plain", 35)
		if h := tab.Desc().History; h.Earliest(now) != now-dayMillis {
			t.Errorf("after 1 day and 35 again the earliest instant is %d", h.Earliest(now))
		}
		d.advance(40 * 24 * time.Hour)
		if d.historyKeys() != 0 || tab.history.trim.Load().Head() != int64(Never) {
			t.Errorf("the trimmer of an empty history waits for %d", tab.history.trim.Load().Head())
		}
		d.put(tab, item("pk", "last", "sk", 1))
		d.advance(35*24*time.Hour - time.Millisecond)
		if n := d.historyKeys(); n != 1 {
			t.Errorf("%d records after a change in an empty history", n)
		}
		d.advance(time.Millisecond)
		if n := d.historyKeys(); n != 0 {
			t.Errorf("%d records after the period", n)
		}
		d.verify()
		d.close()
	}
}

// Items whose removal is late are judged by the instant of the restore, and by the TTL setting of that
// time: strict expiry hid them then, and aws expiry showed them.
func TestHistoryOverdue(t *testing.T) {
	for _, x := range []Expiry{{}, {Mode: ExpiryAWS, Seed: 7}} {
		d := openMemory(t)
		if err := d.stop(); err != nil { // nothing is removed
			t.Fatal(err)
		}
		d.stop = func() error { return nil }
		pass := func(by time.Duration) Instant {
			if err := d.clock.Advance(by); err != nil {
				t.Fatal(err)
			}
			return d.Now()
		}
		tab := d.table("events", func(td *TableDesc) { td.TTL.Expiry = x })
		d.keepHistory("events", 1)
		kept, replaced := item("pk", "kept", "sk", 1, "ttl", unix(5*time.Second)), item("pk", "replaced", "sk", 1, "ttl", unix(5*time.Second))
		d.put(tab, kept)
		d.put(tab, replaced)
		before := pass(time.Second)
		after := pass(9 * time.Second)
		pass(time.Second)
		d.put(tab, item("pk", "replaced", "sk", 1, "v", "new"))
		pass(time.Second)
		if _, err := d.Alter(context.Background(), "default", "events", func(td *TableDesc, _ Instant) error {
			td.TTL = TTLDesc{Attribute: "other", Generation: td.TTL.Generation}
			if x.Mode == ExpiryAWS {
				td.TTL.Attribute = "ttl" // strict from now on
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		for at, want := range map[Instant][]dynamo.Item{before: {kept, replaced}, after: nil} {
			if x.Mode == ExpiryAWS {
				want = []dynamo.Item{kept, replaced}
			}
			name := fmt.Sprint("at", at)
			again, err := d.beginRestoreTo("events", at, name)
			for more := true; more && err == nil; {
				more, err = again.restoreRound(context.Background(), again.Desc())
			}
			if err != nil {
				t.Fatal(err)
			}
			got, wanted := texts(d.items(again, Range{})), texts(want)
			slices.Sort(got)
			slices.Sort(wanted)
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("%v, at %d (-want +got):\n%s", x, at, diff)
			}
			if diff := cmp.Diff(wanted, d.exported("events", at, exportBytes)); diff != "" {
				t.Errorf("%v, exported at %d (-want +got):\n%s", x, at, diff)
			}
		}
		text := func(it dynamo.Item) string { return string(dynamo.AppendItemJSON(nil, it)) }
		key := func(it dynamo.Item) string { return text(tab.Desc().Key.pick(it)) }
		state := map[string]string{key(kept): text(kept), key(replaced): text(replaced)}
		last := pass(time.Millisecond) - 1
		for _, to := range []Instant{after, last} {
			want := map[string]string{}
			switch {
			case to != after:
				want[key(replaced)] = text(item("pk", "replaced", "sk", 1, "v", "new"))
			case x.Mode == ExpiryAWS:
				want = map[string]string{key(kept): text(kept), key(replaced): text(replaced)}
			}
			d.changesSince("events", before+1, to, exportBytes, state)
			if diff := cmp.Diff(want, state); diff != "" {
				t.Errorf("%v, changes from %d to %d (-want +got):\n%s", x, before+1, to, diff)
			}
			before = to
		}
		d.verify()
	}
}

// A trim between the request and its checkpoint refuses the restore.
func TestHistoryTrimmedMeanwhile(t *testing.T) {
	d := openMemory(t)
	tab := d.table("plain", bareTable)
	d.keepHistory("plain", 1)
	d.advance(time.Second)
	d.order.Lock()
	tab.history.trimmed = d.Now()
	d.order.Unlock()
	if _, err := d.beginRestoreTo("plain", d.Now()-1, "none"); !errors.Is(err, ErrRestoreInstant) {
		t.Errorf("a restore to before the trim: %v", err)
	}
	if names, err := d.kv.ListBelow(backupsDir); err != nil || len(names) != 0 {
		t.Errorf("it left %v, %v", names, err)
	}
	d.wantItems(d.restoreTo("plain", d.Now(), "again"), nil)
}

// After a restart within one instant no record takes the place of another.
func TestHistoryNumbersContinue(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	d.table("plain", bareTable)
	d.keepHistory("plain", 1)
	start := d.Now()
	d.advance(time.Second)
	for i := range 3 {
		d.put(d.reopened("plain"), item("pk", fmt.Sprint(i), "sk", 1))
		d.close()
		d = dir.open(t)
	}
	if n := d.historyKeys(); n != 3 {
		t.Errorf("%d records", n)
	}
	d.wantItems(d.restoreTo("plain", start, "again"), nil)
	d.verify()
}

// The deletion of a table with a history leaves a backup that goes after 35 days.
func TestDeletedTableBackup(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events")
	d.keepHistory("events", 1)
	d.put(tab, item("pk", "a", "sk", 1, "g", "x"))
	d.put(tab, item("pk", "a", "sk", 2, "g", "x"))
	want := d.items(tab, Range{})
	d.table("other")
	for _, name := range []string{"events", "other"} {
		if _, err := d.DropTable(context.Background(), "default", name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.historyKeys(); n != 0 {
		t.Errorf("%d history records are left", n)
	}
	list, err := d.Backups()
	if err != nil || len(list) != 1 || list[0].Name != "events$DeletedTableBackup" || list[0].Kind != BackupDeleted || list[0].Expires != d.Now()+35*dayMillis {
		t.Fatalf("backups: %+v, %v", list, err)
	}
	d.wantItems(d.restore(list[0], "events"), want)
	d.close()
	d = dir.open(t)
	d.advance(35*24*time.Hour - time.Millisecond)
	if list, err = d.Backups(); err != nil || len(list) != 1 {
		t.Fatalf("a millisecond before its end: %v, %v", list, err)
	}
	d.advance(time.Millisecond)
	if list, err = d.Backups(); err != nil || len(list) != 0 {
		t.Errorf("at its end: %v, %v", list, err)
	}
	if names, err := d.kv.ListBelow(backupsDir); err != nil || len(names) != 0 {
		t.Errorf("its files: %v, %v", names, err)
	}
	d.verify()
}

// Expiries do not wait for a backup that expires at the same time, even while its removal waits for a
// checkpoint.
func TestExpiredBackupDelaysNothing(t *testing.T) {
	reaps := make(chan Reap, 10)
	d := newDirectory(func(o *Options) { o.OnReap = func(r Reap) { reaps <- r } }).open(t)
	d.put(d.table("gone"), item("pk", "a", "sk", 1))
	d.keepHistory("gone", 1)
	if _, err := d.DropTable(context.Background(), "default", "gone", nil); err != nil {
		t.Fatal(err)
	}
	d.put(d.table("events"), item("pk", "a", "sk", 1, "ttl", unix(35*24*time.Hour+time.Second)))
	d.catalogue.changing.Lock() // as a checkpoint does
	if err := d.clock.Advance(35 * 24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	if err := d.clock.Advance(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reaps:
	case <-time.After(10 * time.Second):
		t.Error("an expiry waits for an expired backup")
	}
	d.catalogue.changing.Unlock()
	d.advance(0)
	if names, err := d.kv.ListBelow(backupsDir); err != nil || len(names) != 0 {
		t.Errorf("its files: %v, %v", names, err)
	}
	d.verify()
}

// The deletion of a table counts its items without the lock of the catalogue.
func TestDeletedTableCount(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.put(tab, item("pk", "a", "sk", 1))
	d.keepHistory("events", 1)
	tab.count.Lock()
	dropped := make(chan error, 1)
	go func() {
		_, err := d.DropTable(context.Background(), "default", "events", nil)
		dropped <- err
	}()
	time.Sleep(50 * time.Millisecond)
	if d.catalogue.changing.TryLock() {
		d.catalogue.changing.Unlock()
	} else {
		t.Error("the count holds the lock of the catalogue")
	}
	tab.count.Unlock()
	if err := <-dropped; err != nil {
		t.Fatal(err)
	}
	if list, err := d.Backups(); err != nil || len(list) != 1 || list[0].Items != 1 {
		t.Errorf("backups: %v, %v", list, err)
	}
}

// Backups of deleted tables have a bound of their own: at it the oldest one that is not in use is
// removed.
func TestTooManyDeleted(t *testing.T) {
	d := openMemory(t)
	d.table("events")
	d.keepHistory("events", 1)
	user := d.backup("events")
	id := func(i int) string { return fmt.Sprintf("%014d-%08x", i, i) }
	d.backups.mu.Lock()
	for i := range backupsMax {
		d.backups.byID[id(i)] = &BackupDesc{ID: id(i), Kind: BackupDeleted, Expires: Never}
	}
	d.backups.mu.Unlock()
	d.backup("events")
	if _, err := d.DropTable(context.Background(), "default", "events", nil); err != nil {
		t.Fatal(err)
	}
	list := d.backupsOf(BackupDeleted)
	if len(list) != backupsMax || list[0].ID != id(1) || list[len(list)-1].Table.Name != "events" {
		t.Errorf("%d backups, from %s", len(list), list[0].ID)
	}
	if _, err := d.Backup(user.ID); err != nil {
		t.Error(err)
	}
}

// A restore to an instant has all of a batch or nothing of it, also amid writes. Each batch counts
// one item up and another one down, and the clock stands still for each.
func TestHistoryAmidWrites(t *testing.T) {
	d := newDirectory().open(t)
	tab := d.table("events", func(td *TableDesc) { td.TTL = TTLDesc{} })
	d.keepHistory("events", 35)
	ctx, stop := context.WithCancel(context.Background())
	write := func(n int) error {
		up, down := item("pk", "up", "sk", 1, "g", "x", "n", n), item("pk", "down", "sk", 1, "g", "x", "n", -n)
		return d.Write(context.Background(),
			&Write{Table: tab, Key: keyOf(t, tab, up), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return up, nil }},
			&Write{Table: tab, Key: keyOf(t, tab, down), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return down, nil }})
	}
	type point struct {
		n  int
		at Instant // at it the count was n
	}
	points := make(chan point, 1)
	ended := make(chan struct{})
	defer func() { stop(); <-ended }()
	go func() {
		defer close(ended)
		for n := 1; ctx.Err() == nil; n++ {
			if err := write(n); err != nil {
				t.Error(err)
				return
			}
			select {
			case points <- point{n, d.Now()}:
			default:
			}
			if err := d.clock.Advance(time.Millisecond); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for i := range testkit.Size(3, 10) {
		var p point
		select {
		case p = <-points:
		case <-ended:
			t.Fatal("the writer has ended")
		}
		name := fmt.Sprint("again", i)
		if _, err := d.beginRestoreTo("events", p.at, name); err != nil {
			t.Fatal(err)
		}
		d.advance(0)
		counts := map[string]int{}
		for _, it := range d.items(d.reopened(name), Range{}) {
			n, _ := it.Get("n").Number().Millis()
			counts[string(it.Get("pk").Bytes())] = int(n / 1000)
		}
		if counts["up"] != p.n || counts["down"] != -p.n {
			t.Errorf("restored to %d: %v, and the count was %d", p.at, counts, p.n)
		}
	}
	stop()
	<-ended
	d.verify()
}

// historyModel changes a table at random, and remembers its items at each instant.
type historyModel struct {
	d      *db
	tab    *Table
	random *rand.Rand
	held   map[Instant][]string // at each instant: the items, as text
	aws    bool                 // changes of the TTL setting may choose aws expiry
	tables int                  // the number of restores
}

func (m *historyModel) step() error {
	key := func() []any { return []any{"pk", fmt.Sprint("k", m.random.IntN(6)), "sk", m.random.IntN(2)} }
	random := func() dynamo.Item {
		pairs := append(key(), "v", m.random.IntN(1000))
		if m.random.IntN(2) == 0 {
			pairs = append(pairs, "g", fmt.Sprint("g", m.random.IntN(3)))
		}
		for _, ttl := range []string{"ttl", "other"} {
			if m.random.IntN(2) == 0 {
				pairs = append(pairs, ttl, int(m.d.Now()/1000)+m.random.IntN(12)-2)
			}
		}
		return item(pairs...)
	}
	write := func(key, next dynamo.Item) *Write {
		return &Write{Table: m.tab, Key: keyOf(m.d.t, m.tab, key), ReadOld: true, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return next, nil }}
	}
	ctx := context.Background()
	var err error
	switch n := m.random.IntN(20); {
	case n < 8:
		it := random()
		err = m.d.Write(ctx, write(it, it))
	case n < 10:
		err = m.d.Write(ctx, write(item(key()...), nil))
	case n < 13:
		a, b := random(), random()
		if keyOf(m.d.t, m.tab, a) != keyOf(m.d.t, m.tab, b) {
			err = m.d.Write(ctx, write(a, a), write(b, nil))
		}
	case n < 14:
		_, err = m.d.Alter(ctx, "default", "events", func(td *TableDesc, _ Instant) error {
			td.TTL.Attribute = []string{"", "ttl", "other"}[m.random.IntN(3)]
			td.TTL.Expiry = Expiry{}
			if m.aws && m.random.IntN(2) == 0 {
				td.TTL.Expiry = Expiry{Mode: ExpiryAWS, Seed: 7, Delay: Delay{spread: true, least: 1000, most: 9000}}
			}
			return nil
		})
	case n < 15:
		_, err = m.d.Alter(ctx, "default", "events", func(td *TableDesc, _ Instant) error {
			if len(td.Indexes) > 1 {
				td.Indexes = td.Indexes[:1]
				return nil
			}
			td.Indexes = append(td.Indexes, IndexDesc{Name: "byV", Global: true, Projection: Projection{Type: "ALL"}, Key: KeySchema{Partition: []KeyAttr{{"v", dynamo.KindNumber}}}})
			return nil
		})
	default:
		_, err = m.d.Advance(ctx, time.Duration(m.random.IntN(3000))*time.Millisecond, 30*time.Second)
	}
	if err != nil {
		return err
	}
	// A new TTL setting hides overdue items of earlier generations as its backfill reaches them, at
	// this same instant.
	if _, err := m.d.Advance(ctx, 0, 30*time.Second); err != nil {
		return err
	}
	var held []string
	err = m.d.Read(ctx, func(v *View) error {
		held = nil
		return v.Range(m.tab, Range{}, func(it dynamo.Item) (bool, error) {
			held = append(held, string(dynamo.AppendItemJSON(nil, it)))
			return true, nil
		})
	})
	if err == nil {
		m.held[m.d.Now()] = held
	}
	return err
}

// check restores the table to some of the instants that allow accepts.
func (m *historyModel) check(n int, allow func(at Instant) bool) {
	t := m.d.t
	all := slices.Sorted(maps.Keys(m.held))
	all = slices.DeleteFunc(all, func(at Instant) bool { return !allow(at) })
	for range min(n, len(all)) {
		at := all[m.random.IntN(len(all))]
		m.tables++
		name := fmt.Sprint("restored", m.tables)
		tab := m.d.restoreTo("events", at, name)
		if diff := cmp.Diff(m.held[at], texts(m.d.items(tab, Range{}))); diff != "" {
			t.Errorf("restored to %d (-want +got):\n%s", at, diff)
		}
		if d := tab.Desc(); d.TTL.Generation != 0 || d.Restore.Backup != "" || d.Restore.At != at {
			t.Errorf("the restored table is %+v", d)
		}
	}
	m.d.verify() // the index entries too
}

// Whatever happens to a table, a restore to an instant has exactly the items that could be read then.
func TestHistoryModel(t *testing.T) {
	for seed := range uint64(testkit.Size(4, 40)) {
		for name, dir := range map[string]directory{
			"memory": newDirectory(func(o *Options) { o.Dir, o.FS = "", nil }),
			"sync":   newDirectory(),
		} {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				d := dir.open(t)
				m := &historyModel{d: d, tab: d.table("events"), random: rand.New(rand.NewPCG(seed, 0)), held: map[Instant][]string{}, aws: seed%2 == 1}
				d.backfillItems = 3
				for range 10 {
					if err := m.step(); err != nil {
						t.Fatal(err)
					}
				}
				clear(m.held)
				d.keepHistory("events", 1)
				for i := range 60 {
					if err := m.step(); err != nil {
						t.Fatal(err)
					}
					if i%20 == 19 {
						m.check(4, func(Instant) bool { return true })
						m.checkExports(4)
					}
				}
				if name != "memory" {
					d.close()
					m.d = dir.open(t)
					m.tab = m.d.reopened("events")
					m.check(2, func(Instant) bool { return true })
					m.checkExports(2)
					m.d.close()
				}
			})
		}
	}
}

// The power is cut at a random file operation. The instants before the cut can be restored.
func TestHistoryPowerCut(t *testing.T) {
	for seed := range uint64(testkit.Size(15, 200)) {
		random := rand.New(rand.NewPCG(seed, 1))
		disk := kv.NewCrashFS()
		d := open(t, Options{Dir: "data", FS: disk, Clock: frozenClock(), ClockControl: true, ReserveBytes: -1})
		m := &historyModel{d: d, tab: d.table("events"), random: random, held: map[Instant][]string{}, aws: seed%2 == 1}
		d.keepHistory("events", 1)
		disk.CutAfter(disk.Ops() + int64(1+random.IntN(200)))
		end := minInstant
		early := map[string][]string{}
		for i := range 100 {
			end = d.Now()
			if err := m.step(); err != nil || disk.WasCut() {
				break
			}
			if i%30 == 29 { // it may be under way at the cut
				name := fmt.Sprint("early", i)
				if _, err := d.beginRestoreTo("events", d.Now(), name); err != nil {
					break
				}
				early[name] = m.held[d.Now()]
			}
		}
		_ = d.stop()
		_ = d.Engine.Close()
		d = open(t, Options{Dir: "data", FS: disk.AfterCrash(), Clock: frozenClock(), ClockControl: true, ReserveBytes: -1})
		d.advance(0)
		for name, held := range early {
			if diff := cmp.Diff(held, texts(d.items(d.reopened(name), Range{}))); diff != "" {
				t.Errorf("seed %d: a restore from before the crash (-want +got):\n%s", seed, diff)
			}
		}
		m.d, m.tab = d, d.reopened("events")
		now := d.Now() // the clock may have lost an advance
		m.check(3, func(at Instant) bool { return at < end && at <= now })
		if names, err := d.kv.ListBelow(backupsDir); err != nil || len(names) != 0 {
			t.Errorf("seed %d: the restores left %v, %v", seed, names, err)
		}
		d.close()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Check reads every history record.
func TestCheckHistory(t *testing.T) {
	at := Instant(epoch.UnixMilli())
	for name, c := range map[string]struct {
		edit func(b *kv.Batch, key, value []byte)
		want string
	}{
		"sound":        {func(*kv.Batch, []byte, []byte) {}, ""},
		"no key":       {func(b *kv.Batch, key, _ []byte) { b.Set(key, []byte{3}) }, "plain: history record 2 of 1767225600000: corrupt store: a history record of 1 bytes has no key"},
		"half an item": {func(b *kv.Batch, key, value []byte) { b.Set(key, value[:len(value)-1]) }, "plain: history record 2 of 1767225600000: corrupt store"},
		"item of other key": {func(b *kv.Batch, key, value []byte) {
			b.Set(key, append(append([]byte{}, value[:6]...), append([]byte{'x'}, value[7:]...)...))
		}, "its attributes have the key"},
		"short key":          {func(b *kv.Batch, key, value []byte) { b.Set(key[:len(key)-1], value) }, "has 20 bytes, not 21"},
		"after the last":     {func(b *kv.Batch, _, value []byte) { b.Set(appendHistoryKey(nil, 1, at+1, 3), value) }, "plain: history record 3 is of 1767225600001"},
		"of another table":   {func(b *kv.Batch, _, value []byte) { b.Set(appendHistoryKey(nil, 7, at, 3), value) }, "1 keys under 0600000007 belong to no table"},
		"while it is off":    {func(b *kv.Batch, _, value []byte) { b.Set(appendHistoryKey(nil, 2, at, 3), value) }, "off: it has 1 history records, and its point-in-time recovery is off"},
		"behind the history": {func(b *kv.Batch, _, value []byte) { b.Set([]byte{spaceHistory + 1, 0}, value) }, "belong to no keyspace"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDirectory()
			d := dir.open(t)
			tab := d.table("plain", bareTable)
			d.table("off", bareTable)
			d.keepHistory("plain", 35)
			d.put(tab, item("pk", "a", "sk", 1))
			d.delete(tab, item("pk", "a", "sk", 1))
			key := appendHistoryKey(nil, tab.id, at, 2)
			value, ok, err := get(d.kv, key)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			d.close()
			editStore(t, dir, func(b *kv.Batch) { c.edit(b, key, value) })
			var found []string
			for _, f := range checkAll(t, dir.fs, "data") {
				found = append(found, f.String())
			}
			text := strings.Join(found, "\n")
			if (len(found) == 0) != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("check finds\n%s", text)
			}
		})
	}
}

// Salvage does not copy histories. It says so, and the new ones begin with the new database.
func TestSalvageHistory(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events")
	d.keepHistory("events", 35)
	d.put(tab, item("pk", "a", "sk", 1))
	d.put(tab, item("pk", "a", "sk", 1, "v", 1))
	d.advance(time.Hour)
	d.put(tab, item("pk", "a", "sk", 1, "v", 2))
	end := d.Now()
	want := d.items(tab, Range{})
	d.close()
	var lost []string
	_, err := Salvage(context.Background(), dir.fs, "data", "new", 0, func(_, _ int64) {}, func(f Fault) { lost = append(lost, f.String()) })
	said := []string{"events: its history for point-in-time recovery is not copied: it begins again at 2026-01-01T01:00:00Z"}
	if diff := cmp.Diff(said, lost); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	o := dir.options()
	o.Dir = "new"
	d = open(t, o)
	defer d.close()
	if n := d.historyKeys(); n != 0 {
		t.Errorf("%d history records", n)
	}
	if _, err := d.beginRestoreTo("events", end-1, "none"); err != ErrRestoreInstant {
		t.Errorf("a restore to before the salvage: %v", err)
	}
	d.wantItems(d.restoreTo("events", Never, "again"), want)
	d.verify()
}

// A restore to an instant continues after a restart in either half.
func TestHistoryResumes(t *testing.T) {
	for rounds := range 9 {
		dir := newDirectory()
		d := dir.open(t)
		tab := d.table("events")
		d.keepHistory("events", 35)
		for i := range 6 {
			d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "g", "x"))
		}
		at, want := d.Now(), d.items(tab, Range{})
		d.advance(time.Millisecond)
		for i := range 6 {
			d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "g", "y"))
			d.put(tab, item("pk", fmt.Sprint("new", i), "sk", 1, "g", "y"))
		}
		if err := d.stop(); err != nil {
			t.Fatal(err)
		}
		d.stop = func() error { return nil }
		d.backfillItems = 3
		again, err := d.beginRestoreTo("events", at, "again")
		if err != nil {
			t.Fatal(err)
		}
		for range rounds {
			if _, err := again.restoreRound(context.Background(), again.Desc()); err != nil {
				t.Fatal(err)
			}
		}
		d.closeSources()
		d.close()
		d = dir.open(t)
		d.advance(0)
		d.wantItems(d.reopened("again"), want)
		byG := Range{Index: d.reopened("again").Desc().Index("byG"), Partition: []dynamo.Value{dynamo.AppendString(nil, "x")}}
		if n := len(d.items(d.reopened("again"), byG)); n != 6 {
			t.Errorf("after %d rounds and a restart the index has %d items", rounds, n)
		}
		d.verify()
		d.close()
	}
}

// On a full disk a table with a history can be deleted, which makes room. No backup remains.
func TestDeletedTableFullDisk(t *testing.T) {
	fs := &fullFS{FS: kv.NewMemFS()}
	o := crashOptions(fs)
	o.ReserveBytes = 4096
	d := open(t, o)
	d.put(d.table("plain", bareTable), item("pk", "a", "sk", 1))
	d.keepHistory("plain", 35)
	d.close()
	fs.full.Store(true)
	d = open(t, o)
	defer d.close()
	if _, err := d.beginRestoreTo("plain", Never, "none"); err != ErrDiskFull {
		t.Errorf("a restore on a full disk: %v", err)
	}
	if _, err := d.DropTable(context.Background(), "default", "plain", nil); err != nil {
		t.Fatal(err)
	}
	if list, err := d.Backups(); err != nil || len(list) != 0 {
		t.Errorf("backups: %v, %v", list, err)
	}
	d.verify()
}
