package mayfly_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// startMost is the number of bytes that our packages may allocate before main, altogether. A
// regular expression takes some 5 KB; with a count such as {3,255} it takes 200.
const startMost = 20 << 10

// TestStart: a program that imports every package of the library starts without compiling regular
// expressions or filling tables that it may never need.
func TestStart(t *testing.T) {
	t.Parallel()
	main := "package main\n\nimport (\n"
	for _, name := range []string{"", "/guard", "/guard/strict", "/lifecycle", "/planner", "/timeseries", "/timeseries/archive", "/timeseries/archive/bucket"} {
		main += "\t_ \"github.com/mayflydb/mayfly" + name + "\"\n"
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program.exe")
	if err := os.WriteFile(source, []byte(main+")\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), program)
	run.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	packages, sum, list := 0, 0, ""
	for line := range strings.Lines(string(out)) {
		name, rest, found := strings.Cut(line, " @")
		name, ours := strings.CutPrefix(name, "init github.com/mayflydb/mayfly")
		if !found || !ours {
			continue
		}
		var at, took float64
		var bytes int
		if _, err := fmt.Sscanf(rest, "%f ms, %f ms clock, %d bytes", &at, &took, &bytes); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		packages++
		sum += bytes
		list += fmt.Sprintf("%8d mayfly%s\n", bytes, name)
	}
	if packages == 0 {
		t.Fatalf("no package of ours in\n%s", out)
	}
	if sum > startMost {
		t.Errorf("our packages allocate %d bytes at the start; the limit is %d. Make what is large wait for its first use, as with sync.OnceValue:\n%s", sum, startMost, list)
	}
}
