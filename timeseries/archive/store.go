package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Store is where the files of an archive are. Names have slashes. Its methods may be called at once.
type Store interface {
	// List returns the names that begin with a prefix, in order. Files may be put and removed
	// meanwhile: a file that is there all the time is listed. Where one is put that includes others,
	// and these are removed behind it, in order, the new one is listed or the first of the others.
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
	err = d.walk("", prefix, &names)
	slices.Sort(names)
	return names, err
}

// walk appends the names of the files in a directory and in those below it. A directory that
// somebody removes meanwhile has no files.
func (d dir) walk(parent, prefix string, names *[]string) error {
	entries, err := settled(func() ([]fs.DirEntry, error) {
		return os.ReadDir(filepath.Join(string(d), filepath.FromSlash(parent)))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(parent, entry.Name())
		switch {
		case entry.IsDir() && (strings.HasPrefix(name+"/", prefix) || strings.HasPrefix(prefix, name+"/")):
			if err := d.walk(name, prefix, names); err != nil {
				return err
			}
		case !entry.IsDir() && strings.HasPrefix(name, prefix) && !hidden(entry):
			*names = append(*names, name)
		}
	}
	return nil
}

// hidden reports whether an entry is one that readers leave out.
func hidden(entry fs.DirEntry) bool { return strings.HasPrefix(entry.Name(), ".") }

// readingsMax is how often a directory is read before its removals are an error.
const readingsMax = 1000

// settled reads a directory until no file has gone since the reading before, and returns the last
// reading. A system reads a large directory in pieces. While it does, a target may put a file where
// it has read already, and remove those included where it has not read yet. One reading can
// therefore miss a sample that was there all the time. The second one has the file that was put.
func settled(read func() ([]fs.DirEntry, error)) ([]fs.DirEntry, error) {
	var before []string
	for i := range readingsMax {
		entries, err := read()
		if err != nil {
			return nil, err
		}
		var now []string // in order, as entries are
		for _, entry := range entries {
			if !hidden(entry) { // unfinished files come and go
				now = append(now, entry.Name())
			}
		}
		gone := func(name string) bool {
			_, found := slices.BinarySearch(now, name)
			return !found
		}
		if i > 0 && !slices.ContainsFunc(before, gone) {
			return entries, nil
		}
		before = now
	}
	return nil, fmt.Errorf("files kept disappearing while the directory was read (%d attempts)", readingsMax)
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
		return fmt.Errorf("%s is a file, not a directory", path)
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
