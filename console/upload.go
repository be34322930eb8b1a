package console

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

const (
	importBytes = 32 << 20 // of all files of an upload
	lineMost    = 2 << 20  // an item of 400 KB as JSON, with escapes
)

// upload is the files of a form, one after the other in a temporary file: all lines are checked
// before the first item is written, and memory has only those that are being written.
type upload struct {
	file  *os.File
	parts []uploaded
}

// uploaded is a file of an upload.
type uploaded struct {
	name         string
	offset, size int64
}

// errUpload is the refusal of an upload that is too large.
var errUpload = &pageError{http.StatusRequestEntityTooLarge, "The files have more than " + size(importBytes) + ". Nothing was written. mayfly import has no limit."}

// receive stores the files of a form. The caller removes the upload.
func receive(r *http.Request) (*upload, error) {
	form, err := r.MultipartReader()
	if err != nil {
		return nil, &pageError{http.StatusBadRequest, "Choose a file."}
	}
	file, err := os.CreateTemp("", "mayfly-import-")
	if err != nil {
		return nil, &pageError{http.StatusInternalServerError, "The upload cannot be stored: " + err.Error() + ". Set TMPDIR to a directory with room, or use mayfly import."}
	}
	u := &upload{file: file}
	var total int64
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err == nil && part.FormName() == "file" && part.FileName() != "" {
			var n int64
			if n, err = io.Copy(file, io.LimitReader(part, importBytes-total+1)); err == nil {
				u.parts = append(u.parts, uploaded{part.FileName(), total, n})
				total += n
			}
		}
		tooLarge := (*http.MaxBytesError)(nil)
		switch {
		case total > importBytes || errors.As(err, &tooLarge):
			u.remove()
			return nil, errUpload
		case err != nil:
			u.remove()
			return nil, &pageError{http.StatusBadRequest, "The upload has ended early: " + err.Error()}
		}
	}
	if len(u.parts) == 0 {
		u.remove()
		return nil, &pageError{http.StatusBadRequest, "Choose a file."}
	}
	return u, nil
}

// remove deletes the temporary file.
func (u *upload) remove() {
	_ = u.file.Close() // it is deleted
	_ = os.Remove(u.file.Name())
}

// read reads the items of all files: CSV by their names, and otherwise JSON lines. add gets each item
// with about its length as text.
func (u *upload) read(t *table, add func(item attr.Item, bytes int) error) error {
	for _, part := range u.parts {
		read := t.readLines
		if strings.HasSuffix(strings.ToLower(part.name), ".csv") {
			read = t.readCSV
		}
		if err := read(io.NewSectionReader(u.file, part.offset, part.size), add); err != nil {
			return fmt.Errorf("%s: %w", clip(part.name, cellMost), err)
		}
	}
	return nil
}

// readLines reads JSON lines. Empty lines are passed over.
func (t *table) readLines(r io.Reader, add func(attr.Item, int) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineMost)
	n := 1
	for ; lines.Scan(); n++ {
		text := bytes.TrimPrefix(bytes.TrimSpace(lines.Bytes()), []byte(byteOrderMark))
		if len(text) == 0 {
			continue
		}
		item, err := t.readItem(string(text), false, nil)
		if err == nil {
			err = add(item, len(text))
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, plainError(err))
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d: it has more than %s", n, size(lineMost))
	}
	return lines.Err()
}

// plainError returns an error without its status and its full stop, to be part of another text.
func plainError(err error) error {
	var own *pageError
	if errors.As(err, &own) {
		return errors.New(strings.TrimSuffix(own.text, "."))
	}
	return err
}

// byteOrderMark is at the beginning of UTF-8 files of some programs.
const byteOrderMark = "\ufeff"

// readCSV reads CSV. An empty field is no attribute. As in all CSV, a line end within quotes is a line
// feed.
func (t *table) readCSV(r io.Reader, add func(attr.Item, int) error) error {
	text := bufio.NewReader(r)
	if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = text.Discard(len(byteOrderMark)) // it was read already
	}
	c := csv.NewReader(text)
	names, err := c.Read()
	if err != nil {
		return fmt.Errorf("the line of names: %w", err)
	}
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) {
			return fmt.Errorf("the line of names: column %d has no name of its own: %q", i+1, name)
		}
	}
	reader := t.reader()
	for {
		fields, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		item, length := attr.Item{}, 0
		for i, text := range fields {
			if text == "" {
				continue
			}
			length += len(names[i]) + len(text)
			if item[names[i]], err = valueOf(string(t.kind(names[i])), text); err != nil {
				break
			}
		}
		if err == nil {
			read := transfer.AppendItem(nil, item)
			if err = fits(reader, read); err == nil {
				item, _, err = reader.Read(read)
			}
		}
		if err == nil {
			err = add(item, length)
		}
		if err != nil {
			line, _ := c.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, plainError(err))
		}
	}
}
