package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// verify returns an error if the directory is damaged or of a newer program. It changes nothing.
func (db *DB) verify() (*inspection, error) {
	if db.opts.Durability == Memory {
		return nil, nil
	}
	found, err := inspect(db.opts.FS, db.opts.Dir)
	if err != nil {
		return nil, err
	}
	if found.Newer > 0 {
		return nil, fmt.Errorf("%w: %q has format version %d, this program knows those up to %d", ErrNewer, db.opts.Dir, found.Newer, formatVersion)
	}
	if db.opts.Essential != nil && len(found.Faults) == 0 {
		s := &inspector{inspection: found, fs: db.opts.FS}
		if err := s.checkEssential(db.opts.Essential); err != nil {
			return nil, err
		}
	}
	return found, found.Err()
}

// createFormat marks an empty directory with the format version. Pebble would begin with its oldest
// one, whose first log does not record syncs (see readTail), and raise it step by step.
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

// logEnd logs the last commit found in a store that was not stopped cleanly. Nothing can show
// whether there were later ones.
func (db *DB) logEnd(found *inspection) {
	if found.Sealed || found.Empty {
		return
	}
	if found.TornManifest >= 0 {
		db.log.Warn("the last record of the manifest was cut off before it counted; it is left out", "file", found.Manifest, "offset", found.TornManifest)
	}
	if len(found.Logs) == 0 {
		return
	}
	last := found.Logs[len(found.Logs)-1]
	commit := found.lastSeq
	for _, log := range found.Logs {
		commit = max(commit, log.LastSeq)
	}
	level, message := slog.LevelWarn, "the store was not stopped cleanly: its log has no end mark"
	if last.Closed {
		level, message = slog.LevelInfo, "the store has no seal: its log ends with an end mark"
	}
	db.log.Log(context.Background(), level, message, "file", last.File, "offset", last.End, "last_commit", commit, "valid_pieces_beyond", last.Beyond)
}

// removeSeal removes the seal durably, before anything changes, so a seal always describes its
// present directory.
func removeSeal(fs FS, found *inspection) error {
	if !found.Sealed {
		return nil
	}
	if err := fs.Remove(fs.PathJoin(found.Dir, sealName)); err != nil {
		return err
	}
	return syncDirectory(fs, found.Dir)
}

// seal seals the directory of a store that was closed without an error. Without a seal the next
// start treats the stop as a crash, which loses nothing, so Close does not fail if the seal cannot
// be written.
func (db *DB) seal() {
	if db.journal == nil {
		return
	}
	if err := writeSeal(db.guard.FS, db.opts.Dir, db.guard.sums); err != nil {
		db.log.Warn("the directory could not be sealed; the next start treats this stop as a crash", "error", err)
	}
}
