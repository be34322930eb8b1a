// Targets checks the types of both programs, and of all that they import, for other targets:
//
//	go run ./tools/targets darwin/amd64 windows/arm64
//
// It finds most of what a compiler would refuse, in seconds instead of minutes. It exits with 1 at
// the first error.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
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
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./tools/targets SYSTEM/PROCESSOR..., such as windows/arm64")
		os.Exit(2)
	}
	for _, target := range os.Args[1:] {
		if err := check(target); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
			os.Exit(1)
		}
	}
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string // an import as written, to the path of a package that the standard library vendors
	Module     *struct{ GoVersion string }
}

// check type-checks the programs for a target such as windows/arm64.
func check(target string) error {
	system, processor, ok := strings.Cut(target, "/")
	if !ok {
		return errors.New(`a target is written like "windows/arm64"`)
	}
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./cmd/...")
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		return err
	}
	if err := list.Start(); err != nil {
		return err
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	for packages := json.NewDecoder(out); ; { // what a package imports is listed before it
		var p listed
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		if checked[p.ImportPath], err = p.check(processor, checked); err != nil {
			return err
		}
	}
	if err := list.Wait(); err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	fmt.Printf("%s: %d packages have no type errors\n", target, len(checked))
	return nil
}

// check type-checks one package. It skips the bodies of functions in packages that are not ours:
// their authors compile them for these targets.
func (p *listed) check(processor string, checked map[string]*types.Package) (*types.Package, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	config := types.Config{
		Importer:         importer{p.ImportMap, checked},
		Sizes:            types.SizesFor("gc", processor),
		IgnoreFuncBodies: !strings.HasPrefix(p.ImportPath, "github.com/mayflydb/mayfly"),
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	return config.Check(p.ImportPath, fset, files, nil)
}

type importer struct {
	renamed map[string]string
	checked map[string]*types.Package
}

func (i importer) Import(path string) (*types.Package, error) {
	if to, ok := i.renamed[path]; ok {
		path = to
	}
	if p := i.checked[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not listed before it is imported", path)
}
