package kv

import (
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The data directory belongs to the user who runs the program: other users of the machine could
// read the items without credentials.
const (
	directoryMode os.FileMode = 0o700
	fileMode      os.FileMode = 0o600
)

// privateFS is the operating system's file system with files that only their owner can read.
// Pebble's own makes them readable for everyone. A file that is used again has its mode already. If
// a file system without modes refuses to set them, the directory is accepted all the same.
type privateFS struct{ FS }

// private sets the mode of a new file.
func private(f vfs.File, err error) (vfs.File, error) {
	if file, ok := f.(interface{ Chmod(os.FileMode) error }); ok && err == nil {
		_ = file.Chmod(fileMode)
	}
	return f, err
}

func (p privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return private(p.FS.Create(name, category))
}

func (p privateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return private(p.FS.OpenReadWrite(name, category, opts...))
}

func (p privateFS) Lock(name string) (io.Closer, error) {
	lock, err := p.FS.Lock(name)
	if err == nil {
		_ = os.Chmod(name, fileMode)
	}
	return lock, err
}

func (p privateFS) Unwrap() vfs.FS { return p.FS }

// adopt sets the mode of files written by an earlier mayfly, which did not. It does not change the
// directory's own mode, which its creator has chosen.
func (p privateFS) adopt(dir string) {
	names, _ := p.List(dir) // files missed after an error keep their mode
	for _, name := range names {
		path := p.PathJoin(dir, name)
		if info, err := os.Lstat(path); isStoreFile(name) && err == nil && info.Mode().IsRegular() && info.Mode().Perm() != fileMode {
			_ = os.Chmod(path, fileMode)
		}
	}
}
