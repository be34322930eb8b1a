package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// needFull are command lines that need mayfly-full, and what their message says of it.
func needFull(t *testing.T) map[string][]string {
	t.Helper()
	lines := map[string][]string{
		"mayfly bench needs":                {"bench", "--only", "start", "--quick", "--durability", "memory"},
		"mayfly series needs":               {"series", "range", "--help"},
		"mayfly plan needs":                 {"help", "plan"},
		"mayfly lifecycle needs":            {"__complete", "lifecycle", ""},
		"an archive of Parquet files needs": {"guard", "run", "--table", "t", "--archive", "parquet:" + t.TempDir(), "--endpoint", "http://127.0.0.1:1"},
		"a journal in a bucket":             {"guard", "undo", "s3://bucket/prefix", "--table", "t", "--from", "2030-01-01", "--to", "2030-01-02", "--ttl", "keep", "--endpoint", "http://127.0.0.1:1"},
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
		if err == nil || command.ProcessState.ExitCode() != exitError {
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
	command := exec.Command("mayfly-small", "bench", "--only", "start", "--rounds", "1", "--items", "100", "--quick", "--durability", "memory")
	said, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "first answer after") {
		t.Errorf("%v\n%s", err, said)
	}
	command = exec.Command("mayfly-small", "bench", "--only", "nothing")
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
	command = exec.Command("mayfly-small", "serve", "--memory", "--port", "0", "--targets", file)
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
