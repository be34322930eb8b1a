// Command climb counts the references between the files of a package that point back up.
//
//	go run ./tools/climb ./internal/work/deliver ./guard
//
// A package reads well from top to bottom when its files can be put in an order in which each one
// uses only files below it. File A has an arrow to file B if A uses a name that B declares: a
// function, a type, a constant, a variable, a method or a field. Climb puts the files in the order
// with the fewest arrows upwards that it finds, and prints how many arrows there are, how many of
// them climb, and their share. Finding the best order is NP-hard, so the number is an upper bound;
// the search is deterministic, so the same package always gets the same number.
//
// The last two columns need no order: how many arrows lie on a circle (their ends use each other,
// directly or through other files), and their share. Files without circles can be read and tested
// one after the other.
//
// With -list it also prints the order and each arrow that climbs, with the names that cause it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	list := flag.Bool("list", false, "print the order of the files and the arrows that climb")
	most := flag.Float64("most", 100, "exit with 1 if a package has a larger share of climbing arrows, in percent")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: climb [-list] [-most PERCENT] PACKAGE...\n\nExample: go run ./tools/climb -most 20 ./internal/work/...\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	err := run(os.Stdout, flag.Args(), *list, *most)
	if err != nil {
		fmt.Fprintln(os.Stderr, "climb:", err)
		os.Exit(1)
	}
}

// run prints a line for each package that the patterns match.
func run(out io.Writer, patterns []string, list bool, most float64) error {
	packages, exports, err := load(patterns)
	if err != nil {
		return err
	}
	tooSteep := 0
	fmt.Fprintf(out, "%-30s%8s%8s%8s%8s%8s%8s\n", "package", "files", "arrows", "climb", "share", "circle", "share")
	for _, p := range packages {
		g, err := arrowsOf(p, exports)
		if err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		order := g.order()
		back := g.climbing(order)
		share := g.share(len(back))
		if share > most {
			tooSteep++
		}
		round := g.circular()
		fmt.Fprintf(out, "%-30s%8d%8d%8d%7.0f%%%8d%7.0f%%\n", p.name(), len(g.files), g.count(), len(back), share, round, g.share(round))
		if list {
			g.print(out, order, back)
		}
	}
	if tooSteep > 0 {
		return fmt.Errorf("%d packages have more than %g %% of arrows that climb", tooSteep, most)
	}
	return nil
}

// listed is a package as go list prints it.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	DepOnly                 bool
	Module                  *struct{ Path string }
}

// name returns the package's directory within its module.
func (p listed) name() string {
	if p.Module == nil || p.ImportPath == p.Module.Path {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, p.Module.Path+"/")
}

// load returns the packages that the patterns match, and the file with the compiled declarations of
// each package that these import.
func load(patterns []string) (packages []listed, exports map[string]string, err error) {
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	args := append([]string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly,Module", "--"}, patterns...)
	var complaints bytes.Buffer
	c := exec.Command("go", args...)
	c.Stderr = &complaints
	text, err := c.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w\n%s", err, complaints.String())
	}
	exports = map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, exports, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			packages = append(packages, p)
		}
	}
}

// arrowsOf parses and checks a package's files without its tests, and returns the arrows between
// them.
func arrowsOf(p listed, exports map[string]string) (*graph, error) {
	positions := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(positions, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	open := func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("package %s is not compiled", path)
		}
		return os.Open(exports[path])
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: importer.ForCompiler(positions, "gc", open)}
	pkg, err := config.Check(p.ImportPath, positions, files, info)
	if err != nil {
		return nil, err
	}
	g := newGraph(p.GoFiles)
	for id, object := range info.Uses {
		if object.Pkg() != pkg || !shared(object, pkg) {
			continue
		}
		from := filepath.Base(positions.Position(id.Pos()).Filename)
		to := filepath.Base(positions.Position(object.Pos()).Filename)
		g.add(from, to, object.Name())
	}
	return g, nil
}

// shared reports whether an object can be used outside the function that declares it: it is
// declared at the level of the package, or is a field or a method.
func shared(object types.Object, pkg *types.Package) bool {
	if object.Parent() == pkg.Scope() {
		return true
	}
	switch o := object.(type) {
	case *types.Var:
		return o.IsField()
	case *types.Func:
		return o.Signature().Recv() != nil
	}
	return false
}
