package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// mutation is one small change of the source that breaks a promise.
//
// In mutations/*.txt it is a paragraph. Its name is the file's name, a slash and the first word:
//
//	renewed-removed internal/engine/reap.go
//	why a renewed item is removed at its old deadline
//	in stillArmed
//	run TestRenewedLives
//	also . TestLaws
//	- return ok && bytes.Equal(now, a.raw), err
//	+ return !ok || bytes.Equal(now, a.raw), err
//
// The text of the lines with - must occur exactly once: in the file, or with "in", in the function
// of that name. The lines with + replace it; with none the text is removed. "run" selects the
// package's own tests to try first, "also" a further package and its tests to try if the package's
// own notice nothing. One space after - and + is dropped. Lines with # are comments.
type mutation struct {
	Name    string
	File    string
	Package string // the directory of File
	Why     string
	In      string
	Run     string
	Also    []tests
	Old     string
	New     string
}

// tests are some tests of a package.
type tests struct{ Package, Run string }

// load reads every mutation, in the order of the files and of the paragraphs in them.
func load(root string) (all []mutation, err error) {
	files, err := filepath.Glob(filepath.Join(root, "tools/mutate/mutations/*.txt"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no lists of mutations in %s", filepath.Join(root, "tools/mutate/mutations"))
	}
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for paragraph := range strings.SplitSeq(string(text), "\n\n") {
			m, err := parse(strings.TrimSuffix(filepath.Base(name), ".txt"), paragraph)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if m.Name == "" {
				continue
			}
			if seen[m.Name] {
				return nil, fmt.Errorf("%s: two mutations have the name %s", name, m.Name)
			}
			seen[m.Name] = true
			all = append(all, m)
		}
	}
	return all, nil
}

// parse reads one paragraph; a mutation without a name means that it holds comments only.
func parse(list, paragraph string) (m mutation, err error) {
	var old, replacement []string
	for line := range strings.Lines(paragraph) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '-':
			old = append(old, strings.TrimPrefix(line[1:], " "))
		case line[0] == '+':
			replacement = append(replacement, strings.TrimPrefix(line[1:], " "))
		case m.Name == "":
			m.Name, m.File, m.Package = list+"/"+word, rest, path.Dir(rest)
		case word == "why":
			m.Why = rest
		case word == "in":
			m.In = rest
		case word == "run":
			m.Run = rest
		case word == "also":
			pkg, run, _ := strings.Cut(rest, " ")
			m.Also = append(m.Also, tests{pkg, run})
		default:
			return m, fmt.Errorf("mutation %s: line %q begins with an unknown word", m.Name, line)
		}
	}
	m.Old, m.New = strings.Join(old, "\n"), strings.Join(replacement, "\n")
	if m.Name != "" && (m.File == "" || m.Why == "" || m.Old == "") {
		return m, fmt.Errorf("mutation %s: it needs a file, a reason (why) and a text to replace (-)", m.Name)
	}
	return m, nil
}

// apply returns the mutated source of the mutation's file. The error names a stale mutation.
func (m mutation) apply(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	from, to, where := 0, len(source), m.File
	if m.In != "" {
		if from, to, err = function(source, m.In); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", m.Name, m.File, err)
		}
		where += ", func " + m.In
	}
	part := string(source[from:to])
	if n := strings.Count(part, m.Old); n != 1 {
		return nil, fmt.Errorf("%s is stale: %s holds its text %d times, not once:\n%s", m.Name, where, n, m.Old)
	}
	if m.Old == m.New {
		return nil, fmt.Errorf("%s changes nothing", m.Name)
	}
	mutated := string(source[:from]) + strings.Replace(part, m.Old, m.New, 1) + string(source[to:])
	if _, err := parser.ParseFile(token.NewFileSet(), m.File, mutated, parser.SkipObjectResolution); err != nil {
		return nil, fmt.Errorf("%s: the mutated source does not parse: %w", m.Name, err)
	}
	return []byte(mutated), nil
}

// function returns where the only function or method of that name begins and ends.
func function(source []byte, name string) (from, to int, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return 0, 0, err
	}
	n := 0
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			from, to = files.Position(f.Pos()).Offset, files.Position(f.End()).Offset
			n++
		}
	}
	if n != 1 {
		return 0, 0, fmt.Errorf("%d functions have the name %s, not one", n, name)
	}
	return from, to, nil
}
