package kv

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// copyPrefix begins the name of a Copy's directory in the directory of its store, which no file of a
// user has by chance.
const copyPrefix = ".mayfly-copy-"

// ErrCopying reports that another Copy of the store is open.
var ErrCopying = errors.New("another copy is being made")

// File is a file of a store, which does not change.
type File struct {
	Name string
	Size int64
	Sum  uint32 // CRC-32C of all of it
}

// Copy is the state of a store at one instant, as files. A directory with exactly these is a store.
type Copy struct {
	files []File
	fs    FS
	dir   string
	close func() error
}

// Copy makes a checkpoint, and keeps it until Close. While it exists the disk keeps the tables that
// compactions replace. There is one at a time: Copy returns ErrCopying otherwise. It can be read after
// the store is closed, until the directory is opened again.
func (db *DB) Copy() (*Copy, error) {
	if !db.copying.CompareAndSwap(false, true) {
		return nil, ErrCopying
	}
	// A Copy that is closed late must not remove the directory of a later one.
	dir := db.opts.FS.PathJoin(db.opts.Dir, copyPrefix+strings.ToLower(rand.Text()[:12]))
	c := &Copy{fs: db.opts.FS, dir: dir, close: func() error {
		defer db.copying.Store(false)
		return ignoreMissing(db.opts.FS.RemoveAll(dir))
	}}
	db.shortenLog()
	err := db.Checkpoint(dir)
	if err == nil {
		err = c.list(db.guard.sums)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// shortenPatience bounds the wait of shortenLog. On a full disk a flush may not end.
const shortenPatience = 5 * time.Second

// shortenLog flushes the memtable. A backup writes the log anew each time, and a table once.
func (db *DB) shortenLog() {
	if flushed, err := db.pebble.AsyncFlush(); err == nil { // otherwise the log is copied as it is
		clock.Pause(shortenPatience, flushed)
	}
}

// removeCopies removes the copies that a crash has left.
func (db *DB) removeCopies() error {
	names, err := db.opts.FS.List(db.opts.Dir)
	for _, name := range names {
		if strings.HasPrefix(name, copyPrefix) {
			err = errors.Join(err, ignoreMissing(db.opts.FS.RemoveAll(db.opts.FS.PathJoin(db.opts.Dir, name))))
		}
	}
	return err
}

// Copy returns the files of a stopped store. It refuses a damaged one with a *DamageError: a copy of
// it would have the damage too. The Copy is valid until the Stopped is closed.
func (s *Stopped) Copy() (*Copy, error) {
	if len(s.faults) > 0 {
		return nil, &DamageError{Dir: s.dir, Faults: s.faults}
	}
	c := &Copy{fs: s.fs, dir: s.dir, close: func() error { return nil }}
	if err := c.list(s.sums); err != nil {
		return nil, err
	}
	return c, nil
}

// list lists the files with their checksums. It reads those that sums does not know.
func (c *Copy) list(sums *tableSums) error {
	names, err := c.fs.List(c.dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if !isSealed(name) && name != sealName {
			continue
		}
		info, err := c.fs.Stat(c.fs.PathJoin(c.dir, name))
		if err != nil {
			return err
		}
		f := File{Name: name, Size: info.Size()}
		if known, ok := sums.sum(name); ok && known.length == f.Size {
			f.Sum = known.sum
		} else if f.Sum, err = sumOf(c.fs, c.fs.PathJoin(c.dir, name), f.Size); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		c.files = append(c.files, f)
	}
	return nil
}

// Files returns the files by name. A directory that lacks the last one is not taken for a store.
func (c *Copy) Files() []File { return c.files }

// Open opens one of the files.
func (c *Copy) Open(name string) (io.ReadCloser, error) {
	if !slices.ContainsFunc(c.files, func(f File) bool { return f.Name == name }) {
		return nil, fs.ErrNotExist
	}
	return c.fs.Open(c.fs.PathJoin(c.dir, name))
}

// Close removes the checkpoint.
func (c *Copy) Close() error { return c.close() }
