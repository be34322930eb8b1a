package expr

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

var rewriteScripts = flag.Bool("rewrite", false, "rewrite the expected output in testdata")

// TestScripts runs the scripts in testdata. A script is a list of cases with blank lines between
// them. A command is followed by its expected result, if it has one:
//
//	# A comment.
//	values {":v": 2}
//	condition a < :v
//	= true
//
// Commands: item JSON (none: no item) sets the item for the following cases, and schema "p:S | s:N"
// the key, partition key before the "|" and sort key after it. names JSON and values JSON apply to
// their case. condition, filter, update, projection and query (a key condition) return the result
// of the expression, or the error. old and new execute the update and return the attributes for
// UPDATED_OLD and UPDATED_NEW. unused returns the unused placeholders.
//
// Run with -rewrite to replace the expected results with the actual ones.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var (
		s     = script{item: mustItem(`{}`)}
		lines = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		out   []string
	)
	for i := 0; i < len(lines); i++ {
		line, want := lines[i], ""
		out = append(out, line)
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "= ") {
			i++
			want = lines[i][2:]
		}
		switch {
		case line == "":
			s.names, s.values, s.session = nil, nil, nil
			continue
		case line[0] == '#':
			continue
		}
		command, arg, _ := strings.Cut(line, " ")
		got := s.command(t, command, arg)
		if got != want && !*rewriteScripts {
			t.Errorf("%s:%d: %s\n got: %s\nwant: %s", file, i, line, got, want)
		}
		if got != "" {
			out = append(out, "= "+got)
		}
	}
	if *rewriteScripts {
		if err := os.WriteFile(file, []byte(strings.Join(out, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// script is the state of a running script.
type script struct {
	item    dynamo.Item
	schema  KeySchema
	session *Session
	names   map[string]string
	values  map[string]dynamo.Value
}

func (s *script) command(t *testing.T, command, arg string) string {
	switch command {
	case "item":
		s.item = nil
		if arg != "none" {
			s.item = mustItem(arg)
		}
		return ""
	case "schema":
		s.schema = readSchema(arg)
		return ""
	case "names":
		if err := json.Unmarshal([]byte(arg), &s.names); err != nil {
			t.Fatalf("%v: %s", err, arg)
		}
		return ""
	case "values":
		s.values = mustValues(arg)
		return ""
	}
	if s.session == nil {
		var err error
		if s.session, err = NewSession(s.names, s.values); err != nil {
			return message(err)
		}
	}
	result, err := s.evaluate(t, command, arg)
	if err != nil {
		return message(err)
	}
	return result
}

func (s *script) evaluate(t *testing.T, command, arg string) (string, error) {
	switch command {
	case "condition", "filter":
		kind := ConditionExpression
		if command == "filter" {
			kind = FilterExpression
		}
		c, err := s.session.Condition(kind, arg)
		if err != nil {
			return "", err
		}
		return map[bool]string{true: "true", false: "false"}[c.Eval(s.item)], nil
	case "projection":
		p, err := s.session.Projection(arg)
		if err != nil {
			return "", err
		}
		return showItem(p.Apply(nil, s.item)), nil
	case "query":
		k, err := s.session.KeyCondition(arg)
		if err == nil {
			err = k.Check()
		}
		if err != nil {
			return "", err
		}
		r, err := k.Range(s.schema)
		return showRange(r), err
	case "unused":
		if err := s.session.Unused(); err != nil {
			return "", err
		}
		return "all used", nil
	case "update", "old", "new":
		u, err := s.session.Update(arg)
		if err != nil {
			return "", err
		}
		return s.update(t, command, u)
	}
	t.Fatalf("unknown command %q", command)
	return "", nil
}

func (s *script) update(t *testing.T, command string, u *Update) (string, error) {
	updated, err := u.Apply(s.item, mustItem(`{"pk":"k"}`))
	if err != nil {
		return "", err
	}
	if updated != nil {
		if err := dynamo.CheckItem(updated); err != nil {
			t.Errorf("the updated item is malformed: %v", err)
		}
	}
	switch command {
	case "old":
		return showItem(u.UpdatedOld(s.item)), nil
	case "new":
		return showItem(u.UpdatedNew(updated)), nil
	}
	return showItem(updated), nil
}

func message(err error) string {
	var answer *dynamo.Error
	if errors.As(err, &answer) && answer.Code == dynamo.CodeValidation {
		return "error: " + answer.Message
	}
	return "unexpected error: " + err.Error()
}

func readSchema(text string) KeySchema {
	var schema KeySchema
	partition, sort, _ := strings.Cut(text, "|")
	read := func(list string) (attrs []KeyAttr) {
		for attr := range strings.FieldsSeq(list) {
			name, kind, _ := strings.Cut(attr, ":")
			attrs = append(attrs, KeyAttr{name, dynamo.KindOf(kind)})
		}
		return attrs
	}
	schema.Partition, schema.Sort = read(partition), read(sort)
	return schema
}

func showRange(r KeyRange) string {
	var parts []string
	for _, v := range r.Partition {
		parts = append(parts, show(v))
	}
	for _, c := range r.Sort {
		text := [...]string{"any", "=", "<", "<=", ">", ">=", "between", "begins with"}[c.Op] + " " + show(c.Low)
		if c.High != nil {
			text += " and " + show(c.High)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
