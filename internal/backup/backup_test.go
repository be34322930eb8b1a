package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/objects"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// database is a source with these contents by name.
type database map[string]string

func (d database) Files() (files []File) {
	for _, name := range slices.Sorted(maps.Keys(d)) {
		files = append(files, File{name, int64(len(d[name])), sumOf([]byte(d[name]))})
	}
	return files
}

func (d database) Open(name string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(d[name])), nil
}

// first is a database; second is the same later.
var (
	first  = database{"000001.sst": "unchanged", "000002.log": "", "MANIFEST-000001": "before", "marker.manifest.1": ""}
	second = database{"000001.sst": "unchanged", "000003.log": "new", "MANIFEST-000001": "after ", "marker.manifest.1": ""}
)

// ticking is a clock that moves a second for each reading.
func ticking() func() time.Time {
	var mu sync.Mutex
	now := time.Date(2030, 1, 2, 3, 4, 5, 678e6, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
}

// take makes a backup of a database.
func take(t *testing.T, r Repository, d database, now func() time.Time, keep int) (Added, int, error) {
	t.Helper()
	return r.Take(t.Context(), Take{
		Source: "test", Keep: keep, Now: now, Progress: func(Progress) {},
		Stream: func(ctx context.Context, has []File) (io.ReadCloser, error) {
			return Pipe(func(w io.Writer) error { return Send(ctx, w, d, List{Taken: now()}, has) }), nil
		},
	})
}

// contents reads the files of a directory.
func contents(t *testing.T, dir string) database {
	t.Helper()
	d := database{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		d[e.Name()] = string(content)
	}
	return d
}

// Each backup restores to the database of its time, and shares the unchanged files.
func TestTakeAndRestore(t *testing.T) {
	t.Parallel()
	place, now := t.TempDir(), ticking()
	r := Open(objects.Dir(place))
	var ids []string
	for i, d := range []database{first, second, second} {
		added, _, err := take(t, r, d, now, 0)
		must(t, err)
		ids = append(ids, added.ID)
		if want := []int{4, 2, 0}[i]; added.NewFiles != want {
			t.Errorf("backup %d has %d new files, want %d", i, added.NewFiles, want)
		}
	}
	for i, d := range []database{first, second, second} {
		s, err := r.Find(t.Context(), ids[i])
		must(t, err)
		dir := filepath.Join(t.TempDir(), "deep", "new")
		var last Progress
		must(t, r.Restore(t.Context(), s, dir, func(p Progress) { last = p }))
		if got := contents(t, dir); !maps.Equal(got, d) {
			t.Errorf("backup %d restores to %v", i, got)
		}
		if last.Done != s.Bytes() || last.Total != s.Bytes() {
			t.Errorf("the progress ends with %+v", last)
		}
	}
	newest, err := r.Find(t.Context(), "")
	must(t, err)
	if newest.ID != ids[2] {
		t.Errorf("the newest is %s, not %s", newest.ID, ids[2])
	}
	if _, err := r.Find(t.Context(), "2030"); err == nil {
		t.Error("a name that three backups have finds one")
	}
	if _, err := r.Find(t.Context(), "2031"); !errors.Is(err, ErrNone) {
		t.Errorf("a name that none has: %v", err)
	}
}

// Keep removes the oldest backups of the same database, and the files that only they have.
func TestKeep(t *testing.T) {
	t.Parallel()
	now := ticking()
	r := Open(objects.Dir(t.TempDir()))
	_, _, err := take(t, r, first, now, 0)
	must(t, err)
	stray := File{"000009.sst", 4, sumOf([]byte("half"))} // of a backup that was cut off
	must(t, r.store.Put(t.Context(), stray.object(), func(w io.Writer) error { _, err := io.WriteString(w, "half"); return err }))
	for i, want := range []int{0, 1, 1} {
		_, removed, err := take(t, r, second, now, 2)
		must(t, err)
		if removed != want {
			t.Errorf("backup %d removes %d", i, removed)
		}
	}
	all, _, err := r.Snapshots(t.Context())
	must(t, err)
	stored, err := r.Stored(t.Context())
	must(t, err)
	if len(all) != 2 || len(stored) != len(second) || stored[stray] {
		t.Errorf("there are %d backups and %d files", len(all), len(stored))
	}
	_, removed, err := r.Take(t.Context(), Take{
		Source: "another database", Keep: 1, Now: now, Progress: func(Progress) {},
		Stream: func(ctx context.Context, has []File) (io.ReadCloser, error) {
			return Pipe(func(w io.Writer) error { return Send(ctx, w, first, List{Taken: now()}, has) }), nil
		},
	})
	must(t, err)
	if removed != 0 {
		t.Errorf("the backup of another database removes %d", removed)
	}
}

// A stream is a tar archive that anyone can unpack.
func TestStreamIsTar(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	must(t, Send(t.Context(), &b, second, List{Taken: time.Unix(1, 0)}, []File{second.Files()[0]}))
	in, got := tar.NewReader(&b), database{}
	for {
		entry, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		content, err := io.ReadAll(in)
		must(t, err)
		got[entry.Name] = string(content)
	}
	l, err := decodeList([]byte(got[listName]))
	must(t, err)
	delete(got, listName)
	want := maps.Clone(second)
	delete(want, "000001.sst")
	if !maps.Equal(got, want) || !slices.Equal(l.Files, second.Files()) {
		t.Errorf("the archive has %v and lists %v", got, l.Files)
	}
}

// A stream that ends early or is not as listed makes no backup, at whatever byte. What has arrived is
// not sent again.
func TestStreamCut(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	must(t, Send(t.Context(), &b, first, List{Taken: time.Unix(1, 0)}, nil))
	whole := b.Bytes()
	// Behind the last file come zeros only. A cut there loses nothing.
	end := len(bytes.TrimRight(whole, "\x00"))
	for n := 0; n < end; n += 97 {
		r := Open(objects.Dir(t.TempDir()))
		_, err := r.Receive(t.Context(), bytes.NewReader(whole[:n]), "test", nil, func(Progress) {})
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
		if ids, err := r.names(t.Context()); err != nil || len(ids) > 0 {
			t.Fatalf("%d of %d bytes make a backup: %q, %v", n, len(whole), ids, err)
		}
	}
	changed := bytes.Replace(whole, []byte("unchanged"), []byte("unchanGed"), 1)
	r := Open(objects.Dir(t.TempDir()))
	if _, err := r.Receive(t.Context(), bytes.NewReader(changed), "test", nil, func(Progress) {}); err == nil || !strings.Contains(err.Error(), "000001.sst has the checksum") {
		t.Errorf("a changed file: %v", err)
	}
	if stored, err := r.Stored(t.Context()); err != nil || len(stored) > 0 {
		t.Errorf("a changed file is stored: %v, %v", stored, err)
	}
}

// Streams that make no sense are refused.
func TestStreamRefused(t *testing.T) {
	t.Parallel()
	list := func(l List) string { b, _ := json.Marshal(l); return string(b) }
	good := List{Format: 1, Taken: time.Unix(1, 0), Files: first.Files()}
	with := func(change func(*List)) string {
		l := good
		l.Files = slices.Clone(good.Files)
		change(&l)
		return list(l)
	}
	for name, c := range map[string]struct {
		entries []string // name and content, in turn
		says    string
	}{
		"no tar":           {nil, "unexpected EOF"},
		"no list":          {[]string{"000001.sst", "unchanged"}, "no backup stream"},
		"not JSON":         {[]string{listName, "{"}, "not valid JSON"},
		"a newer format":   {[]string{listName, with(func(l *List) { l.Format = 2 })}, "format 2"},
		"no files":         {[]string{listName, with(func(l *List) { l.Files = nil })}, "no list"},
		"a path":           {[]string{listName, with(func(l *List) { l.Files[0].Name = "../evil" })}, `"../evil"`},
		"a hidden name":    {[]string{listName, with(func(l *List) { l.Files[0].Name = ".profile" })}, `".profile"`},
		"a negative size":  {[]string{listName, with(func(l *List) { l.Files[0].Size = -1 })}, "-1 bytes"},
		"twice":            {[]string{listName, with(func(l *List) { l.Files[1] = l.Files[0] })}, "after"},
		"an unlisted file": {[]string{listName, list(good), "000001.sst", "unchanged", "000002.log", "", "evil", "x"}, "ends before MANIFEST"},
		"one too many": {[]string{listName, list(good), "000001.sst", "unchanged", "000002.log", "", "MANIFEST-000001", "before", "marker.manifest.1", "", "x", "x"},
			`"x" of 1 bytes, which is not in its list`},
	} {
		var b bytes.Buffer
		out := tar.NewWriter(&b)
		for i := 0; i < len(c.entries); i += 2 {
			must(t, out.WriteHeader(&tar.Header{Name: c.entries[i], Size: int64(len(c.entries[i+1])), Mode: 0o600}))
			_, err := io.WriteString(out, c.entries[i+1])
			must(t, err)
		}
		if c.entries != nil {
			must(t, out.Close())
		}
		dir := t.TempDir()
		_, err := Open(objects.Dir(dir)).Receive(t.Context(), &b, "test", nil, func(Progress) {})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if _, err := os.Stat(filepath.Join(dir, "snapshots")); err == nil {
			t.Errorf("%s makes a backup", name)
		}
	}
}

// A file of the database that changed on the disk is not backed up.
func TestDamagedSource(t *testing.T) {
	t.Parallel()
	r := Open(objects.Dir(t.TempDir()))
	_, _, err := r.Take(t.Context(), Take{
		Now: ticking(), Progress: func(Progress) {},
		Stream: func(ctx context.Context, has []File) (io.ReadCloser, error) {
			return Pipe(func(w io.Writer) error { return Send(ctx, w, rotten{first}, List{Taken: time.Unix(1, 0)}, has) }), nil
		},
	})
	if !errors.Is(err, errChanged) || !strings.Contains(err.Error(), "000001.sst") {
		t.Errorf("got %v", err)
	}
	if ids, err := r.names(t.Context()); err != nil || len(ids) > 0 {
		t.Errorf("there is a backup: %q, %v", ids, err)
	}
}

// rotten is a database one file of which has changed.
type rotten struct{ database }

func (r rotten) Open(name string) (io.ReadCloser, error) {
	if name == "000001.sst" {
		return io.NopCloser(strings.NewReader("unchanGed")), nil
	}
	return r.database.Open(name)
}

// Every kind of damage to a repository is found by a check and by a restore, which then leaves
// nothing. Other backups can be restored.
func TestDamagedRepository(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"cut off": func(path string) error { return os.Truncate(path, 3) },
		"changed": func(path string) error { return os.WriteFile(path, []byte("BEFORE"), 0o600) },
		"missing": os.Remove,
	} {
		place, now := t.TempDir(), ticking()
		r := Open(objects.Dir(place))
		added, _, err := take(t, r, first, now, 0)
		must(t, err)
		sound, _, err := take(t, r, second, now, 0)
		must(t, err)
		must(t, damage(filepath.Join(place, File{"MANIFEST-000001", 6, sumOf([]byte("before"))}.object())))

		all, _, err := r.Snapshots(t.Context())
		must(t, err)
		var found []string
		must(t, r.Check(t.Context(), all, func(Progress) {}, func(d *Damaged) { found = append(found, d.Error()) }))
		if len(found) != 1 || !strings.Contains(found[0], "MANIFEST-000001-6-") {
			t.Errorf("%s: the check finds %q", name, found)
		}
		dir := filepath.Join(t.TempDir(), "new")
		var d *Damaged
		if err := r.Restore(t.Context(), added.Snapshot, dir, func(Progress) {}); !errors.As(err, &d) {
			t.Errorf("%s: the restore returns %v", name, err)
		}
		if left := contents(t, dir); len(left) > 0 {
			t.Errorf("%s: the restore leaves %v", name, left)
		}
		must(t, r.Restore(t.Context(), sound.Snapshot, dir, func(Progress) {}))
	}
}

// A list that changed is no backup, and says so.
func TestDamagedList(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	r := Open(objects.Dir(place))
	added, _, err := take(t, r, first, ticking(), 0)
	must(t, err)
	path := filepath.Join(place, "snapshots", added.ID+".json")
	content, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, bytes.Replace(content, []byte(`"size":9`), []byte(`"size":8`), 1), 0o600))
	var d *Damaged
	if _, err := r.Find(t.Context(), ""); !errors.As(err, &d) {
		t.Errorf("got %v", err)
	}
	// Others go on. No file is removed, since the damaged list may name it.
	stray := File{"000009.sst", 4, sumOf([]byte("half"))}
	must(t, r.store.Put(t.Context(), stray.object(), func(w io.Writer) error { _, err := io.WriteString(w, "half"); return err }))
	now := ticking()
	now()
	next, _, err := take(t, r, second, now, 1)
	if !errors.As(err, &d) || next.ID == "" {
		t.Errorf("the next backup is %q with %v", next.ID, err)
	}
	all, damaged, err := r.Snapshots(t.Context())
	must(t, err)
	if len(all) != 1 || all[0].ID != next.ID || len(damaged) != 1 {
		t.Errorf("there are %d backups and %d damaged lists", len(all), len(damaged))
	}
	if stored, err := r.Stored(t.Context()); err != nil || !stored[stray] {
		t.Errorf("a file was removed: %v", err)
	}
}

// A writer that was paused until another removed its lock, and files, makes no backup.
func TestPausedWriter(t *testing.T) {
	t.Parallel()
	place, now := t.TempDir(), ticking()
	r := Open(objects.Dir(place))
	_, _, err := take(t, r, first, now, 0)
	must(t, err)
	_, _, err = r.Take(t.Context(), Take{
		Source: "test", Now: now, Progress: func(Progress) {},
		Stream: func(ctx context.Context, has []File) (io.ReadCloser, error) {
			must(t, os.Remove(filepath.Join(place, first.Files()[0].object()))) // by another writer
			return Pipe(func(w io.Writer) error { return Send(ctx, w, second, List{Taken: now()}, has) }), nil
		},
	})
	var d *Damaged
	if !errors.As(err, &d) || d.Fault != "was removed during the backup" {
		t.Errorf("got %v", err)
	}
	if ids, err := r.names(t.Context()); err != nil || len(ids) != 1 {
		t.Errorf("there are the backups %q, %v", ids, err)
	}
	var lost *lockLost
	if err := r.stillLocked(t.Context(), lockFolder+"gone.json"); !errors.As(err, &lost) {
		t.Errorf("a lock that is gone: %v", err)
	}
}

// A restore overwrites nothing, but continues one that was cut off.
func TestRestoreInto(t *testing.T) {
	t.Parallel()
	r := Open(objects.Dir(t.TempDir()))
	added, _, err := take(t, r, first, ticking(), 0)
	must(t, err)
	for _, c := range []struct {
		there []string
		fails bool
	}{
		{nil, false},
		{[]string{".gitkeep", "LOCK"}, false},
		{[]string{"notes.txt"}, true},
		{[]string{"000001.sst"}, true},
		{[]string{"000001.sst", "zzz", unfinishedName}, false}, // which lists both
		{[]string{"000001.sst", "notes.txt", "zzz", unfinishedName}, true},
	} {
		dir := t.TempDir()
		for _, name := range c.there {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte("000001.sst\nzzz\n../evil\n"), 0o600))
		}
		err := r.Restore(t.Context(), added.Snapshot, dir, func(Progress) {})
		got := contents(t, dir)
		var full *NotEmpty
		if c.fails {
			if !errors.As(err, &full) || len(got) != len(c.there) {
				t.Errorf("%q: %v, and then there is %v", c.there, err, got)
			}
			continue
		}
		must(t, err)
		for name := range got {
			if isHarmless(name) {
				delete(got, name)
			}
		}
		if !maps.Equal(got, first) {
			t.Errorf("%q: then there is %v", c.there, got)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if err := r.Restore(t.Context(), added.Snapshot, file, func(Progress) {}); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("into a file: %v", err)
	}
}

// While a restore runs, its directory says so, and the marker comes last.
func TestRestoreOrder(t *testing.T) {
	t.Parallel()
	r := Open(objects.Dir(t.TempDir()))
	added, _, err := take(t, r, first, ticking(), 0)
	must(t, err)
	dir := t.TempDir()
	n := 0
	must(t, r.Restore(t.Context(), added.Snapshot, dir, func(Progress) {
		n++
		got := contents(t, dir)
		if _, there := got[unfinishedName]; !there {
			t.Errorf("after %d files nothing says that the restore is unfinished", n)
		}
		if _, there := got["marker.manifest.1"]; there != (n == len(first)) {
			t.Errorf("after %d files the marker is there: %v", n, there)
		}
	}))
}

// One writer at a time: a second one is refused while the first is alive, and takes over from a dead
// one.
func TestLock(t *testing.T) {
	t.Parallel()
	r := Open(objects.Dir(t.TempDir()))
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) func() time.Time { return func() time.Time { return start.Add(d) } }
	_, unlock, err := r.Lock(t.Context(), at(0))
	must(t, err)
	var locked *Locked
	if _, _, err := r.Lock(t.Context(), at(lockStale-time.Second)); !errors.As(err, &locked) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("a second writer: %v", err)
	}
	if _, _, err := take(t, r, first, at(0), 0); !errors.As(err, &locked) {
		t.Errorf("a backup beside another: %v", err)
	}
	_, other, err := r.Lock(t.Context(), at(lockStale))
	must(t, err)
	other()
	unlock()
	_, _, err = take(t, r, first, at(0), 0)
	must(t, err)
	if names, err := r.store.List(t.Context(), lockFolder); err != nil || len(names) > 0 {
		t.Errorf("locks stay: %q, %v", names, err)
	}
}

// A target without room is an error, and makes no backup.
func TestFullTarget(t *testing.T) {
	t.Parallel()
	full := fullStore{objects.Dir(t.TempDir())}
	_, _, err := take(t, Open(full), first, ticking(), 0)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if ids, err := Open(full).names(t.Context()); err != nil || len(ids) > 0 {
		t.Errorf("there is a backup: %q, %v", ids, err)
	}
}

// fullStore is a store without room for tables.
type fullStore struct{ objects.Store }

func (f fullStore) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	if strings.HasPrefix(name, filesFolder) {
		return f.Store.Put(ctx, name, func(w io.Writer) error { return write(fullWriter{}) })
	}
	return f.Store.Put(ctx, name, write)
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// FuzzReceive: no stream makes a repository from which something else than a directory of listed files
// can be restored, and none panics.
func FuzzReceive(f *testing.F) {
	var b bytes.Buffer
	if err := Send(f.Context(), &b, first, List{Taken: time.Unix(1, 0)}, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:1024])
	f.Add(bytes.Replace(b.Bytes(), []byte("000001.sst"), []byte("..////.sst"), 2))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := Open(objects.Dir(t.TempDir()))
		added, err := r.Receive(t.Context(), bytes.NewReader(stream), "test", nil, func(Progress) {})
		if err != nil {
			return
		}
		dir := filepath.Join(t.TempDir(), "new")
		must(t, r.Restore(t.Context(), added.Snapshot, dir, func(Progress) {}))
		if got := contents(t, dir); !slices.Equal(got.Files(), added.Files) {
			t.Errorf("%v restores to %v", added.Files, got)
		}
	})
}
