package kv

import (
	"errors"
	"io/fs"
	"syscall"
)

// isLockHeld reports whether a lock failed because a process holds it. An error about making the
// lock file has another cause. Pebble returns an error without an errno in one case only: this
// process holds the lock.
func isLockHeld(err error) bool {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return false
	}
	var errno syscall.Errno
	return !errors.As(err, &errno) || errno == syscall.EAGAIN || errno == syscall.EACCES
}
