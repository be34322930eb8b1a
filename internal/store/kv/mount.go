package kv

import "sync"

// mounts are the file systems that simulations have put in place of the operating system's, by the
// path of the data directory.
var mounts sync.Map

// mount is a file system with the most bytes of the reserve in it.
type mount struct {
	fs      FS
	reserve int64
}

// Mount makes a file system hold a data directory, for stores that are opened there without an FS of
// their own, until unmount is called. So a simulation can open a whole program on a disk of its own.
// reserve is the stores' ReserveBytes; 0: no reserve.
func Mount(dir string, fs FS, reserve int64) (unmount func()) {
	m := mount{fs, reserve}
	mounts.Store(dir, m)
	return func() { mounts.CompareAndDelete(dir, m) }
}

// mounted replaces the operating system's file system by the one that holds the directory, if any.
func (o *Options) mounted() {
	if m, ok := mounts.Load(o.Dir); ok && o.FS == nil {
		o.FS, o.ReserveBytes = m.(mount).fs, m.(mount).reserve
	}
}
