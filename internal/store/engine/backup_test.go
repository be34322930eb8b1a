package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// backup makes a backup of a table.
func (d *db) backup(table string) *BackupDesc {
	d.t.Helper()
	b, err := d.CreateBackup(context.Background(), "default", table, "daily")
	if err != nil {
		d.t.Fatal(err)
	}
	return b
}

// beginRestore creates a table from a backup, with all its indexes.
func (d *db) beginRestore(b *BackupDesc, name string) (*Table, error) {
	return d.CreateTable(context.Background(), TableDesc{
		Namespace: "default", Name: name, Key: b.Table.Key, Indexes: b.Table.Indexes,
		Restore: RestoreDesc{Backup: b.ID, Table: b.Table.Name, At: b.Created, Running: true},
	})
}

// restore creates a table from a backup and waits until it can be used.
func (d *db) restore(b *BackupDesc, name string) *Table {
	d.t.Helper()
	tab, err := d.beginRestore(b, name)
	if err != nil {
		d.t.Fatal(err)
	}
	d.advance(0) // waits for backfills and restores
	if _, err := d.Table("default", name); err != nil {
		d.t.Fatalf("table %s: %v", name, err)
	}
	return tab
}

// wantItems compares a table's items with the wanted ones.
func (d *db) wantItems(tab *Table, want []dynamo.Item) {
	d.t.Helper()
	if diff := cmp.Diff(texts(want), texts(d.items(tab, Range{}))); diff != "" {
		d.t.Errorf("table %s (-want +got):\n%s", tab.Desc().Name, diff)
	}
}

func texts(items []dynamo.Item) (out []string) {
	for _, it := range items {
		out = append(out, string(dynamo.AppendItemJSON(nil, it)))
	}
	return out
}

// The plain case: a table without index, stream and TTL is backed up, changed and dropped. Its
// backup outlives it, and restores what it held.
func TestBackupPlain(t *testing.T) {
	for name, dir := range map[string]directory{
		"memory": newDirectory(func(o *Options) { o.Dir, o.FS = "", nil }),
		"sync":   newDirectory(),
		"async":  newDirectory(func(o *Options) { o.Durability = kv.Async }),
	} {
		t.Run(name, func(t *testing.T) {
			d := dir.open(t)
			plain := func(td *TableDesc) { td.Indexes, td.TTL, td.Stream = nil, TTLDesc{}, StreamSpec{} }
			tab := d.table("plain", plain)
			other := d.table("other", plain)
			for i := range 10 {
				d.put(tab, item("pk", fmt.Sprint(i), "sk", i, "v", "before"))
				d.put(other, item("pk", fmt.Sprint(i), "sk", i, "v", "other"))
			}
			want := d.items(tab, Range{})
			b := d.backup("plain")
			if b.Items != 10 || b.Bytes == 0 || b.Created != d.Now() || b.Creating || b.Table.Name != "plain" {
				t.Errorf("the backup is %+v", b)
			}
			d.put(tab, item("pk", "0", "sk", 0, "v", "after"))
			d.delete(tab, item("pk", "1", "sk", 1))
			if _, err := d.DropTable(context.Background(), "default", "plain", nil); err != nil {
				t.Fatal(err)
			}
			again := d.restore(b, "plain")
			d.wantItems(again, want)
			d.put(again, item("pk", "0", "sk", 0, "v", "new"))
			d.wantItems(d.restore(b, "third"), want)
			d.verify()
		})
	}
}

// Backups are found after a restart, oldest first, and are gone for good after their deletion.
func TestBackupsAfterRestart(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events")
	d.put(tab, item("pk", "a", "sk", 1, "g", "x"))
	first := d.backup("events")
	d.advance(time.Second)
	second := d.backup("events")
	d.close()

	d = dir.open(t)
	list, err := d.Backups()
	if err != nil || len(list) != 2 || list[0].ID != first.ID || list[1].ID != second.ID {
		t.Fatalf("after a restart: %v, %v", list, err)
	}
	if diff := cmp.Diff(first, list[0], cmp.AllowUnexported(Delay{})); diff != "" {
		t.Errorf("the row changed (-before +after):\n%s", diff)
	}
	refusal := errors.New("no")
	if _, err := d.DeleteBackup(context.Background(), first.ID, func(*BackupDesc) error { return refusal }); err != refusal {
		t.Errorf("a refused deletion: %v", err)
	}
	allow := func(*BackupDesc) error { return nil }
	if _, err := d.DeleteBackup(context.Background(), first.ID, allow); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DeleteBackup(context.Background(), first.ID, allow); err != ErrBackupNotFound {
		t.Errorf("a second deletion: %v", err)
	}
	if _, err := d.Backup(first.ID); err != ErrBackupNotFound {
		t.Errorf("a deleted backup: %v", err)
	}
	names, err := dir.fs.List(dir.fs.PathJoin("data", backupsDir))
	if err != nil || len(names) != 1 || names[0] != second.ID {
		t.Errorf("directories: %v, %v", names, err)
	}
	d.close()
	d = dir.open(t)
	if _, err := d.Backup(second.ID); err != nil {
		t.Error(err)
	}
	if _, err := d.Backup(first.ID); err != ErrBackupNotFound {
		t.Errorf("a deleted backup after a restart: %v", err)
	}
}

// TestRestoredTable: a restored table has all types of values and its indexes, and none of the
// source's stream, TTL and generations. Its restore writes no record.
func TestRestoredTable(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) {
		td.Indexes = append(td.Indexes, IndexDesc{
			Name: "local", Projection: Projection{Type: "KEYS_ONLY"},
			Key: KeySchema{Partition: []KeyAttr{{"pk", dynamo.KindString}}, Sort: []KeyAttr{{"at", dynamo.KindNumber}}},
		}, IndexDesc{
			Name: "composite", Global: true, Projection: Projection{Type: "KEYS_ONLY"},
			Key: KeySchema{Partition: []KeyAttr{{"g", dynamo.KindString}, {"pk", dynamo.KindString}}, Sort: []KeyAttr{{"at", dynamo.KindNumber}, {"sk", dynamo.KindNumber}}},
		})
	})
	n := testkit.Size(3_000, 100_000)
	value := `{"pk":{"S":"all"},"sk":{"N":"1"},"g":{"S":"x"},"b":{"B":"AP8="},"l":{"L":[{"NULL":true},{"BOOL":false}]},"m":{"M":{"k":{"N":"-1.5"}}},"ss":{"SS":["a","b"]},"ns":{"NS":["1","2"]},"bs":{"BS":["AA=="]}}`
	all := itemFromJSON(t, value)
	d.put(tab, all)
	for from := 0; from < n; from += 50 {
		var ws []*Write
		for i := from; i < min(from+50, n); i++ {
			it := item("pk", fmt.Sprint("p", i%100), "sk", i, "g", fmt.Sprint(i%7), "at", n-i, "ttl", unix(time.Hour))
			ws = append(ws, &Write{Table: tab, Key: keyOf(t, tab, it), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }})
		}
		if err := d.Write(context.Background(), ws...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Alter(context.Background(), "default", "events", func(td *TableDesc, _ Instant) error { td.TTL.Attribute = "other"; return nil }); err != nil {
		t.Fatal(err)
	}
	b := d.backup("events") // in the middle of a backfill, perhaps
	again := d.restore(b, "again")
	desc := again.Desc()
	if desc.TTL.Generation != 0 || desc.TTL.Attribute != "" || desc.Stream != (StreamSpec{}) || desc.Restore.Running || desc.Restore.Backup != b.ID {
		t.Errorf("the restored table is %+v", desc)
	}
	d.wantItems(again, d.items(tab, Range{}))
	for _, name := range []string{"byG", "local", "composite"} {
		got, want := d.items(again, Range{Index: desc.Index(name)}), d.items(tab, Range{Index: tab.Desc().Index(name)})
		if len(want) == 0 || !cmp.Equal(texts(want), texts(got)) {
			t.Errorf("index %s: %d items, want %d", name, len(got), len(want))
		}
	}
	if string(d.get(again, all)) != string(all) {
		t.Errorf("got %s", texts([]dynamo.Item{d.get(again, all)}))
	}
	lower, upper := tableSpan(spaceItems, desc.ID)
	it := d.kv.NewIter(lower, upper)
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if h, _, err := splitStored(it.Value()); err != nil || h.generation != 0 || h.deadline != Never {
			t.Fatalf("a restored item has the header %+v, %v", h, err)
		}
	}
	d.verify()
}

func itemFromJSON(t *testing.T, text string) dynamo.Item {
	t.Helper()
	var j dynamo.JSON
	j.Reset([]byte(text))
	out, invalid, fatal := j.AppendItem(nil)
	if err := errors.Join(invalid, fatal); err != nil {
		t.Fatal(err)
	}
	return dynamo.Item(out)
}

// restoreLaw is a table with items of all kinds of deadlines, and its restored backup.
type restoreLaw struct {
	source            []string // the keys that a read showed at the backup's instant
	restored, enabled []string // the restored table's keys: at once, and once TTL is enabled on it
}

func newRestoreLaw(t testing.TB, expiry Expiry) (out restoreLaw) {
	d := openMemory(t)
	tab := d.table("events", by(expiry))
	if err := d.stop(); err != nil { // no reaper: expired items stay in the store
		t.Fatal(err)
	}
	d.stop = func() error { return nil }
	for name, in := range map[string]time.Duration{"expired": time.Second, "just": 10 * time.Second, "soon": 20 * time.Second, "later": time.Hour} {
		d.put(tab, item("pk", name, "sk", 1, "ttl", unix(in)))
	}
	d.put(tab, item("pk", "never", "sk", 1))
	if err := d.clock.Advance(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	keys := func(tab *Table) (keys []string) {
		for _, it := range d.items(tab, Range{}) {
			keys = append(keys, string(it.Get("pk").Bytes()))
		}
		return keys
	}
	out.source = keys(tab)
	b := d.backup("events")
	if err := d.clock.Advance(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	again, err := d.beginRestore(b, "again")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.backfillAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	out.restored = keys(again)
	_, err = d.Alter(context.Background(), "default", "again", func(td *TableDesc, _ Instant) error {
		td.TTL.Attribute = "ttl"
		return nil
	})
	if err == nil {
		err = d.backfillAll(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	out.enabled = keys(again)
	d.verify()
	return out
}

// TestRestoreStrictlyGone: what a read at the backup's instant did not show is not restored, and
// everything else is. An item that has expired since is alive in the restored table, which has no
// TTL, and expires when TTL is enabled.
func TestRestoreStrictlyGone(t *testing.T) {
	holds(t, func(t testing.TB) {
		got := newRestoreLaw(t, Expiry{})
		if diff := cmp.Diff(got.source, got.restored); diff != "" || len(got.source) != 3 {
			t.Errorf("a read at the backup's instant showed %v (-source +restored):\n%s", got.source, diff)
		}
		want := slices.DeleteFunc(slices.Clone(got.source), func(key string) bool { return key == "soon" })
		if diff := cmp.Diff(want, got.enabled); diff != "" {
			t.Errorf("once TTL is enabled (-want +got):\n%s", diff)
		}
	}, invariant.RestoreExpired)
}

// TestRestoreLateExpiry: in aws expiry a read shows expired items until their removal, and so does
// the restored table.
func TestRestoreLateExpiry(t *testing.T) {
	got := newRestoreLaw(t, Expiry{Mode: ExpiryAWS, Seed: 7})
	if diff := cmp.Diff(got.source, got.restored); diff != "" || len(got.source) != 5 {
		t.Errorf("a read at the backup's instant showed %v (-source +restored):\n%s", got.source, diff)
	}
}

// A table under restore can be described and is otherwise missing: it cannot be read, changed,
// backed up, dropped or created, and its backup cannot be deleted.
func TestRestoreRunning(t *testing.T) {
	d := openMemory(t)
	ctx := context.Background()
	d.put(d.table("events"), item("pk", "a", "sk", 1))
	b := d.backup("events")
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	d.stop = func() error { return nil }
	if _, err := d.beginRestore(b, "again"); err != nil {
		t.Fatal(err)
	}
	_, err := d.Table("default", "again")
	_, altered := d.Alter(ctx, "default", "again", func(*TableDesc, Instant) error { return nil })
	_, dropped := d.DropTable(ctx, "default", "again", nil)
	_, saved := d.CreateBackup(ctx, "default", "again", "x")
	for _, err := range []error{err, altered, dropped, saved} {
		if err != ErrTableCreating || !errors.Is(err, ErrTableNotFound) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := d.beginRestore(b, "again"); err != ErrTableExists {
		t.Errorf("a table of its name: %v", err)
	}
	if _, err := d.DeleteBackup(ctx, b.ID, func(*BackupDesc) error { return nil }); err != ErrBackupInUse {
		t.Errorf("a deletion of its backup: %v", err)
	}
	tab, err := d.TableToDescribe("default", "again")
	if err != nil || !tab.Desc().Restore.Running {
		t.Errorf("its description: %v", err)
	}
	if _, err := d.beginRestore(&BackupDesc{ID: "x", Table: b.Table}, "none"); err != ErrBackupNotFound {
		t.Errorf("a restore from nothing: %v", err)
	}
	for i := 1; i < restoresMax; i++ {
		if _, err := d.beginRestore(b, fmt.Sprint("more", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.beginRestore(b, "toomany"); err != ErrTooManyRestores {
		t.Errorf("one restore more: %v", err)
	}
	for range restoresMax { // a restore that waits for its turn ends the round
		if err := d.backfillAll(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Table("default", "again"); err != nil {
		t.Errorf("after its end: %v", err)
	}
}

// The number of backups is bounded.
func TestTooManyBackups(t *testing.T) {
	d := openMemory(t)
	d.table("events")
	for i := range backupsMax {
		d.backups.byID[fmt.Sprint(i)] = &BackupDesc{}
	}
	if _, err := d.CreateBackup(context.Background(), "default", "events", "one more"); err != ErrTooManyBackups {
		t.Errorf("got %v", err)
	}
}

// Backups and restores run while writers write. Each writer counts one item up and another one down
// in one batch, so in every consistent state their sum is 0.
func TestBackupAmidWrites(t *testing.T) {
	d := newDirectory().open(t)
	tab := d.table("events", func(td *TableDesc) { td.TTL = TTLDesc{} })
	const writers = 4
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer func() { stop(); running.Wait() }()
	write := func(w, n int) error {
		up, down := item("pk", fmt.Sprint("up", w), "sk", 1, "n", n), item("pk", fmt.Sprint("down", w), "sk", 1, "n", -n)
		return d.Write(context.Background(),
			&Write{Table: tab, Key: keyOf(t, tab, up), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return up, nil }},
			&Write{Table: tab, Key: keyOf(t, tab, down), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return down, nil }})
	}
	var acked [writers]int
	for w := range writers {
		if err := write(w, 1); err != nil {
			t.Fatal(err)
		}
		acked[w] = 1
	}
	var mu sync.Mutex
	for w := range writers {
		running.Go(func() {
			for n := 2; ctx.Err() == nil; n++ {
				if err := write(w, n); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked[w] = n
				mu.Unlock()
			}
		})
	}
	for i := range testkit.Size(3, 10) {
		if t.Failed() {
			break // a writer has ended
		}
		mu.Lock()
		before := acked
		mu.Unlock()
		b := d.backup("events")
		again, err := d.beginRestore(b, fmt.Sprint("again", i))
		if err != nil {
			t.Fatal(err)
		}
		d.advance(0)
		counts := map[string]int{}
		for _, it := range d.items(again, Range{}) {
			n, _ := it.Get("n").Number().Millis()
			counts[string(it.Get("pk").Bytes())] = int(n)
		}
		for w := range writers {
			up, down := counts[fmt.Sprint("up", w)], counts[fmt.Sprint("down", w)]
			if up+down != 0 || up < before[w]*1000 {
				t.Errorf("backup %d: writer %d counted to %d and %d, and %d was acknowledged before", i, w, up, down, before[w]*1000)
			}
		}
	}
	stop()
	running.Wait()
	d.verify()
}

// A restore continues after a restart where it stopped.
func TestRestoreResumes(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events")
	for i := range 20 {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "g", "x"))
	}
	want := d.items(tab, Range{})
	b := d.backup("events")
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	d.stop = func() error { return nil }
	d.backfillItems = 3
	again, err := d.beginRestore(b, "again")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := again.restoreRound(context.Background(), again.Desc()); err != nil {
			t.Fatal(err)
		}
	}
	d.closeSources()
	if n, _, err := d.countTable(context.Background(), again.Desc(), d.Now(), 1000); err != nil || n.Items != 9 {
		t.Fatalf("%d items after three rounds, %v", n.Items, err)
	}
	d.close()
	d = dir.open(t)
	d.advance(0)
	d.wantItems(d.reopened("again"), want)
	if got := d.items(d.reopened("again"), Range{Index: d.reopened("again").Desc().Index("byG")}); len(got) != len(want) {
		t.Errorf("the index has %d items", len(got))
	}
	d.verify()
}

// The start removes what a crash left of a backup: a row that is CREATING, a row without files, and
// files without a row.
func TestBackupLeftovers(t *testing.T) {
	var logText bytes.Buffer
	log := &lockedWriter{w: &logText}
	dir := newDirectory(func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	d := dir.open(t)
	d.put(d.table("events"), item("pk", "a", "sk", 1))
	kept, copied := d.backup("events"), d.backup("events")
	d.close()
	at := func(name string) string { return dir.fs.PathJoin(dir.fs.PathJoin("data", backupsDir), name) }
	strays := []string{"stray", "files", "0000000000001-00000001", "00000000000001-0000000g", "00000000000001-0000000A"}
	var failed error
	for _, name := range append(strays, "00000000000001-00000001", "00000000000002-0123abcd") {
		failed = errors.Join(failed, dir.fs.MkdirAll(at(name), 0o700))
	}
	if err := errors.Join(failed, dir.fs.RemoveAll(at(copied.ID))); err != nil {
		t.Fatal(err)
	}
	unfinished := BackupDesc{ID: "00000000000001-00000001", Name: "unfinished", Creating: true}
	editStore(t, dir, func(b *kv.Batch) { setJSON(b, backupKey(unfinished.ID), unfinished) })

	d = dir.open(t)
	list, err := d.Backups()
	if err != nil || len(list) != 1 || list[0].ID != kept.ID {
		t.Errorf("backups: %v, %v", list, err)
	}
	names, err := dir.fs.List("data/" + backupsDir)
	want := append(strays, kept.ID)
	slices.Sort(want)
	slices.Sort(names)
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("directories: %v, %v", names, err)
	}
	for _, text := range []string{"a backup that was not finished is removed", "a backup without files is removed", "00000000000002-0123abcd"} {
		if !strings.Contains(logged(log, &logText), text) {
			t.Errorf("the log lacks %q", text)
		}
	}
	d.restore(kept, "again")
	d.verify()
}

// A description that does not decode costs its backup only: the database opens, the other backups
// can be used, the files stay, and Check reports it.
func TestBackupUnreadableRow(t *testing.T) {
	var logText bytes.Buffer
	log := &lockedWriter{w: &logText}
	dir := newDirectory(func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	d := dir.open(t)
	d.put(d.table("events"), item("pk", "a", "sk", 1))
	sound, garbled, moved := d.backup("events"), d.backup("events"), d.backup("events")
	d.close()
	editStore(t, dir, func(b *kv.Batch) {
		b.Set(backupKey(garbled.ID), []byte("{"))
		b.Delete(backupKey(moved.ID))
		setJSON(b, backupKey("elsewhere"), moved)
	})
	for range 2 {
		d = dir.open(t)
		list, err := d.Backups()
		if err != nil || len(list) != 1 || list[0].ID != sound.ID {
			t.Errorf("backups: %v, %v", list, err)
		}
		d.close()
		if names, err := dir.fs.List("data/" + backupsDir); err != nil || len(names) != 3 {
			t.Errorf("directories: %v, %v", names, err)
		}
	}
	if text := logged(log, &logText); strings.Count(text, "its description is damaged") != 4 || !strings.Contains(text, garbled.ID) {
		t.Errorf("the log says\n%s", text)
	}
	var faults []string
	if err := Check(context.Background(), dir.fs, "data", func(_, _ int64) {}, func(f Fault) { faults = append(faults, f.String()) }); err != nil || len(faults) != 2 {
		t.Errorf("check finds %q, %v", faults, err)
	}
}

// A file in place of the directory of the backups does not keep the database closed. Its backups are
// there again once the directory is.
func TestBackupsNoDirectory(t *testing.T) {
	directory := t.TempDir()
	at := filepath.Join(directory, backupsDir)
	dir := newDirectory(func(o *Options) { o.Dir, o.FS = directory, nil })
	d := dir.open(t)
	d.put(d.table("events"), item("pk", "a", "sk", 1))
	b := d.backup("events")
	d.close()
	if err := errors.Join(os.Rename(at, at+".away"), os.WriteFile(at, []byte("notes"), 0o600)); err != nil {
		t.Fatal(err)
	}
	d = dir.open(t)
	if _, err := d.CreateBackup(context.Background(), "default", "events", "daily"); err == nil || !strings.Contains(err.Error(), at+": not a directory") {
		t.Errorf("a backup without a directory: %v", err)
	}
	if _, err := d.beginRestore(b, "again"); err != nil {
		t.Fatal(err)
	}
	d.advance(0)
	if _, err := d.TableToDescribe("default", "again"); err != ErrTableNotFound {
		t.Errorf("the table of a restore without files: %v", err)
	}
	d.verify()
	d.close()
	var faults []string
	err := Check(context.Background(), nil, directory, func(_, _ int64) {}, func(f Fault) { faults = append(faults, f.String()) })
	if text := strings.Join(faults, "\n"); err != nil || !strings.Contains(text, "the directory of the backups cannot be read") || !strings.Contains(text, "the files of its backup "+b.ID) {
		t.Errorf("check finds %s, %v", text, err)
	}
	if err := errors.Join(os.Remove(at), os.Rename(at+".away", at)); err != nil {
		t.Fatal(err)
	}
	d = dir.open(t)
	d.restore(b, "again")
	d.verify()
}

// damageBackup changes a byte in the middle of each table file of a backup.
func damageBackup(t *testing.T, dir directory, b *BackupDesc) {
	t.Helper()
	at := dir.fs.PathJoin(dir.fs.PathJoin("data", backupsDir), b.ID)
	names, err := dir.fs.List(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		path := dir.fs.PathJoin(at, name)
		content, err := readFile(dir.fs, path)
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/4] ^= 0xff
		if err := dir.fs.Remove(path); err != nil { // it is a hard link
			t.Fatal(err)
		}
		writeFile(t, dir.fs, path, content)
	}
}

// logged returns what has been written to a log.
func logged(w *lockedWriter, text *bytes.Buffer) string {
	w.Lock()
	defer w.Unlock()
	return text.String()
}

// A damaged backup ends its restore: the log names the file, the new table is gone, and the source
// and other backups stay as they were. Check finds the damage.
func TestRestoreDamaged(t *testing.T) {
	var logText bytes.Buffer
	log := &lockedWriter{w: &logText}
	dir := newDirectory(func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	d := dir.open(t)
	tab := d.table("events")
	for i := range 200 {
		d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "v", strings.Repeat(fmt.Sprint(i), 100)))
	}
	if err := d.kv.Flush(); err != nil {
		t.Fatal(err)
	}
	want := d.items(tab, Range{})
	sound, damaged := d.backup("events"), d.backup("events")
	damageBackup(t, dir, damaged)
	if _, err := d.beginRestore(damaged, "again"); err != nil {
		t.Fatal(err)
	}
	d.advance(0)
	if _, err := d.TableToDescribe("default", "again"); err != ErrTableNotFound {
		t.Errorf("the table of a failed restore: %v", err)
	}
	if text := logged(log, &logText); !strings.Contains(text, "a restore has failed") || !strings.Contains(text, ".sst") || !strings.Contains(text, damaged.ID) {
		t.Errorf("the log says\n%s", text)
	}
	d.wantItems(tab, want)
	d.wantItems(d.restore(sound, "again"), want)
	d.verify()
	d.close()
	var faults []string
	if err := Check(context.Background(), dir.fs, "data", func(_, _ int64) {}, func(f Fault) { faults = append(faults, f.String()) }); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(faults, "\n"); len(faults) == 0 || !strings.Contains(text, backupsDir+"/"+damaged.ID) || strings.Contains(text, sound.ID) {
		t.Errorf("check finds\n%s", text)
	}
	if err := dir.fs.RemoveAll("data/" + backupsDir + "/" + sound.ID); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	faults = nil
	if err := Check(context.Background(), dir.fs, "data", func(_, _ int64) {}, func(f Fault) { faults = append(faults, f.String()) }); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(faults, "\n"); !strings.Contains(text, "the files of its backup "+sound.ID+" (daily) are missing") {
		t.Errorf("check finds\n%s", text)
	}
}

// Salvage reports each backup and each unfinished restore, and copies neither.
func TestSalvageBackups(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	d.put(d.table("events"), item("pk", "a", "sk", 1))
	b := d.backup("events")
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	d.stop = func() error { return nil }
	again, err := d.beginRestore(b, "again")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.restoreRound(context.Background(), again.Desc()); err != nil {
		t.Fatal(err)
	}
	d.closeSources()
	d.close()
	var lost []string
	_, err = Salvage(context.Background(), dir.fs, "data", "new", 0, func(_, _ int64) {}, func(f Fault) { lost = append(lost, f.String()) })
	want := []string{
		"events: its backup " + b.ID + " (daily) is not copied",
		"again: it is not copied: its restore from the backup " + b.ID + " has not ended",
	}
	if diff := cmp.Diff(want, lost); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	o := dir.options()
	o.Dir = "new"
	d = open(t, o)
	defer d.close()
	if len(d.Tables()) != 1 {
		t.Errorf("%d tables", len(d.Tables()))
	}
	d.verify()
}

// The power is cut at every file operation of a backup and of a restore. An acknowledged backup
// survives with all acknowledged items, an acknowledged deletion stays, and a restore that had
// begun ends after the next start.
func TestBackupPowerCut(t *testing.T) {
	steps := func(d *db, note func(step string)) (b *BackupDesc, err error) {
		ctx := context.Background()
		tab := d.table("events")
		for i := range 5 {
			d.put(tab, item("pk", fmt.Sprint(i), "sk", 1, "g", "x"))
		}
		note("written")
		if b, err = d.CreateBackup(ctx, "default", "events", "daily"); err != nil {
			return nil, err
		}
		note("saved")
		again, err := d.beginRestore(b, "again")
		if err != nil {
			return b, err
		}
		note("restoring")
		for more := true; more; {
			if more, err = again.restoreRound(ctx, again.Desc()); err != nil {
				return b, err
			}
		}
		note("restored")
		if _, err = d.DeleteBackup(ctx, b.ID, func(*BackupDesc) error { return nil }); err != nil {
			return b, err
		}
		note("deleted")
		return b, nil
	}
	var ops, written int64
	run := func(cut int64) (disk *kv.CrashFS, b *BackupDesc, reached string) {
		disk = kv.NewCrashFS()
		if cut > 0 {
			disk.CutAfter(cut)
		}
		o := Options{Dir: "data", FS: disk, Clock: frozenClock(), ClockControl: true, ReserveBytes: -1}
		e, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		e.backfillItems = 2
		d := &db{t: t, Engine: e}
		b, _ = steps(d, func(step string) {
			if disk.WasCut() {
				return
			}
			if reached = step; step == "written" {
				written = disk.Ops()
			}
		})
		e.closeSources()
		ops = disk.Ops()
		_ = e.Close()
		return disk, b, reached
	}
	run(0)
	last := ops
	reachedAll := map[string]bool{}
	for cut := written + 1; cut <= last; cut += int64(testkit.Size(3, 1)) {
		disk, b, reached := run(cut)
		reachedAll[reached] = true
		for round := range 2 { // the second start finds what the first one left
			o := Options{Dir: "data", FS: disk.AfterCrash(), Clock: frozenClock(), ClockControl: true, ReserveBytes: -1}
			d := open(t, o)
			list, err := d.Backups()
			if err != nil {
				t.Fatal(err)
			}
			if reached != "written" && reached != "deleted" && reached != "restored" && (b == nil || len(list) != 1 || list[0].ID != b.ID) {
				t.Fatalf("cut %d: acknowledged backup %v, after the crash %v", cut, b, list)
			}
			if reached == "deleted" && len(list) != 0 {
				t.Fatalf("cut %d: the deleted backup is there", cut)
			}
			d.advance(0)
			for _, b := range list {
				if n := len(d.items(d.restore(b, fmt.Sprint("check", round)), Range{})); n != 5 {
					t.Fatalf("cut %d: the backup has %d items", cut, n)
				}
			}
			again, err := d.Table("default", "again")
			if err == nil {
				if n := len(d.items(again, Range{})); n != 5 {
					t.Fatalf("cut %d: the restored table has %d items", cut, n)
				}
			} else if reached == "restoring" || reached == "restored" || reached == "deleted" {
				t.Fatalf("cut %d after %s: the restored table: %v", cut, reached, err)
			}
			d.verify()
			d.close()
			disk = o.FS.(*kv.CrashFS)
		}
	}
	if len(reachedAll) < 4 {
		t.Errorf("cuts at %v only", reachedAll)
	}
}
