package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Store is where the files of an archive are. Names have slashes. Its methods may be called at once.
type Store interface {
	// List gives the names that begin with a prefix, in order.
	List(ctx context.Context, prefix string) ([]string, error)
	// Open opens a file to be read; its error is fs.ErrNotExist where there is none.
	Open(ctx context.Context, name string) (File, error)
	// Put makes a file, or replaces it, as a whole: it is there durably with everything that write has written, or, after an error, as it was.
	Put(ctx context.Context, name string, write func(io.Writer) error) error
	// Remove takes a file away. That there is none is no error.
	Remove(ctx context.Context, name string) error
	// String is its address, for messages.
	String() string
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Dir is a Store in a directory, which is made when something is put there.
func Dir(path string) Store { return dir(path) }

type dir string

// unfinished begins the names of files that are being written. Readers of directories of Parquet leave names with a dot out.
const unfinished = ".unfinished-"

func (d dir) String() string { return string(d) }

func (d dir) List(_ context.Context, prefix string) (names []string, err error) {
	err = filepath.WalkDir(string(d), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(string(d), path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case entry.IsDir() && name != "." && !strings.HasPrefix(name+"/", prefix) && !strings.HasPrefix(prefix, name+"/"):
			return fs.SkipDir
		case !entry.IsDir() && strings.HasPrefix(name, prefix) && !strings.HasPrefix(entry.Name(), "."):
			names = append(names, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}

type localFile struct {
	*os.File
	size int64
}

func (f localFile) Size() int64 { return f.size }

func (d dir) Open(_ context.Context, name string) (File, error) {
	return openLocal(filepath.Join(string(d), filepath.FromSlash(name)))
}

func openLocal(path string) (File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return localFile{file, info.Size()}, nil
}

// Put writes under another name, syncs, renames, and syncs the directory.
func (d dir) Put(_ context.Context, name string, write func(io.Writer) error) (err error) {
	path := filepath.Join(string(d), filepath.FromSlash(name))
	parent := filepath.Dir(path)
	if err := makeDirs(parent); err != nil {
		return err
	}
	file, err := os.CreateTemp(parent, unfinished)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if err := write(file); err != nil {
		return err
	}
	if err := errors.Join(file.Chmod(0o644), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncDir(parent)
}

// Remove leaves the directory: the day's next file is on its way, or others are there.
func (d dir) Remove(_ context.Context, name string) error {
	err := os.Remove(filepath.Join(string(d), filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// makeDirs makes a directory and those above it, durably.
func makeDirs(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file and no directory", path)
	}
	if err == nil {
		return nil
	}
	above := filepath.Dir(path)
	if above != path {
		if err := makeDirs(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(above)
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	// Not every file system syncs a directory; one that does not has nothing to sync.
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return errors.Join(err, d.Close())
	}
	return d.Close()
}
