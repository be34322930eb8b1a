package kv

import (
	"errors"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// isDiskFull reports whether an operation failed for lack of room.
func isDiskFull(err error) bool { return vfs.IsNoSpaceError(err) || errors.Is(err, errNoRoom) }

// isOutOfDescriptors reports whether an operation failed because the process, or the machine, has
// too many files open.
func isOutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// passes reports whether the cause of a failure goes away without a restart.
func passes(err error) bool { return isDiskFull(err) || isOutOfDescriptors(err) }
