package guard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The numbers of known flaws of the published designs, by the designs' letters.
var flaws = map[string]int{
	"A": 15, // the expiration-window index and its sweeper
	"B": 8,  // the sharded index and its sweeper
	"C": 19, // a schedule per item
}

// TestEachFlawHasATest: each numbered flaw has a test of its name, and each such test has a flaw.
func TestEachFlawHasATest(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	tested := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		must(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			flaw, ok := strings.CutPrefix(f.Name.Name, "TestFlaw")
			if !ok || flaw == "" {
				continue
			}
			digits := len(flaw[1:]) - len(strings.TrimLeft(flaw[1:], "0123456789"))
			number, _ := strconv.Atoi(flaw[1 : 1+digits])
			if number > flaws[flaw[:1]] {
				t.Errorf("%s is named after a flaw that there is not", f.Name.Name)
			}
			tested[flaw[:1+digits]] = true
		}
	}
	for letter, n := range flaws {
		for i := range n {
			if flaw := letter + strconv.Itoa(i+1); !tested[flaw] {
				t.Errorf("flaw %s has no test", flaw)
			}
		}
	}
}
