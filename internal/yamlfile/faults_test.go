package yamlfile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// All faults of the values are reported, each at its own place, also where a line has several.
func TestFaults(t *testing.T) {
	type inner struct {
		Name  string            `yaml:"name"`
		Count int               `yaml:"count"`
		Wait  time.Duration     `yaml:"wait"`
		Texts []string          `yaml:"texts"`
		Share float64           `yaml:"share"`
		On    bool              `yaml:"on"`
		More  map[string]string `yaml:"more"`
	}
	type outer struct {
		Name string  `yaml:"name"`
		All  []inner `yaml:"all"`
	}
	const file = `
name: [x]
all:
  - {name: a, nam: b, count: many, wait: soon, nan: c}
  - name: b
    count: 1.5x
    texts: {a: b}
    when: now
  - {count: 2, count: 3}
  - share: a very long text
    on: [yes]
    more: 5
  - text
`
	want := []string{
		"line 2, column 7: name: a list is not a text",
		`line 4, column 15: unknown setting nam`,
		`line 4, column 48: unknown setting nan`,
		`line 4, column 30: count: "many" is not a whole number`,
		`line 4, column 42: wait: "soon" is not a duration such as 90s or 2d`,
		"line 6, column 12: count: \"1.5x\" is not a whole number",
		"line 7, column 12: texts: an object is not a list",
		"line 8, column 5: unknown setting when",
		"line 9, column 16: count is given twice; the other one is in line 9",
		`line 10, column 12: share: "a very ..." is not a number`,
		"line 11, column 9: on: a list is not true or false",
		`line 12, column 11: more: "5" is not an object with settings`,
		`line 13, column 5: all: "text" is not an object with settings`,
	}
	root, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(strings.NewReader(file))
	decoder.KnownFields(true)
	var got []string
	for _, f := range Faults(decoder.Decode(&outer{}), root) {
		got = append(got, f.String())
		if f.In(root).String() != f.String() {
			t.Errorf("%v in its own tree: %v", f, f.In(root))
		}
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(got, "\n")+"\n", w+"\n") {
			t.Errorf("missing: %s", w)
		}
	}
	if t.Failed() {
		fmt.Println(strings.Join(got, "\n"))
	}
}
