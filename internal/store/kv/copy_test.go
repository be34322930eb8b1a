package kv

import (
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// restore writes the files of a copy into a new directory, and checks their checksums.
func restore(t *testing.T, c *Copy) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range c.Files() {
		r, err := c.Open(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close(), os.WriteFile(filepath.Join(dir, f.Name), content, 0o600)); err != nil {
			t.Fatal(err)
		}
		if int64(len(content)) != f.Size || crc32.Checksum(content, castagnoli) != f.Sum {
			t.Errorf("%s is not as listed", f.Name)
		}
	}
	return dir
}

// copiesIn returns the names of the copies in a store's directory.
func copiesIn(t *testing.T, db *DB) []string {
	t.Helper()
	names, err := db.opts.FS.List(db.opts.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, copyPrefix) })
}

// A copy is complete, its unchanged tables have the same names and checksums the next time, and it
// leaves nothing behind.
func TestCopy(t *testing.T) {
	t.Parallel()
	for _, durability := range []Durability{Sync, Memory} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			opts := Options{Durability: durability}
			if durability == Sync {
				opts.Dir = t.TempDir()
			}
			db := open(t, opts)
			mustWrite(t, db, "a="+strings.Repeat("x", 10_000))
			c, err := db.Copy()
			if err != nil {
				t.Fatal(err)
			}
			mustWrite(t, db, "later=1")
			if _, err := db.Copy(); !errors.Is(err, ErrCopying) {
				t.Errorf("a second copy beside the first: %v", err)
			}
			dir := restore(t, c)
			first := c.Files()
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			copied := open(t, Options{Dir: dir})
			if get(t, copied, "a") != get(t, db, "a") || get(t, copied, "later") != "-" || copied.Unjournaled() {
				t.Error("the copy has not the state of its instant")
			}
			if c, err = db.Copy(); err != nil {
				t.Fatal(err)
			}
			for _, f := range first {
				if isTable(f.Name) && !slices.Contains(c.Files(), f) {
					t.Errorf("the second copy lacks the unchanged table %s", f.Name)
				}
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if left := copiesIn(t, db); len(left) > 0 {
				t.Errorf("copies are still there: %q", left)
			}
		})
	}
}

// A directory without the last file of a copy is not taken for a store: a restore that was cut off
// cannot be opened.
func TestCopyEndsWithMarker(t *testing.T) {
	t.Parallel()
	db := open(t, Options{Dir: t.TempDir()})
	mustWrite(t, db, "a=1")
	c, err := db.Copy()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for n := range c.Files() {
		dir := restore(t, &Copy{files: c.Files()[:n], fs: c.fs, dir: c.dir})
		opened, err := Open(Options{Dir: dir})
		if err == nil {
			err = opened.Close()
			if n > 0 {
				t.Errorf("%d of %d files open as a store: %v", n, len(c.Files()), err)
			}
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("%d of %d files: %v", n, len(c.Files()), err)
		}
	}
}

// A stopped store is copied as it is, with its seal. A damaged one is refused.
func TestCopyOfStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db, "a=1")
	if err := errors.Join(db.Flush(), db.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := OpenStopped(nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Copy()
	if err != nil {
		t.Fatal(err)
	}
	to := restore(t, c)
	if err := errors.Join(c.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(to, sealName)); err != nil {
		t.Error(err)
	}
	if get(t, open(t, Options{Dir: to}), "a") != "1" {
		t.Error("the copy lacks a write")
	}

	tables, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err := os.Truncate(tables[0], 100); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenStopped(nil, dir); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Copy(); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged store is copied: %v", err)
	}
}

// A copy that a crash has left goes away at the next start.
func TestCopyAfterCrash(t *testing.T) {
	t.Parallel()
	disk := NewCrashFS()
	db, err := Open(crashOpts(disk))
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db, "a=1")
	if _, err := db.Copy(); err != nil {
		t.Fatal(err)
	}
	left := copiesIn(t, db)
	after := disk.AfterCrash()
	_ = db.Close()
	if len(left) != 1 {
		t.Fatalf("the crash leaves the copies %q", left)
	}
	again := open(t, crashOpts(after))
	if left := copiesIn(t, again); len(left) > 0 {
		t.Errorf("copies are still there: %q", left)
	}
	if get(t, again, "a") != "1" {
		t.Error("a write is lost")
	}
}
