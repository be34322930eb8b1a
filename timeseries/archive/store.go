package archive

import (
	"context"
	"io"

	"github.com/mayflydb/mayfly/internal/objects"
)

// Store stores the files of an archive. Names have slashes. Its methods must be safe for concurrent
// use.
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
func Dir(path string) Store { return dir{objects.Dir(path)} }

type dir struct{ objects.Store }

func (d dir) Open(ctx context.Context, name string) (File, error) { return d.Store.Open(ctx, name) }
