package program_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// runTorture runs mayfly torture with flags, and returns its output and exit code.
func runTorture(t *testing.T, flags ...string) (stdout, stderr string, code int) {
	t.Helper()
	command := exec.Command("mayfly", append([]string{"torture"}, flags...)...)
	var out, errors strings.Builder
	command.Stdout, command.Stderr = &out, &errors
	if err := command.Run(); command.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errors.String(), command.ProcessState.ExitCode()
}

// TestTorture: the command runs episodes, breaks no law, and repeats one exactly.
func TestTorture(t *testing.T) {
	t.Parallel()
	var traces []string
	for range 2 {
		out, errors, code := runTorture(t, "--seed", "3", "--episode", "5", "--json")
		var report struct {
			Counts struct{ Episodes, Crashes, Expirations int64 }
			Trace  string
			Exact  bool
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
			t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errors)
		}
		if c := report.Counts; c.Episodes != 1 || c.Crashes == 0 || c.Expirations < 1000 {
			t.Errorf("counts %+v", c)
		}
		if report.Exact {
			traces = append(traces, report.Trace)
		}
	}
	if len(traces) == 2 && (traces[0] != traces[1] || traces[0] == "") {
		t.Errorf("traces %q", traces)
	}
}

// TestTortureUsage: wrong flags are refused with the limits.
func TestTortureUsage(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"--for 1ms":                "--for: 1ms is not between 1s and 168h",
		"--workers 1000":           "--workers: 1000 is not between 1 and 256",
		"--workers 0":              "--workers: 0 is not between 1 and 256",
		"--episodes=-1":            "--episodes: -1 is not between 1 and 1000000000",
		"--episodes 0":             "--episodes: 0 is not between 1 and 1000000000",
		"--episode=-1":             "--episode: -1 is negative",
		"--episode 1 --episodes 2": "--episode is a single episode",
		"--episode 1 --for 5s":     "--episode is a single episode",
	} {
		if _, said, code := runTorture(t, strings.Fields(flags)...); code != 2 || !strings.Contains(said, want) {
			t.Errorf("%s: exit code %d, %s", flags, code, said)
		}
	}
}
