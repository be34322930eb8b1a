package kv

import (
	"io"
	"log/slog"
	"os"
	"runtime"

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

// warnExposed logs a directory that other users can still use after adopt: they can replace its
// files, or read one that belongs to another user and kept its mode. A directory that they can list
// only is common, for instance systemd's, and shows no data.
func (p privateFS) warnExposed(dir string, log *slog.Logger) {
	if runtime.GOOS == "windows" { // its modes do not show who has access
		return
	}
	const others, othersWrite = 0o077, 0o022
	info, err := os.Stat(dir)
	exposed := err == nil && info.Mode().Perm()&othersWrite != 0
	names, _ := p.List(dir)
	for _, name := range names {
		info, err := os.Lstat(p.PathJoin(dir, name))
		exposed = exposed || isStoreFile(name) && err == nil && info.Mode().IsRegular() && info.Mode().Perm()&others != 0
	}
	if exposed {
		log.Warn("other users of this machine can read or replace the data", "directory", dir, "next", "chmod -R go-rwx "+dir)
	}
}

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
