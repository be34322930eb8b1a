package exportfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// CSV has the settings of files in CSV, like CsvOptions of DynamoDB's ImportTable.
type CSV struct {
	Delimiter rune     // comma, tab, colon, semicolon, pipe or space
	Header    []string // the names of the columns. Default: the first line of each file
	// the types of the key attributes of the table and of its indexes: S, N or B. All other
	// attributes are strings
	Types map[string]string
	// the key attributes of the table itself, which each file needs as columns
	Keys []string
}

// columnsMax is ImportTable's limit.
const columnsMax = 255

// Delimiters are the delimiters that ImportTable knows.
const Delimiters = ",\t:;| "

// Values of Format.Compression.
const (
	Uncompressed = "NONE"
	Gzip         = "GZIP"
	Zstd         = "ZSTD"
)

// How compressed data begins. No UTF-8 begins so.
const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// zstdWindowMax bounds the memory of a decoder of zstd, in bytes. The levels up to 19 use 8 MB at most.
const zstdWindowMax = 32 << 20

// recognize returns the compression of a file that begins with these bytes.
func recognize(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte(gzipMagic)):
		return Gzip
	case bytes.HasPrefix(head, []byte(zstdMagic)):
		return Zstd
	}
	return Uncompressed
}

// decompress returns the contents of a file. The first bytes determine the compression; the format and
// the suffix of the name must agree. An empty file agrees with all.
func (f Format) decompress(name string, r *bufio.Reader) (io.ReadCloser, error) {
	head, err := r.Peek(len(zstdMagic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	found := recognize(head)
	switch {
	case len(head) == 0:
	case f.Compression != "" && found != f.Compression:
		return nil, fmt.Errorf("its compression is %s, not %s", found, f.Compression)
	case f.Compression == "" && strings.HasSuffix(name, ".gz") && found != Gzip:
		return nil, errors.New("the name ends with .gz, but the contents are not compressed with gzip")
	case f.Compression == "" && strings.HasSuffix(name, ".zst") && found != Zstd:
		return nil, errors.New("the name ends with .zst, but the contents are not compressed with zstd")
	}
	switch found {
	case Gzip:
		return gzip.NewReader(r)
	case Zstd:
		decoder, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(zstdWindowMax), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return decoder.IOReadCloser(), nil
	}
	return io.NopCloser(r), nil
}

// damaged explains an error of compressed data.
func damaged(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file is truncated: its compressed data ends too early")
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("its zstd window is larger than %d MB; compress it without --ultra and --long", zstdWindowMax>>20)
	}
	return err
}

// reading is the reading of a file.
type reading struct {
	format      Format
	file        File
	incremental bool
	yield       func(Record) error
	items       int64 // including bad records
}

// record counts a record and yields it.
func (r *reading) record(record Record) error {
	if err := r.count(record.Line); err != nil {
		return err
	}
	return r.yield(record)
}

// bad counts a record that cannot be read. It returns an error if the reading ends here.
func (r *reading) bad(line int64, wrong error) error {
	fault := &Error{r.file.Name, line, wrong}
	if r.format.Bad == nil {
		return fault
	}
	if err := r.count(line); err != nil {
		return err
	}
	return r.format.Bad(fault)
}

func (r *reading) count(line int64) error {
	if r.items++; r.file.Items >= 0 && r.items > r.file.Items {
		return &Error{r.file.Name, line, fmt.Errorf("the file has more items than the manifest says: %d", r.file.Items)}
	}
	return nil
}

// lines yields the records of a file in DynamoDB JSON.
func (r *reading) lines(contents io.Reader) error {
	lines := bufio.NewReaderSize(contents, 256<<10)
	var long []byte
	for n := int64(1); ; n++ {
		line, ended := readLine(lines, &long)
		if ended != nil && ended != io.EOF {
			return &Error{r.file.Name, n, damaged(ended)}
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			record, err := parse(text, r.incremental)
			if err != nil {
				err = r.bad(n, err)
			} else {
				record.Line, record.Size = n, len(line)
				err = r.record(record)
			}
			if err != nil {
				return err
			}
		}
		if ended == io.EOF {
			return nil
		}
	}
}

// readLine returns the next line, which is valid until the next call. Its error is io.EOF for the
// last line.
func readLine(r *bufio.Reader, long *[]byte) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	*long = append((*long)[:0], line...)
	for err == bufio.ErrBufferFull {
		line, err = r.ReadSlice('\n')
		if *long = append(*long, line...); len(*long) > RecordMax {
			return nil, fmt.Errorf("the line is longer than %d bytes", RecordMax)
		}
	}
	return *long, err
}

// parse returns the record in a line.
func parse(line []byte, incremental bool) (r Record, err error) {
	if !utf8.Valid(line) {
		return r, errors.New("the line is not UTF-8")
	}
	read, ok := split(line)
	if !ok {
		if read, err = decode(line); err != nil {
			return r, fmt.Errorf("invalid JSON: %w", err)
		}
	}
	switch {
	case incremental && read.keys == nil:
		return r, errors.New(`the record has no "Keys"`)
	case incremental && string(read.newImage) == "null":
		return Record{Keys: read.keys}, nil
	case incremental:
		return Record{Item: read.newImage, Keys: read.keys}, nil
	case read.item == nil && read.newImage != nil:
		return r, errors.New(`the line is a record of an incremental export, whose manifests are missing`)
	case read.item == nil:
		return r, errors.New(`the line has no "Item"`)
	}
	return Record{Item: read.item}, nil
}

// decode returns the members of a record in any form.
func decode(line []byte) (members, error) {
	var read struct{ Item, Keys, NewImage json.RawMessage }
	err := json.Unmarshal(line, &read)
	return members{read.Item, read.Keys, read.NewImage}, err
}

// Check returns an error if the settings are wrong.
func (c *CSV) Check() error {
	if !strings.ContainsRune(Delimiters, c.Delimiter) || c.Delimiter == 0 {
		return fmt.Errorf("the delimiter %q is not a comma, tab, colon, semicolon, pipe or space", c.Delimiter)
	}
	if c.Header == nil {
		return nil
	}
	return c.checkHeader(c.Header)
}

func (c *CSV) checkHeader(header []string) error {
	if len(header) > columnsMax {
		return fmt.Errorf("the header has %d columns; the limit is %d", len(header), columnsMax)
	}
	seen := make(map[string]bool, len(header))
	for _, name := range header {
		switch {
		case name == "":
			return errors.New("the header has a column without a name")
		case seen[name]:
			return fmt.Errorf("the header has the column %q twice", name)
		case !utf8.ValidString(name):
			return errors.New("the header is not UTF-8")
		}
		seen[name] = true
	}
	for _, key := range c.Keys {
		if !seen[key] {
			return fmt.Errorf("the header lacks the key attribute %q", key)
		}
	}
	return nil
}

// limited fails once it has read more than most bytes of a record that has not ended.
type limited struct {
	io.Reader
	read, most int64
	err        error // of the file; nil at its end
}

func (l *limited) Read(p []byte) (int, error) {
	if l.read > l.most {
		l.err = fmt.Errorf("the record is longer than %d bytes", RecordMax)
		return 0, l.err
	}
	n, err := l.Reader.Read(p)
	if l.read += int64(n); err != io.EOF {
		l.err = err
	}
	return n, err
}

// rows yields the items of a file in CSV.
func (r *reading) rows(contents io.Reader) error {
	c := r.format.CSV
	in := &limited{Reader: contents, most: RecordMax}
	rows := csv.NewReader(in)
	rows.Comma, rows.ReuseRecord, rows.FieldsPerRecord = c.Delimiter, true, -1
	header := c.Header
	var item []byte
	for {
		begin := rows.InputOffset()
		row, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		fault, misformed := errors.AsType[*csv.ParseError](err)
		if misformed && in.err != nil { // a row that is cut off
			err, misformed = in.err, false
		}
		if err != nil && !misformed {
			return faulty(r.file.Name, "%w", damaged(err))
		}
		in.most = rows.InputOffset() + RecordMax
		if misformed && header == nil {
			return &Error{r.file.Name, int64(fault.Line), fault.Err}
		}
		if misformed {
			if err := r.bad(int64(fault.Line), fault.Err); err != nil {
				return err
			}
			continue
		}
		at, _ := rows.FieldPos(0)
		line := int64(at)
		if header == nil {
			header = make([]string, len(row))
			copy(header, row)
			header[0] = strings.TrimPrefix(header[0], "\ufeff")
			if err := c.checkHeader(header); err != nil {
				return &Error{r.file.Name, line, err}
			}
			continue
		}
		if item, err = c.appendItem(item[:0], header, row); err != nil {
			err = r.bad(line, err)
		} else {
			err = r.record(Record{Line: line, Size: int(rows.InputOffset() - begin), Item: item})
		}
		if err != nil {
			return err
		}
	}
}

// appendItem appends a row as the JSON of an item. An empty cell is an empty string. It is no
// attribute if it is the key of an index, since such a key cannot be empty.
func (c *CSV) appendItem(dst []byte, header, row []string) ([]byte, error) {
	if len(row) != len(header) {
		return dst, fmt.Errorf("the row has %d columns, but the header has %d", len(row), len(header))
	}
	dst = append(dst, '{')
	first := true
	for i, name := range header {
		kind, isKey := c.Types[name]
		if !isKey {
			kind = "S"
		}
		if !utf8.ValidString(row[i]) {
			return dst, fmt.Errorf("the value of %q is not UTF-8", name)
		}
		if row[i] == "" && isKey {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, name), `:{"`...)
		dst = append(append(dst, kind...), `":`...)
		dst = append(appendString(dst, row[i]), '}')
	}
	return append(dst, '}'), nil
}

func appendString(dst []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string always has a form
	return append(dst, text...)
}
