package kv

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// The store's directory may have subdirectories, which hold checkpoints of it. The store itself
// never looks into them.

// Below returns the path of something below the store's directory.
func (db *DB) Below(names ...string) string {
	path := db.opts.Dir
	for _, name := range names {
		path = db.opts.FS.PathJoin(path, name)
	}
	return path
}

// ListBelow returns the names in a subdirectory. They are none if it is missing.
func (db *DB) ListBelow(names ...string) ([]string, error) {
	found, err := db.opts.FS.List(db.Below(names...))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return found, err
}

// RemoveBelow removes a subdirectory. The removal is durable when it returns.
func (db *DB) RemoveBelow(names ...string) error {
	path := db.Below(names...)
	if err := db.opts.FS.RemoveAll(path); err != nil {
		return err
	}
	return syncDirectory(db.opts.FS, db.opts.FS.PathDir(path))
}

// Below opens a checkpoint in a subdirectory of the directory. It returns an error that matches
// os.ErrNotExist if there is none.
func (s *Stopped) Below(names ...string) (*Stopped, error) {
	path := s.dir
	for _, name := range names {
		path = s.fs.PathJoin(path, name)
	}
	stopped, err := OpenStopped(s.fs, path)
	return stopped, markMissing(err)
}

// CheckBelow returns an error if a subdirectory exists and cannot be listed.
func (s *Stopped) CheckBelow(name string) error {
	_, err := s.fs.List(s.fs.PathJoin(s.dir, name))
	return ignoreMissing(err)
}

// markMissing marks the error for a path that has a file in place of a directory as os.ErrNotExist.
func markMissing(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", os.ErrNotExist, err)
	}
	return err
}

// belowCacheBytes is the block cache of a checkpoint, which is read once and in order.
const belowCacheBytes = 1 << 20

// OpenBelow opens a checkpoint in a subdirectory for reading. It returns an error marked ErrCorrupt
// if a file is damaged or missing.
func (db *DB) OpenBelow(names ...string) (*ReadOnly, error) {
	dir := db.Below(names...)
	stopped, err := OpenStopped(db.opts.FS, dir)
	if err != nil {
		return nil, openError(dir, markMissing(err))
	}
	if len(stopped.faults) > 0 {
		return nil, errors.Join(&DamageError{Dir: dir, Faults: stopped.faults}, stopped.Close())
	}
	r, err := stopped.open(belowCacheBytes)
	if err != nil {
		return nil, errors.Join(err, stopped.Close())
	}
	return r, nil
}
