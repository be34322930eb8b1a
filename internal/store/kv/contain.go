package kv

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/clock"
)

// A table file with a bad block does not stop the store: a read of the block returns an error
// marked ErrCorrupt, and Damages lists the file. Pebble verifies the checksum of every block that
// it reads, so it never returns a damaged value. Pebble's background work with such a file fails
// too, and is paused so that it does not fail in a loop.

const (
	// repeatEvery is the least pause between two log lines about one file.
	repeatEvery = time.Minute
	// statsPause is the pause between two attempts of Pebble to read the statistics of a table
	// file.
	statsPause = 10 * time.Second
)

// damages lists the damaged table files that are still part of the store.
type damages struct {
	changed chan struct{} // holds a token when the list has changed

	mu     sync.Mutex
	list   []Damage // in the order in which they were found
	logged map[string]clock.Elapsed
	// errors of compactions that Pebble has reported as ended, but not yet as background errors
	compactions []error
}

func (d *damages) init() {
	d.changed = make(chan struct{}, 1)
	d.logged = map[string]clock.Elapsed{}
}

// Damages returns the table files found damaged since Open, in the order of their discovery. It
// omits files that a compaction has replaced.
func (db *DB) Damages() []Damage {
	db.damages.mu.Lock()
	defer db.damages.mu.Unlock()
	return slices.Clone(db.damages.list)
}

// Damaged returns a channel that holds a token when Damages has changed.
func (db *DB) Damaged() <-chan struct{} { return db.damages.changed }

// corrupted records a damaged table file. Pebble calls it in the middle of a read.
func (db *DB) corrupted(info pebble.DataCorruptionInfo) {
	d, name := &db.damages, filepath.Base(info.Path)
	db.guard.bad.add(name, info.Details)
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(d.list, func(known Damage) bool { return known.File == name }) {
		return
	}
	d.list = append(d.list, Damage{
		File: name, Offset: -1, Fault: info.Details.Error(),
		Lower: slices.Clone(info.Bounds.Start), Upper: slices.Clone(info.Bounds.End.Key),
	})
	d.signal()
}

// tableDeleted removes a file from the list of damaged ones: a compaction has replaced it.
func (db *DB) tableDeleted(info pebble.TableDeleteInfo) {
	d, name := &db.damages, filepath.Base(info.Path)
	d.mu.Lock()
	defer d.mu.Unlock()
	before := len(d.list)
	d.list = slices.DeleteFunc(d.list, func(known Damage) bool { return known.File == name })
	if len(d.list) != before {
		delete(d.logged, name)
		d.signal()
	}
}

func (d *damages) signal() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// readError is the error of a read that needs a damaged table file. It matches ErrCorrupt.
type readError struct {
	file     string
	cause    error
	repeated bool
}

func (e *readError) Error() string { return fmt.Sprintf("%v: %s: %v", ErrCorrupt, e.file, e.cause) }

func (e *readError) Unwrap() error { return e.cause }

// Is reports whether target is ErrCorrupt.
func (e *readError) Is(target error) bool { return target == ErrCorrupt }

// Repeated reports whether another error about the same file was returned within the last minute,
// so that a log may omit this one.
func (e *readError) Repeated() bool { return e.repeated }

// readFailed marks an error of a read if a damaged file is its cause. A nil DB belongs to a
// read-only store.
func (db *DB) readFailed(err error) error {
	if err == nil || err == ErrNotFound || !pebble.IsCorruptionError(err) {
		return err
	}
	file := "a table file"
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		file = filepath.Base(info.Path)
	}
	if db == nil {
		return &readError{file: file, cause: err}
	}
	d := &db.damages
	d.mu.Lock()
	defer d.mu.Unlock()
	if elapsed, logged := d.logged[file]; logged && elapsed() < repeatEvery {
		return &readError{file: file, cause: err, repeated: true}
	}
	d.logged[file] = clock.Stopwatch()
	return &readError{file: file, cause: err}
}

// compactionEnded records a failed compaction. Pebble does not compact the same tables again for a
// while, unless all are in level 0. Such a compaction would begin again at once, before all others.
func (db *DB) compactionEnded(info pebble.CompactionInfo) {
	upper := !slices.ContainsFunc(info.Input, func(l pebble.LevelInfo) bool { return l.Level > 0 && len(l.Tables) > 0 })
	c := db.compactions
	switch {
	case info.Err == nil:
		c.short.failures.Store(0)
		if upper {
			c.damaged.failures.Store(0)
		}
		return
	case errors.Is(info.Err, errNoRoom):
		c.roomless.Store(inputRange(info))
		c.pause(&c.short)
	case pebble.IsCorruptionError(info.Err):
		db.damages.mu.Lock()
		db.damages.compactions = append(db.damages.compactions, info.Err)
		db.damages.mu.Unlock()
		if upper {
			c.pause(&c.damaged)
		}
	}
	c.failed.Add(1)
}

// backgroundDamage handles background work that failed over a damaged file. Apart from compactions
// this is only the reading of statistics, which Pebble would repeat at once, so backgroundDamage
// pauses the goroutine that reads them. It must not pause the goroutine of a compaction, which
// holds Pebble's lock.
func (db *DB) backgroundDamage(err error) {
	d := &db.damages
	d.mu.Lock()
	i := slices.Index(d.compactions, err)
	if i >= 0 {
		d.compactions = slices.Delete(d.compactions, i, i+1)
	}
	d.mu.Unlock()
	if i < 0 {
		clock.Pause(statsPause, db.guard.closing)
	}
}

// tableFile is a table file open for reading. A block that the disk cannot read counts as damage,
// like one with a wrong checksum.
type tableFile struct {
	vfs.File
	name string // base name
	bad  *badBlocks
}

func (f tableFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.bad.check(f.name, offset); err != nil {
		return 0, err
	}
	n, err := f.File.ReadAt(p, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &unreadable{err}
	}
	return n, err
}

// unreadable marks a failed read of a table file as corruption for Pebble.
type unreadable struct{ error }

// Is reports whether target is Pebble's mark of corruption.
func (e *unreadable) Is(target error) bool { return target == pebble.ErrCorruption }

// Unwrap returns the error of the file system.
func (e *unreadable) Unwrap() error { return e.error }
