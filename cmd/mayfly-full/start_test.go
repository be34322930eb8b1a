package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// startMost is the number of bytes that our packages may allocate before main, altogether. A
// regular expression takes some 5 KB; with a count such as {3,255} it takes 200. The table of the
// API's operations takes 7.
const startMost = 36 << 10

// asProgram in the environment makes the test's binary the program.
const asProgram = "MAYFLY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	m.Run()
}

// TestStart: no package of ours compiles regular expressions or fills tables at the start that a
// command may never need.
func TestStart(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), program, "version")
	run.Env = append(os.Environ(), asProgram+"=1", "GODEBUG=inittrace=1")
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
