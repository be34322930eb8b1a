package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutation is one small change of the source that breaks a promise.
//
// In mutations/*.txt it is a paragraph. Its name is the file's name, a slash and the first word:
//
//	renewed-removed internal/store/engine/reap.go
//	why a renewed item is removed at its old deadline
//	in stillArmed
//	run TestRenewedLives
//	also . TestLaws
//	- return ok && bytes.Equal(now, a.raw), err
//	+ return !ok || bytes.Equal(now, a.raw), err
//
// The text of the lines with - must occur exactly once in the bodies of the file's functions, or with
// "in", in those of that name. The lines with + replace it; with none the text is removed. "run" selects the
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

// place is where a mutation's text is in its file, and the body of the function around it.
type place struct {
	from, to int // the text
	body     [2]int
	results  bool // the function returns something
}

// find returns where the mutation applies. The error names a stale mutation.
func (m mutation) find(source []byte) (p place, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, m.File, source, parser.SkipObjectResolution)
	if err != nil {
		return p, fmt.Errorf("%s: %w", m.Name, err)
	}
	n := 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || m.In != "" && f.Name.Name != m.In {
			continue
		}
		from, to := files.Position(f.Body.Lbrace).Offset+1, files.Position(f.Body.Rbrace).Offset
		body := string(source[from:to])
		if at := strings.Index(body, m.Old); at >= 0 {
			n += strings.Count(body, m.Old)
			p = place{from + at, from + at + len(m.Old), [2]int{from, to}, f.Type.Results.NumFields() > 0}
		}
	}
	switch {
	case n != 1:
		return p, fmt.Errorf("%s is stale: the functions of %s hold its text %d times, not once:\n%s", m.Name, m.File, n, m.Old)
	case m.Old == m.New:
		return p, fmt.Errorf("%s changes nothing", m.Name)
	}
	return p, nil
}

// lines are the lines of a mutation in a generated file.
type lines struct {
	name     string
	from, to int
}

// combine returns a file's source with all of the given mutations in it. Before the body of a mutated
// function stands a mutated copy of the body, which runs if the mutation is the active one. wrong
// holds the reasons for which mutations do not apply.
func combine(root string, ms []mutation) (out []byte, where []lines, wrong map[string]string, err error) {
	source, err := os.ReadFile(filepath.Join(root, ms[0].File))
	if err != nil {
		return nil, nil, nil, err
	}
	type copied struct {
		at   int
		name string
		text string
	}
	var copies []copied
	wrong = map[string]string{}
	for _, m := range ms {
		p, err := m.find(source)
		if err != nil {
			wrong[m.Name] = err.Error()
			continue
		}
		text := string(source[p.body[0]:p.from]) + m.New + string(source[p.to:p.body[1]])
		if !p.results {
			text += "\nreturn\n"
		}
		text = fmt.Sprintf("\nif activeMutation == %q {\n%s\n}\n", m.Name, text)
		if _, err := parser.ParseFile(token.NewFileSet(), m.File, "package p\nfunc _() {"+text+"}", parser.SkipObjectResolution); err != nil {
			wrong[m.Name] = "does not parse: " + err.Error()
			continue
		}
		copies = append(copies, copied{p.body[0], m.Name, text})
	}
	slices.SortStableFunc(copies, func(a, b copied) int { return a.at - b.at })
	last := 0
	for _, c := range copies {
		out = append(out, source[last:c.at]...)
		from := 1 + bytes.Count(out, []byte("\n"))
		out = append(out, c.text...)
		where = append(where, lines{c.name, from + 1, bytes.Count(out, []byte("\n"))})
		last = c.at
	}
	return append(out, source[last:]...), where, wrong, nil
}

// packageName returns the name in a source's package clause.
func packageName(source []byte) string {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.PackageClauseOnly)
	if err != nil {
		return ""
	}
	return file.Name.Name
}
