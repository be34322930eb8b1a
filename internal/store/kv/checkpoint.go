package kv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Span is the range of keys from Start up to, but not including, End.
type Span struct{ Start, End []byte }

// Checkpoint writes the store's state at one instant into a new directory on the same file system.
// The state holds every write whose Wait returned before the call. Writers do not wait: the tables
// are hard links, and only the log and the MANIFEST are copied. With spans, the directory has only
// the tables that overlap one of them, and keys outside all spans mean nothing; the memtable is
// flushed before, if that works within some seconds, so that the log is short. Open and OpenStopped
// accept it. It is durable when Checkpoint returns. After an error it is gone, unless it was there
// before the call.
func (db *DB) Checkpoint(dir string, spans ...Span) error {
	if err := db.checkpoint(dir, spans); err != nil {
		return fmt.Errorf("checkpoint in %q: %w", dir, markNoSpace(err))
	}
	return nil
}

func (db *DB) checkpoint(dir string, spans []Span) error {
	if err := db.writable(); err != nil {
		return err
	}
	if _, err := db.opts.FS.Stat(dir); err == nil {
		return fs.ErrExist
	}
	parent := db.opts.FS.PathDir(dir)
	if err := makeDirectories(db.opts.FS, parent); err != nil {
		return err
	}
	switch {
	case db.opts.Durability == Memory: // there is no log
		if err := db.Flush(); err != nil {
			return err
		}
	case len(spans) > 0: // the log has keys outside them too
		db.shortenLog()
	}
	// In Async mode acknowledged writes may not have reached the log's file.
	options := []pebble.CheckpointOption{pebble.WithFlushedWAL()}
	if len(spans) > 0 {
		all := make([]pebble.CheckpointSpan, len(spans))
		for i, s := range spans {
			all[i] = pebble.CheckpointSpan(s)
		}
		options = append(options, pebble.WithRestrictToSpans(all))
	}
	err := db.pebbleCheckpoint(dir, options)
	if err == nil {
		err = db.failure.err()
	}
	if err == nil {
		err = db.addJournal(dir)
	}
	if err == nil {
		err = syncDirectory(db.opts.FS, parent)
	}
	if err != nil {
		err = errors.Join(err, db.opts.FS.RemoveAll(dir))
	}
	return err
}

// pebbleCheckpoint turns a panic of Pebble into an error: it panics if the directory of a checkpoint
// cannot be synced. It holds no lock then, and releases the files.
func (db *DB) pebbleCheckpoint(dir string, options []pebble.CheckpointOption) (err error) {
	defer func() {
		if r := recover(); r != nil {
			cause, ok := r.(error)
			if !ok {
				cause = fmt.Errorf("%v", r)
			}
			err = cause
		}
	}()
	return db.pebble.Checkpoint(dir, options...)
}

// addJournal checks a checkpoint, and writes its journal.
func (db *DB) addJournal(dir string) error {
	found, err := inspect(db.opts.FS, dir)
	if err == nil {
		err = found.Err()
	}
	if err != nil {
		return err
	}
	j, err := startJournal(db.opts.FS, dir, found)
	if err != nil {
		return err
	}
	return j.close()
}

// elsewhere reports whether a file lies in a checkpoint's directory, not in the store's. There a
// failure is an error of the checkpoint, and does not stop the store.
func (g *guardFS) elsewhere(name string) bool { return g.PathDir(name) != g.dir }

// openLog opens a log for reading. It ends one that is being written behind the last finished
// write. There its file has room, and a write under way: a reader could see a later part and not an
// earlier one.
func (g *guardFS) openLog(name string, opts []vfs.OpenOption) (vfs.File, error) {
	writing, ok := g.logs.Load(g.PathBase(name))
	if !ok {
		return g.FS.Open(name, opts...)
	}
	end := writing.(*logFile).written.Load()
	f, err := g.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return &endedFile{File: f, left: end}, nil
}

// endedFile shows a reader only the beginning of a file, which is read in order.
type endedFile struct {
	vfs.File
	left int64 // bytes
}

// Read implements vfs.File.
func (f *endedFile) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	n, err := f.File.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	return n, err
}
