package kv

import "github.com/cockroachdb/pebble/v2/vfs"

// HookFS is a file system whose syncs can be delayed or failed, for tests.
type HookFS struct {
	FS
	// BeforeSync is called before each sync of a file or directory, in the goroutine that syncs.
	// Its error replaces the sync.
	BeforeSync func(name string) error
}

// file wraps a file that can be synced.
func (h *HookFS) file(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &hookFile{File: f, fs: h, name: name}, nil
}

// Create implements FS.
func (h *HookFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := h.FS.Create(name, category)
	return h.file(name, f, err)
}

// OpenReadWrite implements FS.
func (h *HookFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := h.FS.OpenReadWrite(name, category, opts...)
	return h.file(name, f, err)
}

// ReuseForWrite implements FS.
func (h *HookFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := h.FS.ReuseForWrite(oldname, newname, category)
	return h.file(newname, f, err)
}

// OpenDir implements FS.
func (h *HookFS) OpenDir(name string) (vfs.File, error) {
	f, err := h.FS.OpenDir(name)
	return h.file(name, f, err)
}

// Unwrap implements FS.
func (h *HookFS) Unwrap() vfs.FS { return h.FS }

// hookFile is a file of a HookFS.
type hookFile struct {
	vfs.File
	fs   *HookFS
	name string
}

// Sync implements vfs.File.
func (f *hookFile) Sync() error {
	if err := f.fs.BeforeSync(f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f *hookFile) SyncData() error {
	if err := f.fs.BeforeSync(f.name); err != nil {
		return err
	}
	return f.File.SyncData()
}

// SyncTo implements vfs.File.
func (f *hookFile) SyncTo(length int64) (fullSync bool, err error) {
	if err := f.fs.BeforeSync(f.name); err != nil {
		return false, err
	}
	return f.File.SyncTo(length)
}
