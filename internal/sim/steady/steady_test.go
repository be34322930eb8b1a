package steady

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// dice builds the program in testdata/dice and returns its path.
func dice(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the order of goroutines can be fixed on Linux only")
	}
	program := filepath.Join(t.TempDir(), "dice")
	build := exec.Command("go", "build", "-o", program, "./testdata/dice")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// roll runs dice with a seed and returns what it printed.
func roll(t *testing.T, program string, seed uint64) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(program)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := Run(cmd, seed); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	return out.String()
}

// TestSameAgain: a program that prints what the runtime decides by chance prints the same each time
// with one seed, on each processor, also beside programs that want the same processor.
func TestSameAgain(t *testing.T) {
	program := dice(t)
	stop := make(chan struct{}, 1)
	defer func() { stop <- struct{}{} }()
	for range runtime.NumCPU() {
		go func() {
			for len(stop) == 0 {
			}
		}()
	}
	first := roll(t, program, 1)
	for i := range 50 {
		if again := roll(t, program, 1); again != first {
			t.Fatalf("run %d printed %s, the first %s", i, again, first)
		}
	}
}

// TestSeedsDiffer: another seed gives another run, so that the one above does not pass because the
// program has no choice.
func TestSeedsDiffer(t *testing.T) {
	program := dice(t)
	seen := map[string]bool{}
	for seed := range 10 {
		seen[roll(t, program, uint64(seed))] = true
	}
	if len(seen) != 10 {
		t.Errorf("ten seeds gave %d different runs", len(seen))
	}
}

// TestChanceDiffers: the same program, started as usual, does not do the same each time.
func TestChanceDiffers(t *testing.T) {
	program := dice(t)
	seen := map[string]bool{}
	for range 10 {
		out, err := exec.Command(program).CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		seen[string(out)] = true
	}
	if len(seen) == 1 {
		t.Error("the program does the same without a seed, so it shows nothing")
	}
}

// TestErrorsOfTheCommand: errors are those of os/exec.
func TestErrorsOfTheCommand(t *testing.T) {
	program := dice(t)
	var exit *exec.ExitError
	if err := Run(exec.Command(program, "fail"), 1); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("a program that ends with 2: %v", err)
	}
	if err := Run(exec.Command(filepath.Join(t.TempDir(), "none")), 1); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a program that does not exist: %v", err)
	}
}

// TestKill: a program that waits can be killed, although its monitor is stopped.
func TestKill(t *testing.T) {
	program := dice(t)
	ctx, kill := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, "wait")
	printed, writer := io.Pipe()
	cmd.Stdout = writer
	ended := make(chan error, 1)
	go func() { ended <- Run(cmd, 1) }()
	if _, err := printed.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	kill()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Exited() {
			t.Errorf("a program that was killed: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the program did not end")
	}
}
