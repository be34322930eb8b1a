package guard

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestFaultsAreRun: CI runs exactly the tests that break guard on purpose with the build tag
// invariants.
func TestFaultsAreRun(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../.ci/run")
	must(t, err)
	pattern := regexp.MustCompile(`-tags invariants \./guard \./guard/internal/\.\.\. -run '([^']*)'`).FindSubmatch(script)
	if pattern == nil {
		t.Fatal(".ci/run does not run guard's tests with faults")
	}
	run := regexp.MustCompile(string(pattern[1]))
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	below, err := filepath.Glob("internal/*/*_test.go")
	must(t, err)
	test := regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{\n.*?^\}`)
	breaks := regexp.MustCompile(`\t(holds\(t, |defer inject\()`)
	found := 0
	for _, file := range append(files, below...) {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, f := range test.FindAllSubmatch(text, -1) {
			if !breaks.Match(f[0]) {
				continue
			}
			found++
			if !run.Match(f[1]) {
				t.Errorf("%s in %s breaks guard on purpose, and .ci/run does not run it so", f[1], file)
			}
		}
	}
	if found < 4 {
		t.Errorf("%d tests break guard on purpose", found)
	}
}
