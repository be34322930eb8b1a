package backup

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// listName is the name of a stream's first entry.
const listName = "BACKUP"

// Source has the files of a database at one instant.
type Source interface {
	Files() []File // by name
	Open(name string) (io.ReadCloser, error)
}

// Send writes a backup stream, without the files that the receiver has. It returns an error if a file
// is not as Files says; the stream then ends early.
func Send(ctx context.Context, w io.Writer, s Source, l List, has []File) error {
	l.Format, l.Files = format, s.Files()
	content, err := json.Marshal(l)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	header := func(name string, size int64) error {
		return out.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: l.Taken, Format: tar.FormatPAX})
	}
	if err := header(listName, int64(len(content))); err != nil {
		return err
	}
	if _, err := out.Write(content); err != nil {
		return err
	}
	known := map[File]bool{}
	for _, f := range has {
		known[f] = true
	}
	for _, f := range l.Files {
		if known[f] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := header(f.Name, f.Size); err != nil {
			return err
		}
		if err := send(out, s, f); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return out.Close()
}

// errChanged reports bytes that differ from those that were written to a file.
var errChanged = errors.New("is damaged: its bytes are not those that were written")

func send(w io.Writer, s Source, f File) error {
	r, err := s.Open(f.Name)
	if err != nil {
		return err
	}
	defer r.Close()
	sum := crc32.New(castagnoli)
	if _, err := io.CopyN(w, io.TeeReader(r, sum), f.Size); err != nil {
		return err
	}
	if Sum(sum.Sum32()) != f.Sum {
		return errChanged
	}
	return nil
}

// receiver reads a backup stream.
type receiver struct {
	tar  *tar.Reader
	list *List
	next int // in the list
}

// receive reads the list of a stream.
func receive(r io.Reader) (*receiver, error) {
	in := &receiver{tar: tar.NewReader(r)}
	entry, err := in.tar.Next()
	if err != nil {
		return nil, cut(err)
	}
	if entry.Name != listName || entry.Size > listMax {
		return nil, fmt.Errorf("it begins with the entry %q of %d bytes, and is no backup stream", entry.Name, entry.Size)
	}
	content, err := io.ReadAll(in.tar)
	if err != nil {
		return nil, cut(err)
	}
	in.list, err = decodeList(content)
	return in, err
}

// cut returns io.ErrUnexpectedEOF for io.EOF: a stream ends after its last file.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// file moves to the next file of the stream, and returns io.EOF behind the last. It calls skipped
// with each file of the list that the stream leaves out.
func (in *receiver) file(skipped func(File) error) (File, error) {
	entry, err := in.tar.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		return File{}, err
	}
	ended := err != nil
	for ; in.next < len(in.list.Files); in.next++ {
		f := in.list.Files[in.next]
		if !ended && f.Name == entry.Name && f.Size == entry.Size {
			in.next++
			return f, nil
		}
		if err := skipped(f); err != nil {
			return File{}, err
		}
	}
	if !ended {
		return File{}, fmt.Errorf("it has the file %q of %d bytes, which is not in its list", entry.Name, entry.Size)
	}
	return File{}, io.EOF
}

// Read reads the present file.
func (in *receiver) Read(p []byte) (int, error) {
	n, err := in.tar.Read(p)
	return n, err
}
