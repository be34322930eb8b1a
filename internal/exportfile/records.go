package exportfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// CSV has the settings of files in CSV, as those of DynamoDB's ImportTable.
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

// gzipMagic is how gzip's data begins.
const gzipMagic = "\x1f\x8b"

// decompress returns the contents of a file. It recognizes gzip by the first bytes, not by the name.
func decompress(name string, r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(len(gzipMagic))
	if string(head) == gzipMagic {
		return gzip.NewReader(r)
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	if strings.HasSuffix(name, ".gz") && len(head) > 0 {
		return nil, errors.New("the name ends with .gz, but the contents are not compressed with gzip")
	}
	return r, nil
}

// records yields the records of a file.
func (s *Source) records(name string, r io.Reader, yield func(Record) error) error {
	if s.format.CSV != nil {
		return s.format.CSV.records(name, r, yield)
	}
	incremental := s.Summary != nil && s.Summary.ExportType == Incremental
	lines := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	for n := int64(1); ; n++ {
		line, err := readLine(lines, &long)
		if err != nil && err != io.EOF {
			return &Error{name, n, damaged(err)}
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			record, wrong := parse(text, incremental)
			if wrong != nil {
				return &Error{name, n, wrong}
			}
			record.Line = n
			if wrong := yield(record); wrong != nil {
				return wrong
			}
		}
		if err == io.EOF {
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
	var read struct {
		Item     json.RawMessage
		Keys     json.RawMessage
		NewImage json.RawMessage
	}
	if !utf8.Valid(line) {
		return r, errors.New("the line is not UTF-8")
	}
	if err := json.Unmarshal(line, &read); err != nil {
		return r, fmt.Errorf("invalid JSON: %w", err)
	}
	switch {
	case incremental && read.Keys == nil:
		return r, errors.New(`the record has no "Keys"`)
	case incremental && string(read.NewImage) == "null":
		return Record{Keys: read.Keys}, nil
	case incremental:
		return Record{Item: read.NewImage, Keys: read.Keys}, nil
	case read.Item == nil && read.NewImage != nil:
		return r, errors.New(`the line is a record of an incremental export, whose manifests are missing`)
	case read.Item == nil:
		return r, errors.New(`the line has no "Item"`)
	}
	return Record{Item: read.Item}, nil
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
}

func (l *limited) Read(p []byte) (int, error) {
	if l.read > l.most {
		return 0, fmt.Errorf("the record is longer than %d bytes", RecordMax)
	}
	n, err := l.Reader.Read(p)
	l.read += int64(n)
	return n, err
}

// records yields the items of a file.
func (c *CSV) records(name string, r io.Reader, yield func(Record) error) error {
	in := &limited{Reader: r, most: RecordMax}
	rows := csv.NewReader(in)
	rows.Comma, rows.ReuseRecord, rows.FieldsPerRecord = c.Delimiter, true, -1
	header := c.Header
	var item []byte
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
			return &Error{name, int64(wrong.Line), wrong.Err}
		}
		if err != nil {
			return faulty(name, "%w", damaged(err))
		}
		in.most = rows.InputOffset() + RecordMax
		at, _ := rows.FieldPos(0)
		line := int64(at)
		if header == nil {
			header = make([]string, len(row))
			copy(header, row)
			header[0] = strings.TrimPrefix(header[0], "\ufeff")
			if err := c.checkHeader(header); err != nil {
				return &Error{name, line, err}
			}
			continue
		}
		if len(row) != len(header) {
			return &Error{name, line, fmt.Errorf("the row has %d columns, but the header has %d", len(row), len(header))}
		}
		if item, err = c.appendItem(item[:0], header, row); err != nil {
			return &Error{name, line, err}
		}
		if err := yield(Record{Line: line, Item: item}); err != nil {
			return err
		}
	}
}

// appendItem appends a row as the JSON of an item. An empty cell is an empty string. It is no
// attribute if it is the key of an index, since such a key cannot be empty.
func (c *CSV) appendItem(dst []byte, header, row []string) ([]byte, error) {
	dst = append(dst, '{')
	first := true
	for i, name := range header {
		kind, isKey := c.Types[name]
		if !isKey {
			kind = "S"
		}
		if !utf8.ValidString(row[i]) {
			return nil, fmt.Errorf("the value of %q is not UTF-8", name)
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
