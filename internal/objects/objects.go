// Package objects keeps whole files by name: in a directory, or, with an implementation elsewhere, in
// a bucket of S3.
package objects

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

	"github.com/mayflydb/mayfly/internal/durable"
)

// Store stores files by name. Names have slashes. Its methods must be safe for concurrent use.
type Store interface {
	// List returns the names with a prefix, in order. Other calls may put and remove files during a
	// List. It must return every file that exists throughout. If a file is put that includes
	// others, and these are then removed in order, List must return the new one or the first of the
	// others.
	List(ctx context.Context, prefix string) ([]string, error)
	// Open opens a file for reading; its error is fs.ErrNotExist for a missing one.
	Open(ctx context.Context, name string) (File, error)
	// Put creates or replaces a file as a whole: it is durable with all output of write, or, after
	// an error, unchanged.
	Put(ctx context.Context, name string, write func(io.Writer) error) error
	// Remove removes a file. A missing file is no error.
	Remove(ctx context.Context, name string) error
	// String returns the address, for messages.
	String() string
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Dir returns a Store in a directory, which the first Put creates.
func Dir(path string) Store { return dir(path) }

type dir string

// unfinished is the prefix of unfinished files. Readers of Parquet directories ignore names that
// start with a dot.
const unfinished = ".unfinished-"

func (d dir) String() string { return string(d) }

func (d dir) List(_ context.Context, prefix string) (names []string, err error) {
	err = d.walk("", prefix, &names)
	slices.Sort(names)
	return names, err
}

// walk appends the names of the files below a directory. A directory that is removed meanwhile has
// no files.
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
		case !entry.IsDir() && strings.HasPrefix(name, prefix) && !hidden(entry) && entry.Type()&notFiles == 0:
			*names = append(*names, name)
		}
	}
	return nil
}

// notFiles are the types of entries that are neither files nor links to one: to open one may block.
const notFiles = fs.ModeNamedPipe | fs.ModeSocket | fs.ModeDevice | fs.ModeCharDevice | fs.ModeIrregular

// hidden reports whether readers ignore an entry.
func hidden(entry fs.DirEntry) bool { return strings.HasPrefix(entry.Name(), ".") }

// readingsMax is the number of times that settled reads a directory before it fails.
const readingsMax = 1000

// settled reads a directory until no file has disappeared since the previous reading, and returns
// the last reading. A system reads a large directory in pieces. Meanwhile a target may put a file
// into a piece already read, and remove the included files from a later one. So one reading can
// miss a sample that existed throughout. The second reading has the new file.
func settled(read func() ([]fs.DirEntry, error)) ([]fs.DirEntry, error) {
	var before []string
	for i := range readingsMax {
		entries, err := read()
		if err != nil {
			return nil, err
		}
		var now []string // in the order of the entries
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

// Put writes to another name, syncs, renames, and syncs the directory.
func (d dir) Put(_ context.Context, name string, write func(io.Writer) error) (err error) {
	path := filepath.Join(string(d), filepath.FromSlash(name))
	parent := filepath.Dir(path)
	if err := durable.MakeDirs(parent); err != nil {
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
	return durable.SyncDir(parent)
}

// Remove keeps the directory: it has other files, or soon the day's next one.
func (d dir) Remove(_ context.Context, name string) error {
	err := os.Remove(filepath.Join(string(d), filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Below returns the files of a store below a folder, without the folder in their names. Without a
// folder it returns the store.
func Below(s Store, folder string) Store {
	folder = strings.Trim(folder, "/")
	if folder == "" {
		return s
	}
	return below{s, folder + "/"}
}

type below struct {
	whole  Store
	folder string // ends with a slash
}

func (b below) List(ctx context.Context, prefix string) ([]string, error) {
	names, err := b.whole.List(ctx, b.folder+prefix)
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, b.folder)
	}
	return names, err
}

func (b below) Open(ctx context.Context, name string) (File, error) {
	return b.whole.Open(ctx, b.folder+name)
}

func (b below) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	return b.whole.Put(ctx, b.folder+name, write)
}

func (b below) Remove(ctx context.Context, name string) error {
	return b.whole.Remove(ctx, b.folder+name)
}

func (b below) String() string {
	return strings.TrimSuffix(b.whole.String(), "/") + "/" + strings.TrimSuffix(b.folder, "/")
}
