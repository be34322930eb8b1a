package journal

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/durable"
)

// dir is a journal in a directory.
type dir string

const (
	dirGroup = 10 * time.Millisecond
	fileMax  = 64 << 20 // bytes, from which a file gets no more entries
)

func (d dir) String() string { return string(d) }

func (d dir) group() time.Duration { return dirGroup }

func (d dir) list(_ context.Context, prefix string) (names []string, err error) {
	days, err := os.ReadDir(string(d))
	for _, day := range days {
		if !day.IsDir() || !strings.HasPrefix(day.Name()+"/", prefix) {
			continue
		}
		files, err := os.ReadDir(filepath.Join(string(d), day.Name()))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			names = append(names, path.Join(day.Name(), f.Name()))
		}
	}
	return names, err
}

func (d dir) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

type localFile struct {
	*os.File
	size int64
}

func (f localFile) Size() int64 { return f.size }

func (d dir) open(_ context.Context, name string) (Object, error) {
	file, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return localFile{file, info.Size()}, nil
}

func (d dir) check(context.Context) error {
	if err := durable.MakeDirs(string(d)); err != nil {
		return err
	}
	probe, err := os.CreateTemp(string(d), ".probe-")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func (d dir) appender(label string) appender { return &dirAppender{dir: d, label: label} }

// dirAppender appends to a file of a directory.
type dirAppender struct {
	dir   dir
	label string
	made  int // files
	file  *os.File
	hour  time.Time // of the file's entries
	size  int64     // of the durable entries
}

func (a *dirAppender) append(_ context.Context, at time.Time, block []byte) error {
	hour := at.UTC().Truncate(time.Hour)
	if a.file != nil && (!hour.Equal(a.hour) || a.size >= fileMax) {
		if err := a.close(); err != nil {
			return err
		}
	}
	if a.file == nil {
		if err := a.create(at); err != nil {
			return err
		}
		a.hour = hour
	}
	_, err := a.file.Write(block)
	if err == nil {
		err = a.file.Sync()
	}
	if err != nil {
		a.abandon()
		return err
	}
	a.size += int64(len(block))
	return nil
}

// create creates the next file, durably.
func (a *dirAppender) create(at time.Time) error {
	a.made++
	file := a.dir.path(fileName(at, a.label, a.made))
	parent := filepath.Dir(file)
	if err := durable.MakeDirs(parent); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600) // it holds items
	if err != nil {
		return err
	}
	if err := durable.SyncDir(parent); err != nil {
		return errors.Join(err, f.Close(), os.Remove(file))
	}
	a.file, a.size = f, 0
	return nil
}

// abandon leaves a file in which a write has failed, with its durable entries only if possible. The
// kernel may have dropped unsynced pages, so no later sync of this file proves anything.
func (a *dirAppender) abandon() {
	_ = a.file.Truncate(a.size)
	_ = a.file.Close()
	if a.size == 0 {
		_ = os.Remove(a.file.Name())
	}
	a.file = nil
}

func (a *dirAppender) close() error {
	if a.file == nil {
		return nil
	}
	f := a.file
	a.file = nil
	return f.Close()
}
