package mayfly_test

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var fuzzLine = regexp.MustCompile(`(?m)^for target in (.*); do$`)

// TestFuzzTargetsAreRun: CI fuzzes every target of the tree, and none that there is not.
func TestFuzzTargetsAreRun(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	line := fuzzLine.FindSubmatch(script)
	if line == nil {
		t.Fatal(".ci/run has no loop over targets")
	}
	var listed, there []string
	for _, target := range strings.Fields(string(line[1])) {
		pkg, name, _ := strings.Cut(target, ":")
		listed = append(listed, path.Join("internal", pkg)+":"+name)
	}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, is := d.(*ast.FuncDecl); is && s.test && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				there = append(there, path.Join(s.pkg, ".")+":"+f.Name.Name)
			}
		}
	}
	for _, target := range there {
		if !slices.Contains(listed, target) {
			t.Errorf("%s is not fuzzed by .ci/run", target)
		}
	}
	for i, target := range listed {
		if !slices.Contains(there, target) {
			t.Errorf(".ci/run fuzzes %s, which does not exist", target)
		}
		if slices.Contains(listed[:i], target) {
			t.Errorf(".ci/run fuzzes %s twice", target)
		}
	}
}
