package program

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// readAll returns the lines of a file with their texts, "!" for a bad line, and the final error.
func readAll(from io.Reader) (all []string, err error) {
	d := &documents{from: from}
	for {
		l, err := d.next()
		if err != nil {
			return all, err
		}
		text := string(l.text)
		if l.err != nil {
			text = "!"
		}
		all = append(all, fmt.Sprintf("%d %s", l.line, text))
	}
}

func TestDocuments(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", documentMax) + `"}`
	for _, c := range []struct {
		name, file string
		want       string // joined by |
		end        string // part of the error that ended it; empty: the end of the file
	}{
		{"lines", "{\"a\":1}\n\n  {\"b\":2}\r\n{bad\n{\"c\":3}", `1 {"a":1}|3 {"b":2}|4 {bad|5 {"c":3}`, ""},
		{"nothing", "", "", ""},
		{"blank", "\n \n", "", ""},
		{"after blank lines", "\n\n{}\n", "3 {}", ""},
		{"with a byte order mark", "\ufeff{}\n", "1 {}", ""},
		{"a long line", "{}\n" + long + "\n{\"c\":3}\n", `1 {}|2 !|3 {"c":3}`, ""},
		{"a long last line", "{}\n" + long, `1 {}|2 !`, ""},
		{"array", "\n[\n  {\"a\": 1},\n  {\n \"b\": 2},{}\n]\n", "3 {\"a\": 1}|4 {\n \"b\": 2}|5 {}", ""},
		{"array of one line", `[{"a":1},{}]`, `1 {"a":1}|1 {}`, ""},
		{"empty array", "[]", "", ""},
		{"half an array", "[\n{},\n{\"a\":", "2 {}", "line 3: the JSON array is incomplete"},
		{"an array without an end", "[\n{}\n", "2 {}", "incomplete"},
		{"a bad array", "[{},\n{x}]", "1 {}", "line 2: not valid JSON"},
		{"two arrays", "[{}]\n[]", "1 {}", "unexpected text"},
		{"a long element", "[{},\n" + long + "]", "1 {}", "larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, from := range []io.Reader{strings.NewReader(c.file), oneByOne{strings.NewReader(c.file)}} {
				got, err := readAll(from)
				if joined := strings.Join(got, "|"); joined != c.want {
					t.Errorf("got %s, want %s", joined, c.want)
				}
				if c.end == "" && err != io.EOF || c.end != "" && !strings.Contains(err.Error(), c.end) {
					t.Errorf("ended with %v, want %q", err, c.end)
				}
			}
		})
	}
}

// oneByOne reads as a slow pipe does.
type oneByOne struct{ from io.Reader }

func (o oneByOne) Read(p []byte) (int, error) { return o.from.Read(p[:min(len(p), 1)]) }

func TestDocumentsFailToRead(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, begin := range []string{"", "{}\n{", "[{},"} {
		_, err := readAll(io.MultiReader(strings.NewReader(begin), failing{broken}))
		if !errors.Is(err, broken) {
			t.Errorf("after %q: %v", begin, err)
		}
	}
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// For any file, lines come in order and reading ends.
func FuzzDocuments(f *testing.F) {
	for _, file := range []string{"{}\n{}", "[{},\n{}]", "[{}", "\ufeff[", "{\n[", "[[[[", "[1,2\n,\"x\"]"} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		d, last, count := &documents{from: strings.NewReader(file)}, 1, 0
		for {
			l, err := d.next()
			if err != nil {
				return
			}
			if count++; count > len(file) || l.line < last || l.line > 1+strings.Count(file, "\n") {
				t.Fatalf("entry %d is in line %d, after %d, of %q", count, l.line, last, file)
			}
			last = l.line
			if document, err := readDocument(l.text); err == nil {
				if _, err := marshalLine(document); err != nil {
					t.Fatalf("%s is read and cannot be written: %v", l.text, err)
				}
			}
		}
	})
}
