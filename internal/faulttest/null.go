// Package faulttest checks the tests that break the program on purpose.
package faulttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/invariant"
)

// NullExperiment runs tests of this test binary again, in a process that injects nothing. Every
// subtest named after a fault must fail there: one that passes detects something other than its
// fault. And every fault that a test file of the package names must have such a subtest. run and
// skip are the flags of go test.
func NullExperiment(t *testing.T, run, skip string) {
	t.Helper()
	if invariant.Null() {
		t.Skip("this is the null experiment")
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.short", "-test.run="+run, "-test.skip="+skip)
	cmd.Env = append(os.Environ(), invariant.NullVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("all tests pass with nothing injected")
	}
	var failed []string
	for _, m := range regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`).FindAllStringSubmatch(string(out), -1) {
		fault := m[2][strings.LastIndexAny(m[2], "/_")+1:]
		if !isFault(fault) {
			continue
		}
		failed = append(failed, fault)
		if m[1] != "FAIL" {
			t.Errorf("%s: %s, although nothing is injected", m[2], m[1])
		}
	}
	for _, fault := range named(t) {
		if !slices.Contains(failed, fault) {
			t.Errorf("no test that is run here breaks the program with %s", fault)
		}
	}
	if t.Failed() {
		t.Logf("the tests said:\n%s", out)
	}
}

func isFault(name string) bool {
	return slices.ContainsFunc(invariant.Faults(), func(f invariant.Fault) bool { return f.String() == name })
}

// named returns the faults that the package's test files name.
func named(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\binvariant\.(\w+)`).FindAllStringSubmatch(string(text), -1) {
			if isFault(m[1]) && !slices.Contains(names, m[1]) {
				names = append(names, m[1])
			}
		}
	}
	if len(names) == 0 {
		t.Error("no test file names a fault")
	}
	return names
}

// Goes returns the number of attempts of a test to detect a fault. A race may need many on a loaded
// machine; in the null experiment one is enough.
func Goes(most int) int {
	if invariant.Null() {
		return 1
	}
	return most
}
