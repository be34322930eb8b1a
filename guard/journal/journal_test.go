package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func image(id string, at time.Time) Entry {
	return Entry{
		Kind: Image, ID: id, At: at, Table: "arn:t", Key: []byte(`{"pk":{"S":"` + id + `"}}`), Attribute: "ttl", Deadline: noon,
		Item: []byte(`{"pk":{"S":"` + id + `"},"text":{"S":"line\nfeed \u003c"}}`),
	}
}

// running starts a writer that ends when end is called, or with the test.
func running(t *testing.T, j *Journal, worker string) (w *Writer, end func()) {
	w = j.Writer(worker, func(error) {})
	w.wait = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.Run(ctx)
	}()
	end = func() {
		cancel()
		<-over
	}
	t.Cleanup(end)
	return w, end
}

// all returns the entries of a journal, and its damages.
func all(t *testing.T, j *Journal) (entries []Entry, damages []*Damage) {
	t.Helper()
	names, err := j.Files(t.Context(), noon.AddDate(-1, 0, 0), noon.AddDate(1, 0, 0))
	must(t, err)
	for _, name := range names {
		f, err := j.Open(t.Context(), name)
		must(t, err)
		for r, err := range f.Records() {
			d, damaged := errors.AsType[*Damage](err)
			if damaged {
				damages = append(damages, d)
				continue
			}
			must(t, err)
			again, err := f.At(r.Offset, r.Length)
			must(t, err)
			if !reflect.DeepEqual(again, r.Entry) {
				t.Errorf("the entry at %d is %+v, and was %+v", r.Offset, again, r.Entry)
			}
			entries = append(entries, r.Entry)
		}
		must(t, f.Close())
	}
	return entries, damages
}

func ids(entries []Entry) (all []string) {
	for _, e := range entries {
		all = append(all, e.ID+" "+string(e.Kind))
	}
	return all
}

// Written entries come back as they were, from a directory and from an object store.
func TestWriteAndRead(t *testing.T) {
	for name, j := range map[string]*Journal{"directory": Dir(filepath.Join(t.TempDir(), "a", "b")), "objects": Objects(&memory{})} {
		t.Run(name, func(t *testing.T) {
			must(t, j.Check(t.Context()))
			w, end := running(t, j, "the worker/1")
			e := image("x", noon)
			must(t, w.Write(t.Context(), e))
			if got, _ := all(t, j); len(got) != 1 || !reflect.DeepEqual(got[0], e) {
				t.Errorf("got %+v; want %+v", got, e)
			}
			w.Note(Entry{Kind: Removed, ID: "x", At: noon.Add(time.Second), Table: e.Table, Key: e.Key})
			end()
			got, damages := all(t, j)
			if want := []string{"x image", "x removed"}; !slices.Equal(ids(got), want) || len(damages) > 0 {
				t.Errorf("got %v and %v; want %v", ids(got), damages, want)
			}
			if err := w.Write(t.Context(), e); !errors.Is(err, ErrEnded) {
				t.Errorf("a write after the end returns %v", err)
			}
			names, _ := j.Files(t.Context(), noon, noon)
			if !strings.HasPrefix(names[0], "2030-01-01/120000.000-the_worker_1-") || !strings.HasSuffix(names[0], "-1.undo1") {
				t.Errorf("the file's name is %s", names[0])
			}
		})
	}
}

// Only the owner can read the files of a directory, since they hold items.
func TestPrivateFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir := filepath.Join(t.TempDir(), "a")
	w, end := running(t, Dir(dir), "w")
	must(t, w.Write(t.Context(), image("x", noon)))
	end()
	files := 0
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && !entry.IsDir() {
			files++
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s is %v", path, info.Mode())
			}
		}
		return err
	}))
	if files != 1 {
		t.Errorf("%d files", files)
	}
}

// Concurrent writes share the syncs, and none is lost.
func TestGroups(t *testing.T) {
	store := &memory{}
	w, _ := running(t, Objects(store), "w")
	w.wait = 20 * time.Millisecond
	var writers sync.WaitGroup
	for i := range 200 {
		writers.Go(func() {
			if err := w.Write(t.Context(), image(fmt.Sprint(i), noon)); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	got, _ := all(t, Objects(store))
	if len(got) != 200 || store.puts > 20 {
		t.Errorf("%d entries in %d objects; want 200 in at most 20", len(got), store.puts)
	}
}

// A file has the entries of one hour, and Files finds the files of a span.
func TestHours(t *testing.T) {
	j := Dir(t.TempDir())
	w, end := running(t, j, "w")
	for _, at := range []time.Duration{0, 59*time.Minute + 59*time.Second, time.Hour, 13 * time.Hour} {
		must(t, w.Write(t.Context(), image(fmt.Sprint(at), noon.Add(at))))
	}
	end()
	for _, c := range []struct {
		from, until time.Duration
		want        int
	}{{0, 0, 1}, {time.Hour, time.Hour, 2}, {-time.Hour, 24 * time.Hour, 3}, {3 * time.Hour, 4 * time.Hour, 0}, {-1000 * time.Hour, 1000 * time.Hour, 3}, {13 * time.Hour, 13 * time.Hour, 1}} {
		names, err := j.Files(t.Context(), noon.Add(c.from), noon.Add(c.until))
		must(t, err)
		if len(names) != c.want {
			t.Errorf("from %v until %v there are the files %q; want %d", c.from, c.until, names, c.want)
		}
	}
}

// Two workers share a directory, even with the same name.
func TestTwoWriters(t *testing.T) {
	j := Dir(t.TempDir())
	one, endOne := running(t, j, "w")
	two, endTwo := running(t, j, "w")
	for i := range 10 {
		must(t, one.Write(t.Context(), image(one.NewID(), noon.Add(time.Duration(i)))))
		must(t, two.Write(t.Context(), image(two.NewID(), noon.Add(time.Duration(i)))))
	}
	endOne()
	endTwo()
	got, damages := all(t, j)
	unique := map[string]bool{}
	for _, e := range got {
		unique[e.ID] = true
	}
	if len(unique) != 20 || len(damages) > 0 {
		t.Errorf("%d entries of 20, damages %v", len(unique), damages)
	}
}

// theFile returns the path of the only file in a directory.
func theFile(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*", "*"+suffix))
	must(t, err)
	if len(names) != 1 {
		t.Fatalf("the files are %q; want one", names)
	}
	return names[0]
}

// A flipped bit anywhere costs the entry that it is in, or the two that it joins. A cut at the end
// costs the last entry. Everything else is read, and the damage is reported with its place.
func TestDamageIsLocal(t *testing.T) {
	dir := t.TempDir()
	w, end := running(t, Dir(dir), "w")
	const entries = 5
	for i := range entries {
		must(t, w.Write(t.Context(), image(fmt.Sprint("id-", i), noon)))
	}
	end()
	name := theFile(t, dir)
	whole, err := os.ReadFile(name)
	must(t, err)
	each := len(whole) / entries
	for i := 0; i < len(whole); i += 7 {
		hurt := bytes.Clone(whole)
		hurt[i] ^= 1
		must(t, os.WriteFile(name, hurt, 0o644))
		got, damages := all(t, Dir(dir))
		lost := entries - len(got)
		at := int64(i / each * each)
		inner := hurt[i] != '\n' && whole[i] != '\n'
		if inner && (lost != 1 || len(damages) != 1 || damages[0].Offset != at || damages[0].Length != int64(each) || damages[0].Torn) || lost < 1 || lost > 2 {
			t.Fatalf("a flipped bit at %d costs %d entries, damages %v", i, lost, damages)
		}
	}
	for cut := 1; cut < each; cut += 3 {
		must(t, os.WriteFile(name, whole[:len(whole)-cut], 0o644))
		got, damages := all(t, Dir(dir))
		if len(got) != entries-1 || len(damages) != 1 || !damages[0].Torn {
			t.Fatalf("a cut of %d bytes leaves %v, damages %v", cut, ids(got), damages)
		}
	}
}

// A line beyond the limit is damage, and is not held in memory.
func TestLongLine(t *testing.T) {
	dir := t.TempDir()
	w, end := running(t, Dir(dir), "w")
	must(t, w.Write(t.Context(), image("before", noon)))
	end()
	name := theFile(t, dir)
	line, err := os.ReadFile(name)
	must(t, err)
	must(t, os.WriteFile(name, slices.Concat(line, bytes.Repeat([]byte("x"), lineMax+5), []byte("\n"), line), 0o644))
	got, damages := all(t, Dir(dir))
	if len(got) != 2 || len(damages) != 1 || damages[0].Length != lineMax+6 || !errors.Is(damages[0], errLong) {
		t.Errorf("entries %v, damages %v", ids(got), damages)
	}
	huge := image("huge", noon)
	huge.Item = []byte(`"` + strings.Repeat("x", lineMax) + `"`)
	if _, err := huge.line(); err == nil {
		t.Error("an entry beyond the limit is encoded")
	}
}

// A failed write is an error, its notes are written later, and nothing is torn in the middle.
func TestFailedWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	must(t, os.WriteFile(dir, nil, 0o644)) // a file in place of the directory
	j := Dir(dir)
	if err := j.Check(t.Context()); err == nil {
		t.Error("the check of a file as a directory succeeds")
	}
	w, end := running(t, j, "w")
	if err := w.Write(t.Context(), image("a", noon)); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("the write returns %v", err)
	}
	w.Note(Entry{Kind: Kept, ID: "a", At: noon, Table: "arn:t", Key: []byte(`{}`)})
	must(t, os.Remove(dir))
	must(t, w.Write(t.Context(), image("b", noon.Add(5*time.Hour))))
	end()
	got, damages := all(t, j)
	if names, err := j.Files(t.Context(), noon.Add(5*time.Hour), noon.Add(6*time.Hour)); err != nil || len(names) != 1 {
		t.Errorf("after an outage of five hours, Files returns %q, %v", names, err)
	}
	if want := []string{"a kept", "b image"}; !slices.Equal(ids(got), want) || len(damages) > 0 {
		t.Errorf("got %v and %v; want %v", ids(got), damages, want)
	}
}

// Notes beyond the limit are dropped and counted, whether they come while a write fails or after it,
// and so are all notes if the last write fails.
func TestDroppedNotes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	must(t, os.WriteFile(dir, nil, 0o644)) // a file in place of the directory
	note := func(w *Writer, n int) {
		for range n {
			w.Note(Entry{Kind: Kept, ID: "a", At: noon, Table: "arn:t", Key: []byte(`{}`)})
		}
	}
	w := Dir(dir).Writer("w", func(error) {})
	want := func(n int64) {
		t.Helper()
		if got := w.Dropped(); got != n {
			t.Fatalf("%d notes are dropped, want %d", got, n)
		}
	}
	note(w, notesMax)
	want(0)
	note(w, 3)
	want(3)
	failed := w.mu.group
	w.mu.group = newGroup()
	note(w, 5) // while the write fails
	w.keep(failed)
	want(8)
	if err := w.flush(t.Context()); err == nil {
		t.Fatal("the write succeeds")
	}
	want(8)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w.Run(ended)
	want(8 + notesMax)
}

// A file in which a write has failed gets no more entries and keeps only the durable ones.
func TestAbandonedFile(t *testing.T) {
	a := &dirAppender{dir: dir(t.TempDir()), label: "w"}
	line, err := image("a", noon).line()
	must(t, err)
	must(t, a.append(t.Context(), noon, line))
	first := a.file.Name()
	_, err = a.file.Write(line[:20]) // a part of the next write
	must(t, err)
	a.abandon()
	must(t, a.append(t.Context(), noon, line))
	must(t, a.close())
	if a.made != 2 {
		t.Errorf("%d files were made; want 2", a.made)
	}
	if left, err := os.ReadFile(first); err != nil || !bytes.Equal(left, line) {
		t.Errorf("the first file has %q, %v", left, err)
	}
}

// A file of a later version is an error and is not left out silently; other files are ignored.
func TestOtherFiles(t *testing.T) {
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "2030-01-01"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "2030-01-01", "notes.txt"), nil, 0o644))
	must(t, os.WriteFile(filepath.Join(root, "2030-01-01", "120000.000-w-1.txt"), nil, 0o644))
	if names, err := Dir(root).Files(t.Context(), noon, noon); err != nil || len(names) > 0 {
		t.Errorf("got %q and %v", names, err)
	}
	must(t, os.WriteFile(filepath.Join(root, "2030-01-01", "120000.000-w-1.undo2"), nil, 0o644))
	if _, err := Dir(root).Files(t.Context(), noon, noon); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("a file of another version: %v", err)
	}
	if _, err := Dir(filepath.Join(root, "missing")).Files(t.Context(), noon, noon); err == nil {
		t.Error("a missing directory counts as an empty journal")
	}
}

// memory is an object store.
type memory struct {
	mu   sync.Mutex
	all  map[string][]byte
	puts int
	fail error
}

func (m *memory) String() string { return "memory" }

func (m *memory) List(_ context.Context, prefix string) (names []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.all {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names, nil
}

type bytesObject struct{ *bytes.Reader }

func (bytesObject) Close() error { return nil }

func (m *memory) Open(_ context.Context, name string) (Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytesObject{bytes.NewReader(m.all[name])}, nil
}

func (m *memory) Put(_ context.Context, name string, write func(io.Writer) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if m.all == nil {
		m.all = map[string][]byte{}
	}
	if m.all[name] != nil {
		return fmt.Errorf("%s is written twice", name)
	}
	m.all[name] = b.Bytes()
	m.puts++
	return nil
}

// For any bytes, the records and damages cover a file without gaps, and an entry that is read is the
// same after it is written again.
func FuzzRecords(f *testing.F) {
	line, err := image("a", noon).line()
	must(f, err)
	f.Add(line)
	f.Add(slices.Concat(line, line[:30]))
	f.Add(slices.Concat([]byte("\n\nx\n"), line))
	f.Add([]byte("00000000 {}\n"))
	f.Add([]byte("zzzzzzzz \n00000000 \n00000000"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := &File{"f", bytesObject{bytes.NewReader(data)}}
		end := int64(0)
		for r, err := range file.Records() {
			if r.Offset != end || r.Length <= 0 {
				t.Fatalf("%d bytes at %d follow %d", r.Length, r.Offset, end)
			}
			end += int64(r.Length)
			if d, damaged := errors.AsType[*Damage](err); damaged {
				if d.Offset != r.Offset || d.Torn != (end == int64(len(data)) && data[end-1] != '\n') {
					t.Fatalf("damage %v at %d", d, r.Offset)
				}
				continue
			}
			must(t, err)
			again, err := r.line()
			if err != nil {
				continue // a time that JSON cannot hold
			}
			if e, err := parse(again[:len(again)-1]); err != nil || e.ID != r.ID || !e.At.Equal(r.At) {
				t.Fatalf("%+v became %+v, %v", r.Entry, e, err)
			}
		}
		if end != int64(len(data)) {
			t.Fatalf("%d of %d bytes are covered", end, len(data))
		}
	})
}
