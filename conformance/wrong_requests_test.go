package conformance_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
)

var rewriteWrong = flag.Bool("rewrite", false, "rewrite the expected answers in testdata/wrong_requests; review them with docs/spec/errors.md")

// TestWrongRequests sends wrong requests of each operation of the API's model: each member missing, of
// another JSON type, empty, too long, out of range or unknown, and pairs of those. It compares types
// and messages of the errors with a file for each operation. An operation that is new there needs
// only -rewrite.
//
// The requests name a table that does not exist, so that requests without a fault change nothing.
func TestWrongRequests(t *testing.T) {
	m, valid := readModel(t), readValid(t)
	for _, op := range m.operations {
		t.Run(op.name, func(t *testing.T) {
			db := open(t, mayfly.Options{}) // of its own: some operations succeed
			w := wrong{model: m, op: op, client: &http.Client{Transport: db.Transport()}, t: t}
			w.base = w.baseMembers(valid[op.name])
			compareTable(t, "testdata/wrong_requests/"+op.name+".txt", w.table())
		})
	}
}

// readValid returns the members of valid requests of operations for which the required ones are not
// enough.
func readValid(t *testing.T) map[string]map[string]json.RawMessage {
	t.Helper()
	text, err := os.ReadFile("testdata/wrong_requests/valid.json")
	if err != nil {
		t.Fatal(err)
	}
	var valid map[string]map[string]json.RawMessage
	if err := json.Unmarshal(text, &valid); err != nil {
		t.Fatal(err)
	}
	return valid
}

// compareTable compares lines with a file, or writes them there.
func compareTable(t *testing.T, file string, lines []string) {
	t.Helper()
	got := strings.Join(lines, "\n") + "\n"
	if *rewriteWrong {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; make it with -rewrite", err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines {
		if !slices.Contains(want, line) {
			t.Errorf("got  %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("want %s", line)
		}
	}
}

// wrong makes the wrong requests of one operation.
type wrong struct {
	*model
	op     operation
	base   []fieldText
	client *http.Client
	t      *testing.T
}

// fieldText is a member of a request with its JSON.
type fieldText struct{ name, text string }

// mistake is one way to make a value wrong.
type mistake struct {
	label string
	text  string // the wrong JSON; empty: the member is absent
}

// mistakeIn is a mistake in one member of a request.
type mistakeIn struct {
	member string
	mistake
}

// table returns a line for each request, with its answer.
func (w *wrong) table() []string {
	line := func(label, answer string) string { return label + ": " + answer }
	valid := w.send(w.base)
	if strings.HasPrefix(valid, "UnknownOperationException") {
		return []string{"not served"}
	}
	lines := []string{line("valid", valid), line("nothing", w.send(nil)), line("no object", w.post("[]"))}
	if unknown := w.send(append(slices.Clone(w.base), fieldText{"Unknown", `{"a":[1]}`})); unknown != valid {
		lines = append(lines, line("unknown member", unknown))
	}
	var top []mistakeIn // in whole members
	answers := map[mistakeIn]string{}
	if input := w.shapes[w.op.input]; input != nil {
		for _, m := range input.members {
			for _, f := range w.mistakes(m.shape, m.required, 4) {
				in := mistakeIn{m.name, f}
				answers[in] = w.send(w.with(in))
				lines = append(lines, line(strings.TrimSpace(m.name+f.label), answers[in]))
				if !strings.ContainsAny(f.label, ".[") {
					top = append(top, in)
				}
			}
		}
	}
	if all := w.with(firstShapeMistakes(top, answers)...); len(all) > 0 {
		lines = append(lines, line("all at once", w.send(all)))
	}
	return append(lines, w.pairs(top, answers)...)
}

// firstShapeMistakes returns the first mistake of each member that breaks a constraint.
func firstShapeMistakes(top []mistakeIn, answers map[mistakeIn]string) (list []mistakeIn) {
	for _, in := range top {
		if isShapeError(answers[in]) && !slices.ContainsFunc(list, func(m mistakeIn) bool { return m.member == in.member }) {
			list = append(list, in)
		}
	}
	return list
}

const oneError = "ValidationException: 1 validation error detected: "

func isShapeError(answer string) bool { return strings.HasPrefix(answer, oneError+"Value ") }

// pairs sends each two mistakes in different members, and returns lines for answers that do not
// follow from the answers to each alone: a wrong type precedes a constraint, two constraints are
// reported together, and a constraint precedes other errors.
func (w *wrong) pairs(top []mistakeIn, answers map[mistakeIn]string) (lines []string) {
	for i, a := range top {
		for _, b := range top[i+1:] {
			if a.member == b.member {
				continue
			}
			got := w.send(w.with(a, b))
			if !slices.Contains(expectedPair(answers[a], answers[b]), got) {
				lines = append(lines, fmt.Sprintf("%s%s and %s%s: %s", a.member, a.label, b.member, b.label, got))
			}
		}
	}
	return lines
}

func expectedPair(a, b string) []string {
	wrongType := func(answer string) bool { return strings.HasPrefix(answer, "SerializationException") }
	switch {
	case wrongType(a) && wrongType(b):
		return []string{a, b}
	case wrongType(a):
		return []string{a}
	case wrongType(b):
		return []string{b}
	case isShapeError(a) && isShapeError(b):
		a, b = strings.TrimPrefix(a, oneError), strings.TrimPrefix(b, oneError)
		const two = "ValidationException: 2 validation errors detected: "
		return []string{two + a + "; " + b, two + b + "; " + a}
	case isShapeError(a):
		return []string{a}
	case isShapeError(b):
		return []string{b}
	}
	return []string{a, b}
}

// with returns the members of a valid request with mistakes in some of them.
func (w *wrong) with(mistakes ...mistakeIn) []fieldText {
	members := slices.Clone(w.base)
	for _, m := range mistakes {
		members = slices.DeleteFunc(members, func(f fieldText) bool { return f.name == m.member })
		if m.text != "" {
			members = append(members, fieldText{m.member, m.text})
		}
	}
	slices.SortFunc(members, func(a, b fieldText) int { return cmp.Compare(a.name, b.name) })
	return members
}

// baseMembers returns the members of a valid request: the given ones, or the required ones.
func (w *wrong) baseMembers(given map[string]json.RawMessage) (members []fieldText) {
	if input := w.shapes[w.op.input]; input != nil {
		for _, m := range input.members {
			switch text, ok := given[m.name]; {
			case ok:
				members = append(members, fieldText{m.name, string(text)})
			case m.required && given == nil:
				members = append(members, fieldText{m.name, w.valid(m.shape)})
			}
		}
	}
	return members
}

func object(members []fieldText) string {
	var parts []string
	for _, f := range members {
		parts = append(parts, fmt.Sprintf("%q:%s", f.name, f.text))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// valid returns a small valid value of a shape.
func (w *wrong) valid(name string) string {
	s := w.shapes[name]
	switch s.kind {
	case "structure":
		if s.name == "AttributeValue" {
			return `{"S":"a"}`
		}
		var members []fieldText
		for _, m := range s.members {
			if m.required {
				members = append(members, fieldText{m.name, w.valid(m.shape)})
			}
		}
		return object(members)
	case "list":
		return "[" + strings.Join(slices.Repeat([]string{w.valid(s.element)}, max(s.least, 1)), ",") + "]"
	case "map":
		return `{"wrong-requests":` + w.valid(s.element) + `}`
	case "string":
		return `"` + w.validText(s) + `"`
	case "boolean":
		return "true"
	case "blob":
		return `"YQ=="`
	}
	return fmt.Sprint(max(s.least, 1)) // a number
}

func (w *wrong) validText(s *shape) string {
	switch {
	case s.enum != nil:
		return s.enum[0]
	case s.name == "PartiQLStatement":
		return `DELETE FROM \"wrong-requests\" WHERE x = 1`
	case strings.Contains(s.name, "Arn") && s.name != "TableArn" || s.name == "ResourceArnString":
		return "arn:aws:dynamodb:us-east-1:000000000000:table/wrong-requests"
	case s.least > len("wrong-requests"):
		return strings.Repeat("a", s.least)
	}
	return "wrong-requests"[:min(len("wrong-requests"), cmp.Or(max(s.most, 0), 255))]
}

// wrongTypes are JSON values of each type.
var wrongTypes = []mistake{{" string", `"word"`}, {" number", "7"}, {" bool", "true"}, {" list", "[]"}, {" object", "{}"}}

// jsonTypes are the JSON types that shapes of a kind take.
var jsonTypes = map[string][]string{
	"structure": {" object"}, "map": {" object"}, "list": {" list"}, "string": {" string"}, "blob": {" string"}, "boolean": {" bool"},
	"integer": {" number"}, "long": {" number"}, "double": {" number"}, "timestamp": {" number"},
}

// mistakes returns the ways to make a value of a shape wrong, to a depth of so many levels.
func (w *wrong) mistakes(name string, required bool, depth int) (list []mistake) {
	s := w.shapes[name]
	add := func(label, text string) { list = append(list, mistake{label, text}) }
	if required {
		add(" missing", "")
	}
	for _, wrongType := range wrongTypes {
		if !slices.Contains(jsonTypes[s.kind], wrongType.label) {
			list = append(list, wrongType)
		}
	}
	switch s.kind {
	case "string":
		w.textMistakes(s, add)
	case "integer", "long":
		if s.least >= 0 {
			add(" low", fmt.Sprint(s.least-1))
		}
		if s.most >= 0 {
			add(" high", fmt.Sprint(s.most+1))
		}
	case "blob":
		add(" no base64", `"a"`)
	case "list":
		if s.least > 0 {
			add(" empty", "[]")
		}
		if s.most >= 0 && s.most <= 300 {
			add(" long", "["+strings.Join(slices.Repeat([]string{w.valid(s.element)}, s.most+1), ",")+"]")
		}
	case "map":
		if s.least > 0 {
			add(" empty", "{}")
		}
	case "structure":
		if s.name == "AttributeValue" {
			add(" empty", "{}")
			add(" two types", `{"S":"a","N":"1"}`)
			return list
		}
	}
	if depth == 0 {
		return list
	}
	for _, part := range w.parts(s) {
		for _, f := range w.mistakes(part.shape, part.required, depth-1) {
			list = append(list, mistake{part.label + f.label, part.replace(f.text)})
		}
	}
	return list
}

func (w *wrong) textMistakes(s *shape, add func(label, text string)) {
	if s.enum != nil {
		add(" unknown", `"WRONG"`)
		return
	}
	if s.least > 0 {
		add(" empty", `""`)
	}
	if s.least > 1 {
		add(" short", `"`+strings.Repeat("a", s.least-1)+`"`)
	}
	if s.most > 0 && s.most <= 4096 {
		add(" long", `"`+strings.Repeat("a", s.most+1)+`"`)
	}
	if s.pattern == "-" {
		return
	}
	pattern, err := regexp.Compile("^(?:" + s.pattern + ")$")
	if err != nil {
		return // Java's syntax, in a few shapes
	}
	for _, char := range []string{"?", "$", ";", " "} {
		if text := strings.Repeat(char, max(s.least, 4)); !pattern.MatchString(text) {
			add(" pattern", `"`+text+`"`)
			return
		}
	}
}

// part is a value inside another one.
type part struct {
	label, shape string
	required     bool
	replace      func(text string) string // returns the outer value with this text in place of the part
}

func (w *wrong) parts(s *shape) (list []part) {
	switch s.kind {
	case "list":
		list = append(list, part{"[0]", s.element, false, func(text string) string { return "[" + text + "]" }})
	case "map":
		list = append(list, part{".x", s.element, false, func(text string) string { return `{"wrong-requests":` + text + `}` }})
	case "structure":
		for _, m := range s.members {
			list = append(list, part{"." + m.name, m.shape, m.required, func(text string) string {
				var members []fieldText
				for _, other := range s.members {
					switch {
					case other.name == m.name && text != "":
						members = append(members, fieldText{m.name, text})
					case other.name != m.name && other.required:
						members = append(members, fieldText{other.name, w.valid(other.shape)})
					}
				}
				return object(members)
			}})
		}
	}
	return list
}

func (w *wrong) send(members []fieldText) string { return w.post(object(members)) }

// post sends a body and returns the error's type and the beginning of its message.
func (w *wrong) post(body string) string {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://in.process/", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", w.op.prefix+"."+w.op.name)
	out, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if out.StatusCode == http.StatusOK {
		return "ok"
	}
	var answer struct {
		Type    string `json:"__type"`
		Message string
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	_, code, _ := strings.Cut(answer.Type, "#")
	if out.StatusCode != http.StatusBadRequest {
		code += fmt.Sprint(" ", out.StatusCode)
	}
	return strings.TrimSuffix(code+": "+shortened(answer.Message), ": ")
}

var repeated = regexp.MustCompile(`a{30,}|\?{10,}|\${10,}`)

// shortened returns the beginning of a message, with long values cut.
func shortened(message string) string {
	message = repeated.ReplaceAllString(strings.ReplaceAll(message, "\n", " "), "a…")
	if runes := []rune(message); len(runes) > 400 {
		message = string(runes[:400]) + "…"
	}
	return message
}
