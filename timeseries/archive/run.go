package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"slices"
)

// A run is a temporary file of sorted rows, for rows that memory has no room for. Only the process
// that writes it reads it.

type run struct{ file *os.File }

// sortRows sorts rows, and drops duplicates.
func sortRows(rows []*row) []*row {
	slices.SortFunc(rows, byDay)
	return slices.CompactFunc(rows, func(a, b *row) bool { return a.device == b.device && a.key == b.key })
}

func newRun(dir string, rows []*row) (r *run, err error) {
	file, err := os.CreateTemp(dir, "mayfly-export-")
	if err != nil {
		return nil, err
	}
	r = &run{file}
	w := bufio.NewWriterSize(file, 256<<10)
	var b []byte
	for _, x := range rows {
		b = appendRow(b[:0], x)
		if _, err := w.Write(b); err != nil {
			return nil, errors.Join(fmt.Errorf("set rows aside: %w", err), r.close())
		}
	}
	if err := w.Flush(); err != nil {
		return nil, errors.Join(fmt.Errorf("set rows aside: %w", err), r.close())
	}
	return r, nil
}

func (r *run) close() error { return errors.Join(r.file.Close(), os.Remove(r.file.Name())) }

func appendRow(b []byte, x *row) []byte {
	for _, text := range [...]string{x.device, x.key, x.metadata} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	b = binary.AppendUvarint(b, uint64(len(x.values)))
	for _, v := range x.values {
		b = binary.AppendUvarint(b, uint64(v.column))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v.number))
	}
	return b
}

// rows returns the rows of the file.
func (r *run) rows() iter.Seq2[*row, error] {
	return func(yield func(*row, error) bool) {
		if _, err := r.file.Seek(0, io.SeekStart); err != nil {
			yield(nil, err)
			return
		}
		from := bufio.NewReaderSize(r.file, 64<<10)
		for {
			x, err := readRow(from)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(x, err) || err != nil {
				return
			}
		}
	}
}

func readRow(from *bufio.Reader) (*row, error) {
	x := &row{}
	for i, text := range [...]*string{&x.device, &x.key, &x.metadata} {
		n, err := binary.ReadUvarint(from)
		if i == 0 && errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, noEnd(err)
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(from, b); err != nil {
			return nil, noEnd(err)
		}
		*text = string(b)
	}
	n, err := binary.ReadUvarint(from)
	if err != nil {
		return nil, noEnd(err)
	}
	x.values = make([]value, n)
	var b [8]byte
	for i := range x.values {
		column, err := binary.ReadUvarint(from)
		if err != nil {
			return nil, noEnd(err)
		}
		if _, err := io.ReadFull(from, b[:]); err != nil {
			return nil, noEnd(err)
		}
		x.values[i] = value{int(column), math.Float64frombits(binary.LittleEndian.Uint64(b[:]))}
	}
	return x, nil
}

func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read rows that were set aside: %w", err)
}

// merged merges sorted sources; of equal rows it returns the first source's.
func merged(order func(a, b *row) int, sources ...iter.Seq2[*row, error]) iter.Seq2[*row, error] {
	if len(sources) == 1 {
		return sources[0]
	}
	return func(yield func(*row, error) bool) {
		type head struct {
			next func() (*row, error, bool)
			row  *row
		}
		var heads []*head
		advance := func(h *head) (more bool, err error) {
			r, err, more := h.next()
			h.row = r
			return more, err
		}
		for _, s := range sources {
			next, stop := iter.Pull2(s)
			defer stop()
			h := &head{next: next}
			more, err := advance(h)
			if err != nil {
				yield(nil, err)
				return
			}
			if more {
				heads = append(heads, h)
			}
		}
		for len(heads) > 0 {
			first := heads[0].row
			for _, h := range heads[1:] {
				if order(h.row, first) < 0 {
					first = h.row
				}
			}
			if !yield(first, nil) {
				return
			}
			for i := 0; i < len(heads); {
				if order(heads[i].row, first) != 0 {
					i++
					continue
				}
				more, err := advance(heads[i])
				if err != nil {
					yield(nil, err)
					return
				}
				if more {
					i++
				} else {
					heads = slices.Delete(heads, i, i+1)
				}
			}
		}
	}
}

func fromSlice(rows []*row) iter.Seq2[*row, error] {
	return func(yield func(*row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}
