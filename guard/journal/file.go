package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
)

// File is an open file of a journal.
type File struct {
	name string
	Object
}

// Record is an entry and its place in the file.
type Record struct {
	Entry
	Offset int64
	Length int // of the line, with its line feed
}

// Damage is the error for a part of a file that is no entry.
type Damage struct {
	File           string
	Offset, Length int64
	Torn           bool // the end of a file: a crash has cut off the last write
	Err            error
}

func (d *Damage) Error() string {
	return fmt.Sprintf("%s: %d bytes at offset %d: %v", d.File, d.Length, d.Offset, d.Err)
}

func (d *Damage) Unwrap() error { return d.Err }

// Open opens a file that Files has returned.
func (j *Journal) Open(ctx context.Context, name string) (*File, error) {
	o, err := j.place.open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", j, err)
	}
	return &File{name, o}, nil
}

// Records returns the entries of the file in order. Each error but the last is a *Damage, behind
// which the entries go on.
func (f *File) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		in := bufio.NewReaderSize(io.NewSectionReader(f, 0, f.Size()), 64<<10)
		for offset := int64(0); ; {
			line, length, err := readLine(in)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(Record{}, fmt.Errorf("read %s at offset %d: %w", f.name, offset, err))
				return
			}
			if length == 0 {
				return
			}
			torn := err != nil
			var r Record
			switch {
			case torn:
				err = errTorn
			case line == nil:
				err = errLong
			default:
				r.Entry, err = parse(line)
			}
			if err != nil {
				err = &Damage{f.name, offset, length, torn, err}
			}
			r.Offset, r.Length = offset, int(length)
			if !yield(r, err) {
				return
			}
			offset += length
		}
	}
}

// readLine reads a line and returns it without its line feed, and its length with it. The line is
// nil if it is too long. The error is io.EOF if the line has no line feed.
func readLine(in *bufio.Reader) (line []byte, length int64, err error) {
	line = []byte{}
	for {
		part, err := in.ReadSlice('\n')
		length += int64(len(part))
		if line != nil {
			line = append(line, part...)
		}
		if length > lineMax {
			line = nil
		}
		if err == nil && line != nil {
			line = line[:len(line)-1]
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, length, err
		}
	}
}

// At returns the entry at the place of a record.
func (f *File) At(offset int64, length int) (Entry, error) {
	line := make([]byte, length)
	if _, err := f.ReadAt(line, offset); err != nil && !errors.Is(err, io.EOF) {
		return Entry{}, fmt.Errorf("read %s at offset %d: %w", f.name, offset, err)
	}
	e, err := parse(line[:length-1])
	if err != nil {
		err = &Damage{f.name, offset, int64(length), false, err}
	}
	return e, err
}
