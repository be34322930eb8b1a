package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// fullName is the name of the program with all parts.
const fullName = "mayfly-full"

// The environment variables with which mayfly tells mayfly-full what started it: its version and its
// path.
const (
	envStartedVersion = "MAYFLY_STARTED_BY_VERSION"
	envStartedPath    = "MAYFLY_STARTED_BY"
)

// Main runs the command line of this process with the given parts, and ends the process.
func Main(p Parts) {
	parts = p
	starter = os.Getenv(envStartedPath)
	its := os.Getenv(envStartedVersion)
	_, _ = os.Unsetenv(envStartedPath), os.Unsetenv(envStartedVersion) // not for the programs that this one starts
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := exitUsage
	if err := checkStarter(its); err != nil {
		report(os.Stderr, err)
	} else {
		code = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(code)
}

// checkStarter returns an error if a mayfly of another version has started this program.
func checkStarter(its string) error {
	if its == "" || its == version() {
		return nil
	}
	return advise(fmt.Errorf("mayfly is %s, but the %s that it started is %s", its, fullName, version()), "install both in the same version: docs/install.md")
}

// handOver runs the same command line with mayfly-full, in place of this process where the system
// can do that. It returns its exit code, or an error if there is no mayfly-full.
func handOver(missing *missingPart, args []string) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find this program: %w", err)
	}
	full, err := findFull(self)
	if err != nil {
		return 0, advise(fmt.Errorf("%w, which is neither beside %s nor in the PATH", missing, self), "%s", installFull(self))
	}
	env := append(os.Environ(), envStartedVersion+"="+version(), envStartedPath+"="+self)
	return replaceProcess(full, args, env)
}

// findFull returns the path of mayfly-full: beside this program, or in the PATH.
func findFull(self string) (string, error) {
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	name := fullName
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if s, err := os.Stat(beside); err == nil && s.Mode().IsRegular() {
		return beside, nil
	}
	return exec.LookPath(fullName)
}

// installFull says how to get a mayfly-full of this version.
func installFull(self string) string {
	if v := version(); strings.HasPrefix(v, "v") {
		return "go install github.com/mayflydb/mayfly/cmd/mayfly-full@" + v + "; docs/install.md has other ways"
	}
	return "in the repository: go run ./cmd/mayfly-full with the same arguments, or go build -o " + filepath.Dir(self) + " ./cmd/mayfly-full"
}

// starter is the path of the mayfly that started this program, if one did.
var starter string

// Starter returns the path of the mayfly that the user started: the one that started this program,
// or this program.
func Starter() (string, error) {
	if starter != "" {
		return starter, nil
	}
	return os.Executable()
}
