package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/sink/kinds"
)

// needFull are command lines that need mayfly-full, and what their message says of it.
func needFull(t *testing.T) map[string][]string {
	t.Helper()
	lines := map[string][]string{
		"mayfly bench needs":                {"bench", "--only", "start", "--quick", "--durability", "memory"},
		"mayfly series needs":               {"series", "range", "--help"},
		"mayfly plan needs":                 {"help", "plan"},
		"mayfly lifecycle needs":            {"__complete", "lifecycle", ""},
		"mayfly series":                     {"--endpoint", "http://127.0.0.1:1", "--json=true", "series", "latest", "weather"},
		"an archive of Parquet files needs": {"guard", "run", "--table", "t", "--archive", "parquet:" + t.TempDir(), "--endpoint", "http://127.0.0.1:1"},
		"a journal in a bucket":             {"guard", "undo", "s3://bucket/prefix", "--table", "t", "--from", "2030-01-01", "--until", "2030-01-02", "--ttl", "keep", "--endpoint", "http://127.0.0.1:1"},
	}
	for _, kind := range []string{"aws: {}", "kafka: {}", "nats: {}", "rabbitmq: {}"} {
		file := filepath.Join(t.TempDir(), "targets.yaml")
		if err := os.WriteFile(file, []byte("targets:\n- arn: \"*\"\n  "+kind+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(kind, ":")
		lines["a target of the kind "+name] = []string{"serve", "--memory", "--port", "0", "--targets", file}
	}
	return lines
}

// Without a mayfly-full, a command that needs it says so and how to get it.
func TestNeedsFull(t *testing.T) {
	small, err := exec.LookPath("mayfly-small")
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "mayfly-small")
	if err := os.Link(small, alone); err != nil {
		t.Fatal(err)
	}
	for what, line := range needFull(t) {
		command := exec.Command(alone, line...)
		command.Env = append(os.Environ(), "PATH="+t.TempDir(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=us-east-1")
		said, err := command.CombinedOutput()
		if err == nil || command.ProcessState.ExitCode() != exitUsage {
			t.Errorf("%v: %v", line, err)
		}
		for _, part := range []string{what, "mayfly-full, which is neither beside " + alone + " nor in the PATH", "\n  next: in the repository: go run ./cmd/mayfly-full"} {
			if !strings.Contains(string(said), part) {
				t.Errorf("%v does not say %q:\n%s", line, part, said)
			}
		}
	}
}

// mayfly-full takes over the command line, its exit code and its signals, in the same process.
func TestHandOver(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "mayfly-small", "bench", "--only", "start", "--rounds", "1", "--items", "100", "--quick", "--durability", "memory")
	said, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "first answer after") {
		t.Errorf("%v\n%s", err, said)
	}
	command = exec.CommandContext(ctx, "mayfly-small", "bench", "--only", "nothing")
	if said, err := command.CombinedOutput(); command.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(said), "nothing") {
		t.Errorf("%v\n%s", err, said)
	}
	if runtime.GOOS != "linux" {
		return
	}
	file := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(file, []byte("targets:\n- arn: \"arn:aws:sqs:*:*:*\"\n  nats: {url: \"nats://127.0.0.1:1\", subject: s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command = exec.CommandContext(ctx, "mayfly-small", "serve", "--memory", "--port", "0", "--targets", file)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Process.Kill()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", command.Process.Pid))
		if strings.HasSuffix(strings.SplitN(string(line), "\x00", 2)[0], "mayfly-full") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it runs %q", line)
		}
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil && command.ProcessState.ExitCode() != -1 { // -1: the signal came before its handler
		t.Error(err)
	}
}

// A mayfly-full of another version refuses to run in place of mayfly.
func TestHandOverVersion(t *testing.T) {
	command := exec.Command("mayfly-full", "version")
	command.Env = append(os.Environ(), envStartedVersion+"=v0.0.1")
	said, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "mayfly is v0.0.1, but the mayfly-full that it started is "+version()) || !strings.Contains(string(said), "next: install both in the same version") {
		t.Errorf("%v\n%s", err, said)
	}
}

// A mayfly-full that is another mayfly does not start the next one, and so on without end.
func TestHandOverOnce(t *testing.T) {
	small, err := exec.LookPath("mayfly-small")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "mayfly-small", "bench")
	command.Env = append(os.Environ(), envStartedPath+"="+small, envStartedVersion+"="+version())
	said, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "mayfly bench needs mayfly-full, but ") || !strings.Contains(string(said), "is another mayfly\n  next: ") {
		t.Errorf("%v\n%s", err, said)
	}
}

// A file that can be read only once would be empty for mayfly-full.
func TestHandOverReadsTwice(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/stdin")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "mayfly-small", "serve", "--memory", "--port", "0", "--targets=/dev/stdin")
	command.Stdin = io.MultiReader(strings.NewReader("targets:\n- arn: \"*\"\n  nats: {subject: s}\n")) // a pipe
	said, err := command.CombinedOutput()
	if command.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(said), "/dev/stdin can be read only once, and mayfly has read it\n  next: run mayfly-full") {
		t.Errorf("%v\n%s", err, said)
	}
}

// mayfly names the same commands as mayfly-full, and the same kinds of targets.
func TestSmallNamesAll(t *testing.T) {
	if got, want := strings.Join(namesElsewhere(), " "), "series lifecycle plan bench torture"; got != want {
		t.Errorf("mayfly lacks the commands %s, not %s", got, want)
	}
	var helps [2]string
	for i, name := range []string{"mayfly-small", "mayfly-full"} {
		help, err := exec.CommandContext(t.Context(), name, "--help").CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		helps[i] = string(help)
	}
	if helps[0] != helps[1] {
		t.Errorf("the helps differ:\n%s\n%s", helps[0], helps[1])
	}
	var small, full []string
	for _, k := range (Parts{}).kinds() {
		small = append(small, k.Name)
	}
	for _, k := range kinds.All {
		full = append(full, k.Name)
	}
	if !slices.Equal(small, full) {
		t.Errorf("mayfly knows the kinds %v, mayfly-full has %v", small, full)
	}
}

func TestIsPublished(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3": true, "v0.1.0-rc.1": true, "v0.0.0-20301111222333-123456789abc": false, "v1.2.3+dirty": false, "devel": false,
	} {
		if got := isPublished(version, "123456789abcdef"); got != want {
			t.Errorf("%s: %t", version, got)
		}
	}
	if !isPublished("v0.0.0-20301111222333-123456789abc", "") {
		t.Error("go install can find a commit's version that it has built")
	}
}
