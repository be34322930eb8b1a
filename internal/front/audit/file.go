package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// lookEvery bounds how often a file looks for its path.
const lookEvery = time.Second

// file appends to the file at a path, and keeps a number of older ones. It is used by one goroutine
// at a time. There is a library for this, lumberjack, which is no longer maintained.
type file struct {
	path string
	most int64 // bytes
	keep int   // older files

	f       *os.File // nil after a failure to open, and after close
	regular bool     // neither a pipe nor a device: it can be renamed
	size    int64
	torn    bool // the last line has no end
	closed  bool
	looked  time.Time // when the path was last compared with the file
	refused time.Time // when a rotation last failed
}

// ready prepares to write a line. It reports whether the line is the first one of this process in
// the file. After an error, the old file may still be open: a write shows it.
func (f *file) ready(now time.Time, bytes int) (begun bool, err error) {
	if f.closed {
		return false, nil
	}
	if f.f != nil && now.Sub(f.looked).Abs() >= lookEvery {
		f.looked = now
		if f.moved() {
			f.drop()
		}
	}
	if f.f != nil && f.regular && f.size > 0 && f.size+int64(bytes) > f.most && now.Sub(f.refused).Abs() >= lookEvery {
		f.drop()
		if err = f.shift(); err != nil {
			f.refused = now
		}
	}
	if f.f != nil {
		return false, nil
	}
	return true, errors.Join(err, f.open())
}

// moved reports whether the path no longer names the open file, because another program rotates it.
// It also learns the file's size, which another process or a truncation may have changed.
func (f *file) moved() bool {
	there, err := os.Stat(f.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	mine, err := f.f.Stat()
	if err != nil {
		return true
	}
	f.size = mine.Size()
	return !os.SameFile(there, mine)
}

// open opens the file at the path. If its last line has no end, because the machine or the disk has
// failed, the next one begins on a new line.
func (f *file) open() error {
	// The file is read once, at its end. Windows cannot rename an open file: rotation closes it.
	opened, err := os.OpenFile(f.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := opened.Stat()
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	f.f, f.regular, f.size, f.torn = opened, info.Mode().IsRegular(), 0, false
	if f.regular && info.Size() > 0 {
		var last [1]byte
		_, err := opened.ReadAt(last[:], info.Size()-1)
		f.size, f.torn = info.Size(), err != nil || last[0] != '\n'
	}
	return nil
}

// shift renames path to path.1, path.1 to path.2 and so on. The oldest file is overwritten.
func (f *file) shift() error {
	for n := f.keep; n > 1; n-- {
		if err := os.Rename(f.older(n-1), f.older(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate: %w", err)
		}
	}
	if err := os.Rename(f.path, f.older(1)); err != nil {
		return fmt.Errorf("rotate: %w", err)
	}
	return nil
}

func (f *file) older(n int) string { return f.path + "." + strconv.Itoa(n) }

// Write appends lines with one call of the operating system.
func (f *file) Write(lines []byte) (int, error) {
	if f.f == nil {
		return 0, fmt.Errorf("%s: %w", f.path, fs.ErrClosed)
	}
	if f.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := f.f.Write(lines)
	f.size += int64(n)
	if n > 0 {
		f.torn = err != nil
	}
	return n, err
}

// drop closes the file, so that the next line opens one. All lines were written when Write returned,
// so an error has nothing to add.
func (f *file) drop() {
	_ = f.f.Close()
	f.f = nil
}

func (f *file) close() error {
	f.closed = true
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}
