package journal

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// Journal is a place for entries: a directory or an object store. Its methods are safe for
// concurrent use.
type Journal struct{ place place }

// place stores files.
type place interface {
	list(ctx context.Context, prefix string) ([]string, error)
	open(ctx context.Context, name string) (Object, error)
	check(ctx context.Context) error
	appender(label string) appender
	group() time.Duration // for how long entries are collected before a write
	String() string
}

// appender appends blocks of whole lines. One goroutine uses it.
type appender interface {
	// append is durable when it returns nil. at is the time of the last entry.
	append(ctx context.Context, at time.Time, block []byte) error
	close() error
}

// Store is an object store. Names have slashes. Its methods must be safe for concurrent use.
type Store interface {
	List(ctx context.Context, prefix string) ([]string, error)
	Open(ctx context.Context, name string) (Object, error)
	// Put creates an object as a whole: it is durable when Put returns nil.
	Put(ctx context.Context, name string, write func(io.Writer) error) error
	String() string // the address, for messages
}

// Object is an open file or object.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Dir returns the journal in a directory, which the first write creates.
func Dir(path string) *Journal { return &Journal{dir(path)} }

// Objects returns the journal in an object store.
func Objects(s Store) *Journal { return &Journal{objects{s}} }

// String returns the address of the journal.
func (j *Journal) String() string { return j.place.String() }

// Check returns an error if the journal cannot be used. A directory is created and written to; an
// object store is only listed.
func (j *Journal) Check(ctx context.Context) error {
	if err := j.place.check(ctx); err != nil {
		return fmt.Errorf("journal %s: %w", j, err)
	}
	return nil
}

const (
	dayLayout  = "2006-01-02"
	nameLayout = dayLayout + "/150405.000"
	suffix     = ".undo1"

	// fileSpan is the time between a file's name and its last entry, at most.
	fileSpan = time.Hour
	// fileLead is the time between a file's first entry and its name, at most: the entry waits for
	// the write before it.
	fileLead = 2 * writeLimit
	// daysListed is the number of days up to which each day is listed by itself.
	daysListed = 31
)

// fileName returns the name of a file of a writer.
func fileName(at time.Time, label string, n int) string {
	return fmt.Sprintf("%s-%s-%d%s", at.UTC().Format(nameLayout), label, n, suffix)
}

// hasVersion reports whether a name ends as the names of any version of the format do: ".undo" and a
// number.
func hasVersion(name string) bool {
	head := strings.TrimRight(name, "0123456789")
	return head != name && strings.HasSuffix(head, ".undo")
}

// nameTime returns the time in a file's name. ok is false for other files.
func nameTime(name string) (at time.Time, ok bool) {
	if len(name) < len(nameLayout) || path.Dir(path.Dir(name)) != "." {
		return at, false
	}
	at, err := time.Parse(nameLayout, name[:len(nameLayout)])
	return at, err == nil
}

// Files returns the names of the files that may have entries from one instant until another, in the
// order of their times.
func (j *Journal) Files(ctx context.Context, from, until time.Time) (names []string, err error) {
	first, last := from.UTC().Add(-fileSpan), until.UTC().Add(fileLead)
	prefixes := []string{""}
	if last.Sub(first) < daysListed*24*time.Hour {
		prefixes = nil
		for day := first.Truncate(24 * time.Hour); !day.After(last); day = day.AddDate(0, 0, 1) {
			prefixes = append(prefixes, day.Format(dayLayout)+"/")
		}
	}
	for _, prefix := range prefixes {
		some, err := j.place.list(ctx, prefix)
		if err != nil {
			return nil, fmt.Errorf("journal %s: %w", j, err)
		}
		for _, name := range some {
			at, ok := nameTime(name)
			if !ok || !hasVersion(name) || at.Before(first) || at.After(last) {
				continue
			}
			if !strings.HasSuffix(name, suffix) {
				return nil, fmt.Errorf("journal %s: %s has another version of the format; read it with the mayfly that wrote it", j, name)
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
