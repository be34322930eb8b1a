package kv

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// isLockHeld reports whether a lock failed because it is taken, and not because the lock file cannot be made. Within one process
// Pebble says so only in words.
func isLockHeld(err error) bool {
	var making *fs.PathError
	if errors.As(err, &making) {
		return false
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || strings.Contains(err.Error(), "lock held by current process")
}
