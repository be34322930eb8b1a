package timeseries

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineMax is the maximum length of a line in bytes. The beginning of a longer one is kept for the
// rejects.
const lineMax = 1 << 20

// lines reads the lines of a file and their offsets.
type lines struct {
	from   *bufio.Reader
	offset int64 // after the last line
	number int64 // of the last line
	text   []byte
	long   bool // the last line is longer than lineMax
}

// newLines returns a reader that starts after this number of bytes and lines.
func newLines(from io.Reader, offset, number int64) *lines {
	return &lines{from: bufio.NewReaderSize(from, 256<<10), offset: offset, number: number}
}

// next reads a line into text, without its end and until the next call. It returns io.EOF at the
// end.
func (l *lines) next() error {
	l.text, l.long = l.text[:0], false
	begin := l.offset
	for {
		part, err := l.from.ReadSlice('\n')
		l.offset += int64(len(part))
		if room := lineMax + 2 - len(l.text); len(part) > room {
			part, l.long = part[:room], true
		}
		l.text = append(l.text, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(l.text) == 0 && !l.long:
			return io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			l.offset = begin // an incomplete line does not count
			return err
		}
		l.number++
		l.text = bytes.TrimSuffix(bytes.TrimSuffix(l.text, []byte("\n")), []byte("\r"))
		if l.number == 1 {
			l.text = bytes.TrimPrefix(l.text, []byte("\xef\xbb\xbf"))
		}
		if len(l.text) > lineMax {
			l.text, l.long = l.text[:lineMax], true
		}
		return nil
	}
}
