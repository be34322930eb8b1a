package kv

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// verify refuses a directory that is damaged or of a newer program, and changes nothing.
func (db *DB) verify() (*Inspection, error) {
	if db.opts.Durability == Memory {
		return nil, nil
	}
	inspection, err := Inspect(db.opts.FS, db.opts.Dir)
	if err != nil {
		return nil, err
	}
	if inspection.Newer > 0 {
		return nil, fmt.Errorf("%w: %q has format version %d, this program knows those up to %d", ErrNewer, db.opts.Dir, inspection.Newer, formatVersion)
	}
	return inspection, inspection.Err()
}

// createFormat marks an empty directory with the format version. Pebble would begin with its oldest one, whose first log says nothing about
// syncs (see readTail), and raise it step by step.
func createFormat(fs FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil || len(listFiles(names).formatMarkers) > 0 {
		return err
	}
	f, err := fs.Create(fs.PathJoin(dir, fmt.Sprintf("marker.format-version.000001.%s", formatVersion)), vfs.WriteCategoryUnspecified)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return err
	}
	return syncDirectory(fs, dir)
}
