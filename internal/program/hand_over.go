package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// fullName is the name of the program with all parts.
const fullName = "mayfly-full"

// The environment variables in which mayfly tells mayfly-full its own version and path.
const (
	envStartedVersion = "MAYFLY_STARTED_BY_VERSION"
	envStartedPath    = "MAYFLY_STARTED_BY"
)

// envStartedWarned is set if the mayfly that started this program has warned of secrets on the command
// line, which is the same.
const envStartedWarned = "MAYFLY_STARTED_WARNED"

// Main runs the command line of this process with the given parts, and ends the process.
func Main(p Parts) {
	parts = p
	starter = os.Getenv(envStartedPath)
	warned = os.Getenv(envStartedWarned) != ""
	starterVersion := os.Getenv(envStartedVersion)
	_, _, _ = os.Unsetenv(envStartedPath), os.Unsetenv(envStartedVersion), os.Unsetenv(envStartedWarned) // not for the programs that this one starts
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := exitUsage
	if err := checkStarter(starterVersion); err != nil {
		report(os.Stderr, err)
	} else {
		code = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(code)
}

// checkStarter returns an error if a mayfly of another version has started this program.
func checkStarter(starterVersion string) error {
	if starterVersion == "" || starterVersion == version() {
		return nil
	}
	return misused(fmt.Errorf("mayfly is %s, but the %s that it started is %s", starterVersion, fullName, version()), "install both in the same version: docs/install.md")
}

// handOver runs the same command line with mayfly-full, in place of this process where the system
// can do that. It returns its exit code, or an error if it cannot be started.
func handOver(ctx context.Context, missing *missingPart, args []string) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find this program: %w", err)
	}
	if starter != "" {
		return 0, misused(fmt.Errorf("%w, but %s, which was started as that, is another mayfly", missing, self), "%s", installFull(self))
	}
	full, err := findFull(self)
	if err != nil {
		return 0, misused(fmt.Errorf("%w, which is neither beside %s nor in the PATH", missing, self), "%s", installFull(self))
	}
	if ctx.Err() != nil {
		return 0, errors.New("interrupted") // a signal that came before the hand-over
	}
	env := append(os.Environ(), envStartedVersion+"="+version(), envStartedPath+"="+self)
	if code, err = replaceProcess(full, args, env); err != nil {
		return 0, advise(fmt.Errorf("start %s: %w", full, err), "%s", installFull(self))
	}
	return code, nil
}

// checkReadable returns an error if the command line names a file that can be read only once, such as
// a pipe, since mayfly-full would find it empty.
func checkReadable(args []string) error {
	words := slices.Clone(args)
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "MAYFLY_") {
			words = append(words, "--"+variable)
		}
	}
	for _, word := range words {
		if strings.HasPrefix(word, "--") {
			_, word, _ = strings.Cut(word, "=")
		}
		if s, err := os.Stat(word); err == nil && word != os.DevNull && s.Mode()&(os.ModeNamedPipe|os.ModeDevice|os.ModeSocket) != 0 {
			return misused(fmt.Errorf("%s can be read only once, and mayfly has read it", word), "run mayfly-full with the same arguments, or use a file")
		}
	}
	return nil
}

// findFull returns the path of mayfly-full: beside this program, or in the PATH.
func findFull(self string) (string, error) {
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	beside := filepath.Join(filepath.Dir(self), fullName)
	if found, err := exec.LookPath(beside); err == nil {
		return found, nil
	}
	return exec.LookPath(fullName)
}

// installFull says how to get a mayfly-full of this version.
func installFull(self string) string {
	if v := version(); isPublished(v, readBuild().Commit) {
		return "go install github.com/mayflydb/mayfly/cmd/mayfly-full@" + v + "; docs/install.md has other ways"
	}
	return "in the repository: go run ./cmd/mayfly-full with the same arguments, or go build -o " + filepath.Dir(self) + " ./cmd/mayfly-full"
}

// isPublished reports whether a version is one that go install can find. The toolchain derives a
// version from the commit for a program that is built in a clone.
func isPublished(version, commit string) bool {
	local := commit != "" && strings.Contains(version, commit[:min(len(commit), 12)])
	return strings.HasPrefix(version, "v") && !strings.Contains(version, "+") && !local
}

// starter is the path of the mayfly that started this program, if one did.
var starter string

// warned reports that the starter has warned of secrets on the command line.
var warned bool

// Starter returns the path of the mayfly that the user started: the one that started this program,
// or this program.
func Starter() (string, error) {
	if starter != "" {
		return starter, nil
	}
	return os.Executable()
}
