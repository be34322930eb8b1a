package declare

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

type thing struct {
	Name    string        `yaml:"name"`
	Wait    time.Duration `yaml:"wait"`
	Filter  []string      `yaml:"filter"`
	Input   string        `yaml:"input"`
	Retries *int          `yaml:"retries"`
}

var texts = map[string]Text{"filter": ListOfJSON, "input": JSON}

// A file is a list or an object with a list, and texts may be written as values.
func TestRead(t *testing.T) {
	want := []thing{
		{Name: "a", Wait: 90 * time.Second, Filter: []string{`{"x":[1,"<b>"]}`}, Input: `{"to":["<$.a>"]}`},
		{Name: "b", Wait: 48 * time.Hour, Filter: []string{`{"y": ["z"]}`, `{"w":[null]}`}, Input: "text: of <b>\nlines"},
	}
	const list = `
- name: a
  wait: 1m30s
  filter: {x: [1, "<b>"]}
  input: {to: ["<$.a>"]}
- name: b
  wait: 2d
  filter:
    - '{"y": ["z"]}'
    - w: [null]
  input: |-
    text: of <b>
    lines
`
	for name, file := range map[string]string{"list": list, "object": "things:" + strings.ReplaceAll(list, "\n", "\n  ")} {
		got, err := Read[thing](strings.NewReader(file), "things", texts)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	got, err := Read[thing](strings.NewReader("- &a {name: a, input: &in x}\n- <<: *a\n  name: b\n- {name: c, input: *in}"), "things", texts)
	if err != nil || !reflect.DeepEqual(got, []thing{{Name: "a", Input: "x"}, {Name: "b", Input: "x"}, {Name: "c", Input: "x"}}) {
		t.Errorf("with aliases: %+v, %v", got, err)
	}
	for _, file := range []string{"", "null", "[]", "things:", "things: []", "{}", "# nothing"} {
		if got, err := Read[thing](strings.NewReader(file), "things", texts); len(got) != 0 || err != nil {
			t.Errorf("%q: %v, %v", file, got, err)
		}
	}
}

// Faults of a file are reported with their lines.
func TestBad(t *testing.T) {
	for file, want := range map[string]string{
		"- {name: a}\n- {nama: b}":   "line 2, column 4: unknown setting nama",
		"- {name: a, wait: soon}":    `line 1, column 19: wait: "soon" is not a duration such as 90s or 2d`,
		"- {name: a, filter: [[1]]}": "line 1, column 22: expected an object, or a string with its JSON",
		"- {name: a, wait: soon, input: {to: [x]}, retries: many, nam: b}\n- name: [b]\n- *c": `a value begins with "*"`,
		"- {name: a, input: {to: [x]}, wait: soon, retries: many, nam: b}\n- name: [b]\n- {filter: [5, [1]]}\n- {input: {a: .nan}, filter: [[1]]}": "line 1, column 37: wait: \"soon\" is not a duration such as 90s or 2d\n" +
			"line 1, column 52: retries: \"many\" is not a whole number\nline 1, column 58: unknown setting nam\nline 2, column 9: name: a list is not a text\n" +
			"line 3, column 16: expected an object, or a string with its JSON\nline 4, column 11: this is not JSON: json: unsupported value: NaN\nline 4, column 31: expected an object",
		"others: []":                 `line 1, column 1: unknown setting "others"; the file must be a list, or have one under "things"`,
		"things: 5":                  `line 1, column 9: expected a list, or an object with a list under "things"`,
		"text":                       `line 1, column 1: expected a list, or an object with a list under "things"`,
		"- {input: {a: .nan}}":       "line 1, column 11: this is not JSON: json: unsupported value: NaN",
		"- &a [x]\n- &b " + bomb:     "the file has more than 100000 values",
		"- [a]":                      "line 1, column 3: a list is not an object with settings",
		"- {":                        "line 1, column 4: it is neither YAML nor JSON: did not find expected node content",
		strings.Repeat(" ", 1<<20+1): "the file is larger than 1048576 bytes",
	} {
		if _, err := Read[thing](strings.NewReader(file), "things", texts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100q: %v", file, err)
		}
	}
}

// bomb is a list that grows tenfold with every line.
const bomb = `[*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
- &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
- &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]
- &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]
- [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]`

// Any file is read or refused.
func FuzzRead(f *testing.F) {
	f.Add("things: [{name: a, filter: [{x: [1]}, '{}'], input: {a: [b]}, wait: 5s, retries: 3}]")
	f.Add("- name: &a b\n  input: *a\n- filter: {? [a] : b}")
	f.Fuzz(func(t *testing.T, file string) {
		_, _ = Read[thing](strings.NewReader(file), "things", texts)
	})
}

// All faults are reported at once, with names if there are any; a duplicate name is a fault.
func TestCheck(t *testing.T) {
	type named struct{ name, wrong string }
	err := Check("thing", []named{{"a", ""}, {"", "it has no name"}, {"a", "it is blue"}}, func(t *named) (string, []error) {
		if t.wrong == "" {
			return t.name, nil
		}
		return t.name, []error{errors.New(t.wrong)}
	})
	if got, want := fmt.Sprint(err), "thing 2: it has no name\nthing \"a\" is declared twice\nthing \"a\": it is blue"; got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	if err := Check("thing", make([]named, 1001), func(*named) (string, []error) { return "", nil }); err == nil || err.Error() != "1001 things are too many; the limit is 1000" {
		t.Errorf("of too many: %v", err)
	}
}
