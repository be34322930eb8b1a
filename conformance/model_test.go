package conformance_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// modelFile has the facts about requests from the API's model: operations, members of structures, and
// constraints. A line is one of:
//
//	operation NAME TARGET-PREFIX INPUT
//	structure NAME MEMBER=SHAPE MEMBER!=SHAPE …     "!" marks a required member
//	list NAME ELEMENT LEAST MOST                    "-" is no bound
//	map NAME KEY VALUE LEAST MOST
//	string NAME LEAST MOST PATTERN ENUM,ENUM,…
//	integer NAME LEAST MOST                         and long, double, boolean, blob, timestamp
const modelFile = "testdata/wrong_requests/model.txt"

// models are the model files to make modelFile from.
var models = flag.String("models", "", "comma-separated service-2.json files of dynamodb and dynamodbstreams, as botocore has them, to make "+modelFile+" from")

// shape is a type of the model.
type shape struct {
	kind, name  string
	members     []member // of a structure
	element     string   // of a list or a map
	least, most int      // length or value; -1: no bound
	pattern     string
	enum        []string
}

// member is a member of a structure.
type member struct {
	name, shape string
	required    bool
}

// operation is an operation of the model.
type operation struct{ name, prefix, input string }

// model is the parsed modelFile.
type model struct {
	operations []operation
	shapes     map[string]*shape
}

func readModel(t *testing.T) *model {
	t.Helper()
	if *models != "" {
		writeModel(t, strings.Split(*models, ","))
	}
	text, err := os.ReadFile(modelFile)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{shapes: map[string]*shape{}}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		s := &shape{kind: fields[0], name: fields[1], least: -1, most: -1}
		switch s.kind {
		case "operation":
			m.operations = append(m.operations, operation{fields[1], fields[2], fields[3]})
			continue
		case "structure":
			for _, f := range fields[2:] {
				name, shape, _ := strings.Cut(f, "=")
				name, required := strings.CutSuffix(name, "!")
				s.members = append(s.members, member{name, shape, required})
			}
		case "list":
			s.element, s.least, s.most = fields[2], bound(t, fields[3]), bound(t, fields[4])
		case "map":
			s.element, s.least, s.most = fields[3], bound(t, fields[4]), bound(t, fields[5])
		case "string":
			s.pattern = fields[4]
			if fields[5] != "-" {
				s.enum = strings.Split(fields[5], ",")
			}
			fallthrough
		default:
			s.least, s.most = bound(t, fields[2]), bound(t, fields[3])
		}
		m.shapes[s.name] = s
	}
	return m
}

func bound(t *testing.T, text string) int {
	t.Helper()
	if text == "-" {
		return -1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// modelJSON is the part of a service-2.json that matters here.
type modelJSON struct {
	Metadata   struct{ TargetPrefix string }
	Operations map[string]struct{ Input struct{ Shape string } }
	Shapes     map[string]struct {
		Type               string
		Members            map[string]struct{ Shape string }
		Required           []string
		Member, Key, Value struct{ Shape string }
		Min, Max           *float64
		Pattern            string
		Enum               []string
	}
}

// writeModel makes modelFile from files of the AWS SDKs.
func writeModel(t *testing.T, files []string) {
	t.Helper()
	var lines []string
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var m modelJSON
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		for name, op := range m.Operations {
			input := op.Input.Shape
			if input == "" {
				input = "-"
			}
			lines = append(lines, fmt.Sprintf("operation %s %s %s", name, m.Metadata.TargetPrefix, input))
			lines = append(lines, m.lines(input, seen)...)
		}
	}
	slices.Sort(lines)
	head := "# The facts about requests in Amazon's public API model; model_test.go describes the lines.\n"
	if err := os.WriteFile(modelFile, []byte(head+strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lines returns the lines of a shape and of those that it refers to.
func (m *modelJSON) lines(name string, seen map[string]bool) (lines []string) {
	s, known := m.Shapes[name]
	if !known || seen[name] {
		return nil
	}
	seen[name] = true
	line := s.Type + " " + name
	number := func(n *float64) string {
		if n == nil {
			return "-"
		}
		return strconv.Itoa(int(*n))
	}
	bounds := " " + number(s.Min) + " " + number(s.Max)
	word := func(text string) string {
		if text == "" {
			return "-"
		}
		return text
	}
	switch s.Type {
	case "structure":
		for _, member := range slices.Sorted(maps.Keys(s.Members)) {
			mark := "="
			if slices.Contains(s.Required, member) {
				mark = "!="
			}
			line += " " + member + mark + s.Members[member].Shape
			lines = append(lines, m.lines(s.Members[member].Shape, seen)...)
		}
	case "list":
		line += " " + s.Member.Shape + bounds
	case "map":
		line += " " + s.Key.Shape + " " + s.Value.Shape + bounds
	case "string":
		line += bounds + " " + word(strings.ReplaceAll(s.Pattern, " ", `\x20`)) + " " + word(strings.Join(s.Enum, ","))
	default:
		line += bounds
	}
	for _, of := range []string{s.Member.Shape, s.Key.Shape, s.Value.Shape} {
		lines = append(lines, m.lines(of, seen)...)
	}
	return append(lines, line)
}
