package invariant

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every fault has a name of its own.
func TestFaultsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for f := range faults {
		if name := f.String(); name == "" || seen[name] {
			t.Errorf("fault %d is named %q", f, name)
		}
		seen[f.String()] = true
	}
	if got := faults.String(); got != "unknown fault" {
		t.Errorf("a fault out of range is named %q", got)
	}
}

// A satisfied check is silent in any build, and no fault happens by itself.
func TestQuietByDefault(t *testing.T) {
	Check(true, "never said")
	for f := range faults {
		if Injected(f) {
			t.Errorf("%v happens by itself", f)
		}
	}
}

// Every fault breaks the program somewhere. It is run by a test whose package has a null
// experiment.
func TestFaultsAreRun(t *testing.T) {
	const root = "../.."
	breaks, runs, checked := map[string]bool{}, map[string][]string{}, map[string]bool{}
	injected, named := regexp.MustCompile(`invariant\.Injected\(invariant\.(\w+)\)`), regexp.MustCompile(`\binvariant\.(\w+)`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if !strings.HasSuffix(path, "_test.go") {
			for _, m := range injected.FindAllSubmatch(text, -1) {
				breaks[string(m[1])] = true
			}
			return nil
		}
		checked[dir] = checked[dir] || strings.Contains(string(text), "faulttest.NullExperiment(")
		for _, m := range named.FindAllSubmatch(text, -1) {
			runs[string(m[1])] = append(runs[string(m[1])], dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Faults() {
		if !breaks[f.String()] {
			t.Errorf("%v breaks nothing", f)
		}
		run := false
		for _, dir := range runs[f.String()] {
			if run = true; !checked[dir] {
				t.Errorf("%v is run in %s, which has no null experiment", f, dir)
			}
		}
		if !run {
			t.Errorf("no test runs %v", f)
		}
	}
}
