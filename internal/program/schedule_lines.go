package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// numbered is the JSON of a schedule with its first line's number, or an error about that line.
type numbered struct {
	line int
	text []byte
	err  error
}

const (
	// limit for one schedule: an input of 256 KB, all of it escaped, is 1.5 MB
	documentMax = 4 << 20
	linesMax    = 10_000_000 // limit for one file
)

// documents reads the schedules of a file: JSON lines, or one JSON array.
type documents struct {
	from io.Reader
	read int64 // bytes so far

	lines *bufio.Reader
	line  int // number of the line that was read last
	array *json.Decoder
	ends  []int64 // offsets of line ends not yet counted, in an array
	until int64   // limit for reading the array
	count int
}

// next returns the next schedule, or io.EOF at the end. After another error the file is unreadable.
func (d *documents) next() (numbered, error) {
	if d.count++; d.count > linesMax {
		return numbered{}, fmt.Errorf("the file has more than %d schedules; split it", linesMax)
	}
	if d.lines == nil {
		if err := d.begin(); err != nil {
			return numbered{}, err
		}
	}
	if d.array != nil {
		return d.nextElement()
	}
	return d.nextLine()
}

// begin recognizes the form of the file.
func (d *documents) begin() error {
	d.lines = bufio.NewReaderSize(d.from, 64<<10)
	if mark, _ := d.lines.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = d.lines.Discard(3)
	}
	d.line = 1
	for {
		c, err := d.lines.ReadByte()
		switch {
		case err != nil:
			return err
		case c == '\n':
			d.line++
		case c == ' ' || c == '\t' || c == '\r':
		case c == '[':
			return d.beginArray()
		default:
			d.line--
			return d.lines.UnreadByte()
		}
	}
}

func (d *documents) beginArray() error {
	if err := d.lines.UnreadByte(); err != nil {
		return err
	}
	d.until = documentMax
	d.array = json.NewDecoder((*arrayReader)(d))
	_, err := d.array.Token() // the bracket
	return err
}

// arrayReader reads for the decoder, and records the offsets of line ends.
type arrayReader documents

var errDocumentTooLong = fmt.Errorf("a schedule is larger than %d bytes", documentMax)

func (r *arrayReader) Read(p []byte) (int, error) {
	if r.read >= r.until {
		return 0, errDocumentTooLong
	}
	n, err := r.lines.Read(p[:min(int64(len(p)), r.until-r.read)])
	for i, c := range p[:n] {
		if c == '\n' {
			r.ends = append(r.ends, r.read+int64(i))
		}
	}
	r.read += int64(n)
	return n, err
}

// lineAt returns the line number of an offset. Offsets must not decrease from call to call.
func (d *documents) lineAt(offset int64) int {
	for len(d.ends) > 0 && d.ends[0] < offset {
		d.ends = d.ends[1:]
		d.line++
	}
	return d.line
}

// lineOfNext returns the number of the line where the unreadable part begins.
func (d *documents) lineOfNext() int {
	buffered, _ := io.ReadAll(d.array.Buffered()) // reads from memory
	skipped := len(buffered) - len(bytes.TrimLeft(buffered, " \t\r\n,"))
	return d.lineAt(d.array.InputOffset() + int64(skipped))
}

func (d *documents) nextElement() (numbered, error) {
	var text json.RawMessage
	if d.array.More() {
		if err := d.array.Decode(&text); err != nil {
			return numbered{}, fmt.Errorf("line %d: %w", d.lineOfNext(), arrayError(err))
		}
		end := d.array.InputOffset()
		d.until = end + documentMax
		return numbered{line: d.lineAt(end - int64(len(text))), text: text}, nil
	}
	if _, err := d.array.Token(); err != nil {
		return numbered{}, fmt.Errorf("line %d: %w", d.lineOfNext(), arrayError(err))
	}
	if _, err := d.array.Token(); err != io.EOF {
		return numbered{}, fmt.Errorf("line %d: unexpected text after the JSON array", d.lineOfNext())
	}
	return numbered{}, io.EOF
}

func arrayError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON array is incomplete")
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return errors.New("not valid JSON: expected a comma, a bracket or a schedule")
	}
	return err
}

// nextLine returns the next line that is not blank.
func (d *documents) nextLine() (numbered, error) {
	for {
		text, err := d.readLine()
		if err == io.EOF && len(text) == 0 {
			return numbered{}, io.EOF
		}
		if err != nil && err != io.EOF && err != errDocumentTooLong {
			return numbered{}, err
		}
		d.line++
		if err == errDocumentTooLong {
			return numbered{line: d.line, err: err}, nil
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return numbered{line: d.line, text: text}, nil
		}
	}
}

// readLine reads to the end of the line. It returns nothing of a line that is too long.
func (d *documents) readLine() (text []byte, err error) {
	long := false
	for {
		part, err := d.lines.ReadSlice('\n')
		d.read += int64(len(part))
		if len(text)+len(part) > documentMax {
			long, text = true, nil
		}
		if !long {
			text = append(text, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if long && (err == nil || err == io.EOF) {
			return nil, errDocumentTooLong
		}
		return text, err
	}
}
