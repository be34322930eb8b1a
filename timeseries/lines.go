package timeseries

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineMax is how many bytes a line may have. Of a longer one the beginning is kept, to be put aside.
const lineMax = 1 << 20

// lines reads the lines of a file, and knows where each ends.
type lines struct {
	from   *bufio.Reader
	offset int64 // behind the last line
	number int64 // of the last line
	text   []byte
	long   bool // it has more than lineMax bytes
}

// newLines reads from a place in a file: so many bytes and lines lie before it.
func newLines(from io.Reader, offset, number int64) *lines {
	return &lines{from: bufio.NewReaderSize(from, 256<<10), offset: offset, number: number}
}

// next reads a line: text is what it has before its end, until the next call. io.EOF: there is none.
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
			l.offset = begin // a part of a line is none
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
