package kv

import "sync"

// mounts are the file systems that simulations have put in place of the operating system's, by the
// path of the data directory.
var mounts sync.Map

// Mount makes a file system hold a data directory, for stores that are opened there without an FS of
// their own, until unmount is called. So a simulation can open a whole program on a disk of its own.
func Mount(dir string, fs FS) (unmount func()) {
	mounts.Store(dir, fs)
	return func() { mounts.CompareAndDelete(dir, fs) }
}

// mounted returns the file system that holds a directory, or nil for the operating system's.
func mounted(dir string) FS {
	if fs, ok := mounts.Load(dir); ok {
		return fs.(FS)
	}
	return nil
}
