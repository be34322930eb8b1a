package kv

import (
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
)

var (
	// ErrNotFound reports an absent key.
	ErrNotFound = pebble.ErrNotFound
	// ErrClosed is returned by calls after Close.
	ErrClosed = errors.New("store is closed")
	// ErrStopped marks every error that follows a failure of the disk; the rest of the chain is the
	// failure itself.
	ErrStopped = errors.New("store has stopped")
	// ErrLocked reports that another process, or another DB of this one, has the directory open.
	ErrLocked = errors.New("data directory is in use by another process")
	// ErrForeign reports a directory with files but no store.
	ErrForeign = errors.New("directory holds files that are not mayfly's")
	// ErrNoSpace marks a failure to open a store because the disk is full.
	ErrNoSpace = errors.New("disk is full")
	// ErrCorrupt marks errors about bytes on disk that differ from those written.
	ErrCorrupt = errors.New("data directory is corrupt")
	// ErrDamaged marks the errors of Open about a directory that was found damaged, and not
	// changed.
	ErrDamaged = errors.New("data directory is damaged")
	// ErrNewer reports that a newer program wrote the directory.
	ErrNewer = errors.New("data directory has a newer format")
)

// openError returns the error of opening dir. A missing file counts as corruption too, because
// Pebble names only files that it has written.
func openError(dir string, err error) error {
	if pebble.IsCorruptionError(err) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("open %q: %w: %w", dir, ErrCorrupt, err)
	}
	return fmt.Errorf("open %q: %w", dir, markNoSpace(err))
}

// markNoSpace marks an error of a full disk as ErrNoSpace.
func markNoSpace(err error) error {
	if isDiskFull(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}
