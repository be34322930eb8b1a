package steady

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// built is the program in testdata/dice.
var built struct {
	once    sync.Once
	program string
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.program != "" {
		os.RemoveAll(filepath.Dir(built.program))
	}
	os.Exit(code)
}

// dice returns the path of the program.
func dice(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "steady")
		if err != nil {
			built.err = err
			return
		}
		built.program = filepath.Join(dir, "dice")
		build := exec.Command("go", "build", "-o", built.program, "./testdata/dice")
		build.Env = append(build.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.program
}

// steadily runs a command. Where the order of goroutines cannot be fixed, the test ends here.
func steadily(t *testing.T, seed uint64, cmd *exec.Cmd) error {
	t.Helper()
	err := Run(cmd, seed)
	if errors.Is(err, ErrRefused) && os.Getenv("FULL_TESTS") != "1" {
		t.Skip(err)
	}
	return err
}

// roll runs dice with a seed and returns what it printed.
func roll(t *testing.T, seed uint64) string {
	t.Helper()
	var out bytes.Buffer
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, dice(t))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := steadily(t, seed, cmd); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	return out.String()
}

// TestSameAgain: a program that prints what the runtime decides by chance prints the same each time
// with one seed, also beside others that want the processors.
func TestSameAgain(t *testing.T) {
	stop := make(chan struct{}, 1)
	defer func() { stop <- struct{}{} }()
	for range runtime.NumCPU() {
		go func() {
			for len(stop) == 0 {
			}
		}()
	}
	first := roll(t, 1)
	for i := range 50 {
		if again := roll(t, 1); again != first {
			t.Fatalf("run %d printed %s, the first %s", i, again, first)
		}
	}
}

// TestSeedsDiffer: another seed gives another run, so that the one above does not pass because the
// program has no choice.
func TestSeedsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for seed := range 10 {
		seen[roll(t, uint64(seed))] = true
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
	roll(t, 1) // or skips
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
	roll(t, 1) // or skips
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
