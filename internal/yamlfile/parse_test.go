package yamlfile

import (
	"fmt"
	"strings"
	"testing"
)

// A syntax error has the place where a reader must change the file.
func TestParse(t *testing.T) {
	for file, want := range map[string]string{
		// a "?" needs quotes in braces
		"lifecycle: b\nattributes: {name: S, species: S?}\n": "2:33 did not find expected ',' or '}'",
		// what is not closed is told at its begin
		"states:\n  - name: a\n    next:\n      - [{to: b, after: 1h\n  - name: b\n": "4:10 did not find expected ',' or '}'; what begins here is not closed",
		"states:\n  - name: a\n    next: [{to: b, after: 1h}\n  - name: b\n":         "3:11 did not find expected ',' or ']'; what begins here is not closed",
		"a: 1\nb: [1, 2\nc: 3\n":    "2:4 did not find expected ',' or ']'; what begins here is not closed",
		"a: 1\nb: {x: 2, y\n":       "2:4 did not find expected ',' or '}'; what begins here is not closed",
		"a: 1\nb: \"open\nc: 2\n":   "2:4 found unexpected end of stream; what begins here is not closed",
		"a: [\n  1\n  2: 3: 4\n]\n": "3:4 did not find expected ',' or ']'",
		"{\"a\": 1,\n \"b\" 2\n}\n": "2:6 did not find expected ',' or '}'",
		"- {":                       "1:4 did not find expected node content",
		"a: 'it's'\nb: 2\n":         "1:8 did not find expected key",
		"ä: ü\nb: 'ö'x\n":           "2:7 did not find expected key",
		"a:\n\tb: 1\n":              "2:1 found character that cannot start any token",
		"a: 1\n b: 2\n":             "2:3 mapping values are not allowed in this context",
		"a: b: c\n":                 "1:5 mapping values are not allowed in this context",
		"a: 1\nb\nc: 3\n":           "2:1 could not find expected ':'",
		"a: 1\nb: *hidden\n":        `2:4 a value begins with "*", which refers to an anchor that is missing; write the value in quotes`,
		"a: x\nbä: \x01y\n":         "2:5 control characters are not allowed",
		"a: x\nb: \xff\n":           "2:4 invalid leading UTF-8 octet",
		"- a\nb: 1\n":               "2:1 did not find expected '-' indicator",
		"a: 1\nb: [1, 2]]\n":        "2:10 did not find expected key",
		"a: @x\n":                   "1:4 found character that cannot start any token",
		"a: 1\n---\nb: 2\n":         "2:1 a second document begins here; the file must have only one",
		"a: 1\n---\nb: [\n":         "3:5 did not find expected node content",
	} {
		node, err := Parse([]byte(file))
		e, ok := err.(*SyntaxError)
		if !ok || node != nil {
			t.Errorf("%q: %v, %v", file, node, err)
			continue
		}
		if got := fmt.Sprintf("%d:%d %s", e.Line, e.Column, strings.TrimPrefix(e.Reason, notYAML)); got != want {
			t.Errorf("%q\ngot  %s\nwant %s", file, got, want)
		}
		if strings.Contains(err.Error(), "hidden") {
			t.Errorf("the error quotes a value: %v", err)
		}
	}
	for _, file := range []string{"", "# nothing\n", "---\n"} {
		if node, err := Parse([]byte(file)); err != nil || node != nil && node.Value != "" {
			t.Errorf("%q: %v, %v", file, node, err)
		}
	}
	if node, err := Parse([]byte("a: {b: [1]}")); err != nil || node.Content[0].Value != "a" {
		t.Errorf("%v, %v", node, err)
	}
}

// Any text is parsed or refused at a place in it.
func FuzzParse(f *testing.F) {
	f.Add("a: [b, {c: d}]\ne: *f")
	f.Fuzz(func(t *testing.T, file string) {
		_, err := Parse([]byte(file))
		if e, ok := err.(*SyntaxError); ok && (e.Line < 1 || e.Column < 1 || e.Reason == "" || e.Line > strings.Count(strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(file), "\n")+2) {
			t.Errorf("%q: %v", file, err)
		}
	})
}
