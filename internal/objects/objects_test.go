package objects

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// entriesOf returns directory entries with these names.
func entriesOf(names string) []fs.DirEntry {
	files := fstest.MapFS{}
	for name := range strings.FieldsSeq(names) {
		files[name] = &fstest.MapFile{}
	}
	entries, _ := files.ReadDir(".")
	return entries
}

// A directory is read again until no file has disappeared since the previous reading. New and
// unfinished files do not count.
func TestSettled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		readings []string
		want     int // the number of the final reading
	}{
		{[]string{"1 2", "1 2"}, 2},
		// put into a piece already read, small ones removed from a later piece
		{[]string{"", "whole"}, 2},
		{[]string{"2 3", "3", "whole", "whole"}, 4},
		{[]string{"1", "1 2", "1 2 3"}, 2},
		{[]string{".unfinished-1 1", "1"}, 2},
	} {
		n := 0
		entries, err := settled(func() ([]fs.DirEntry, error) {
			n++
			return entriesOf(c.readings[n-1]), nil
		})
		must(t, err)
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		if n != c.want || strings.Join(names, " ") != c.readings[n-1] {
			t.Errorf("of %q, reading %d counts, with %q", c.readings, n, names)
		}
	}
	n := 0
	_, err := settled(func() ([]fs.DirEntry, error) {
		n++
		return entriesOf(fmt.Sprint(n)), nil
	})
	if err == nil || n != readingsMax {
		t.Errorf("after %d readings it gives %v", n, err)
	}
}

// List descends into directories, and omits hidden files and those without the prefix. A missing
// directory is empty.
func TestDirList(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"dt=1/b", "dt=1/a", "dt=1/deep/c", "dt=1/.d", "dt=2/a", "other/a", "a"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, name), nil, 0o644))
	}
	for prefix, want := range map[string]string{
		"dt=": "dt=1/a dt=1/b dt=1/deep/c dt=2/a", "dt=1/": "dt=1/a dt=1/b dt=1/deep/c", "dt=1/b": "dt=1/b", "": "a dt=1/a dt=1/b dt=1/deep/c dt=2/a other/a", "none": "",
	} {
		names, err := Dir(root).List(t.Context(), prefix)
		must(t, err)
		if !slices.Equal(names, strings.Fields(want)) {
			t.Errorf("%q gives %q, want %q", prefix, names, want)
		}
	}
	names, err := Dir(filepath.Join(root, "none")).List(t.Context(), "")
	if len(names) > 0 || err != nil {
		t.Errorf("a directory that does not exist gives %q, %v", names, err)
	}
}

// Days that are removed during a List do not hide later days.
func TestDirListRemovedDay(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const days = 200
	for i := range days {
		must(t, os.Mkdir(filepath.Join(root, fmt.Sprintf("dt=%03d", i)), 0o755))
	}
	must(t, os.Mkdir(filepath.Join(root, "dt=last"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "dt=last", "a"), nil, 0o644))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range days {
			_ = os.Remove(filepath.Join(root, fmt.Sprintf("dt=%03d", i)))
		}
	}()
	for more := true; more; {
		select {
		case <-ended:
			more = false
		default:
		}
		names, err := Dir(root).List(t.Context(), "dt=")
		if err != nil || len(names) != 1 {
			t.Errorf("while days are removed it gives %q, %v", names, err)
		}
	}
}

// A view below a folder has the folder's files under their names in it, and no others.
func TestBelow(t *testing.T) {
	t.Parallel()
	whole := Dir(t.TempDir())
	if Below(whole, "") != whole || Below(whole, "/") != whole {
		t.Error("without a folder, the view is not the store itself")
	}
	put := func(s Store, name string) {
		t.Helper()
		must(t, s.Put(t.Context(), name, func(to io.Writer) error {
			_, err := io.WriteString(to, name)
			return err
		}))
	}
	list := func(s Store, prefix, want string) {
		t.Helper()
		names, err := s.List(t.Context(), prefix)
		must(t, err)
		if !slices.Equal(names, strings.Fields(want)) {
			t.Errorf("%s lists %q with prefix %q, want %q", s, names, prefix, want)
		}
	}
	view := Below(whole, "/a/b/")
	for _, name := range []string{"x", "deep/y", "deep/z"} {
		put(view, name)
	}
	put(whole, "a/beside")
	put(whole, "a/bx")
	list(whole, "", "a/b/deep/y a/b/deep/z a/b/x a/beside a/bx")
	list(view, "", "deep/y deep/z x")
	list(view, "deep/", "deep/y deep/z")
	list(view, "deep/z", "deep/z")
	list(view, "eside", "")
	if want := whole.String() + "/a/b"; view.String() != want {
		t.Errorf("the address is %q, want %q", view, want)
	}

	file, err := view.Open(t.Context(), "deep/y")
	must(t, err)
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, 0, file.Size()))
	if must(t, err); string(text) != "deep/y" {
		t.Errorf("the file has %q", text)
	}
	if _, err := view.Open(t.Context(), "beside"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file outside the folder: %v", err)
	}

	must(t, view.Remove(t.Context(), "beside"))
	must(t, view.Remove(t.Context(), "deep/y"))
	list(whole, "", "a/b/deep/z a/b/x a/beside a/bx")
}
