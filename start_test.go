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
const startMost = 32 << 10

// TestStart: no package of ours compiles regular expressions or fills tables at the start that a
// command may never need.
func TestStart(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the whole program")
	}
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "./cmd/mayfly-full").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), program, "version")
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
