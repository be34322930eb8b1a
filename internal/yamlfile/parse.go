// Package yamlfile parses the YAML and JSON files of users, and says where their faults are.
//
// The YAML library knows the place of a syntax error, but its message has a wrong line or none, and
// no column. Its errors about values have a line, no column, and the names of Go types.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// SyntaxError is the error for a text that is neither YAML nor JSON. Lines and columns count from 1;
// columns count characters.
type SyntaxError struct {
	Line, Column int
	Reason       string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// Parse returns the value in a text, or nil if the text is empty. The error is a *SyntaxError, also
// for a text with a second document.
func Parse(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, locate(decoder, text, err)
	}
	if err := decoder.Decode(&second); err != nil && !errors.Is(err, io.EOF) {
		return nil, locate(decoder, text, err)
	} else if err == nil {
		return nil, &SyntaxError{max(second.Line, 1), max(second.Column, 1), "a second document begins here; the file must have only one"}
	}
	return document.Content[0], nil
}

// mark is a place in a text; line and column count from 0.
type mark struct{ index, line, column int }

const (
	readerError = 2 // the library's kind of an error
	notYAML     = "it is neither YAML nor JSON: "
)

// locate returns the error of a decoder with its place. The library keeps the place in fields that
// are not exported. Reflection can read them, and TestParse fails if a new version has other ones.
func locate(decoder *yaml.Decoder, text []byte, err error) *SyntaxError {
	state := reflect.ValueOf(decoder).Elem().FieldByName("parser").Elem()
	parser := state.FieldByName("parser")
	problem := parser.FieldByName("problem").String()
	reason := notYAML + problem
	at, context := markOf(parser, "problem_mark"), markOf(parser, "context_mark")
	switch {
	case problem == "": // found after parsing
		at = markOf(state.FieldByName("event"), "start_mark")
		reason = notYAML + strings.TrimPrefix(err.Error(), "yaml: ")
		if strings.Contains(reason, "unknown anchor") { // the library quotes the name, which may be a secret
			reason = `a value begins with "*", which refers to an anchor that is missing; write the value in quotes`
		}
	case parser.FieldByName("error").Int() == readerError:
		at = markAt(text, int(parser.FieldByName("problem_offset").Int()))
	case strings.HasPrefix(problem, "could not find expected ':'"):
		at = context // of the name without a colon
	default:
		if opening := parser.FieldByName("context").String(); isOpening(opening) && unclosed(text, context, at) {
			at, reason = context, reason+"; what begins here is not closed"
		}
	}
	if at.index >= len(text) {
		at = markAt(text, len(bytes.TrimRight(text, " \r\n")))
	}
	return &SyntaxError{at.line + 1, at.column + 1, reason}
}

func markOf(v reflect.Value, name string) mark {
	v = v.FieldByName(name)
	return mark{int(v.FieldByName("index").Int()), int(v.FieldByName("line").Int()), int(v.FieldByName("column").Int())}
}

// markAt returns the mark of an offset in bytes.
func markAt(text []byte, offset int) mark {
	before := text[:min(offset, len(text))]
	begins := bytes.LastIndexByte(before, '\n') + 1
	return mark{offset, bytes.Count(before, []byte("\n")), utf8.RuneCount(before[begins:])}
}

// isOpening reports whether the context of an error is the begin of a list, of an object or of a
// quoted text.
func isOpening(context string) bool {
	switch context {
	case "while parsing a flow sequence", "while parsing a flow mapping", "while scanning a quoted scalar":
		return true
	}
	return false
}

// unclosed reports whether the end of what opened is missing: the text ends, or goes on in a line
// that is indented no deeper than the line of the opening.
func unclosed(text []byte, opened, found mark) bool {
	lines := bytes.Split(text, []byte("\n"))
	indent := func(line int) int { return len(lines[line]) - len(bytes.TrimLeft(lines[line], " -")) }
	switch {
	case found.index >= len(text) || found.line >= len(lines):
		return true
	case found.line == opened.line:
		return false
	}
	closing := bytes.TrimLeft(lines[found.line], " ")
	return indent(found.line) <= indent(opened.line) && (len(closing) == 0 || !bytes.ContainsRune([]byte("]}\"'"), rune(closing[0])))
}
