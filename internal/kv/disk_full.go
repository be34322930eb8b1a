package kv

import "github.com/cockroachdb/pebble/v2/vfs"

// isDiskFull reports whether an operation failed for want of room.
func isDiskFull(err error) bool { return vfs.IsNoSpaceError(err) }
