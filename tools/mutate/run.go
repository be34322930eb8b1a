package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// result is what became of a mutation.
type result string

const (
	killed   result = "killed"
	timeout  result = "timeout" // a test hung: killed too, and counted apart
	survived result = "SURVIVED"
	failed   result = "ERROR" // the mutation does not apply or does not compile
)

// outcome is one mutation's result.
type outcome struct {
	Name, File, Package, Why string
	Result                   result
	By                       string // the first test that failed, or the error
	Seconds                  float64
}

// runner runs tests.
type runner struct {
	scratch string
	limit   time.Duration
	verbose io.Writer // nil: the output of tests is not printed
}

// baseline requires that the packages' own tests pass as they are: a test that fails anyway kills
// nothing.
func (r *runner) baseline(ctx context.Context, all []mutation) error {
	var pkgs []string
	for _, m := range all {
		if !slices.Contains(pkgs, m.Package) {
			pkgs = append(pkgs, m.Package)
		}
	}
	for _, pkg := range pkgs {
		if res, by := r.test(ctx, tests{Package: pkg}, "", 3*r.limit); res != survived {
			return fmt.Errorf("%s does not pass without a mutation: %s %s", pkg, res, by)
		}
	}
	return ctx.Err()
}

// try runs the tests against one mutation until one of them fails: first those that it names, then
// all of its package's, then those of other packages.
func (r *runner) try(ctx context.Context, m mutation) outcome {
	elapsed := clock.Stopwatch()
	o := outcome{Name: m.Name, File: m.File, Package: m.Package, Why: m.Why, Result: survived}
	overlay, err := r.overlay(m)
	if err != nil {
		o.Result, o.By = failed, err.Error()
		return o
	}
	phases := []tests{{m.Package, m.Run}}
	if m.Run != "" {
		phases = append(phases, tests{Package: m.Package})
	}
	for _, t := range append(phases, m.Also...) {
		limit := r.limit
		if t.Run == "" {
			limit *= 3
		}
		if o.Result, o.By = r.test(ctx, t, overlay, limit); o.Result != survived {
			break
		}
	}
	o.Seconds = elapsed().Seconds()
	return o
}

// overlay writes the mutated file, and the file that names it to go test.
func (r *runner) overlay(m mutation) (name string, err error) {
	mutated, err := m.apply(".")
	if err != nil {
		return "", err
	}
	file, err := filepath.Abs(m.File)
	if err != nil {
		return "", err
	}
	base := filepath.Join(r.scratch, strings.ReplaceAll(m.Name, "/", "-"))
	if err := os.WriteFile(base+".go", mutated, 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: base + ".go"}})
	if err != nil {
		return "", err
	}
	return base + ".json", os.WriteFile(base+".json", replace, 0o600)
}

var (
	failing  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	hanging  = regexp.MustCompile(`(?m)^panic: test timed out after`)
	panicked = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*)$`)
	unbuilt  = regexp.MustCompile(`(?m)\[(build|setup) failed\]$`)
)

// usesRapid reports whether a package's tests use rapid, and so know its flags.
func usesRapid(pkg string) bool {
	files, _ := filepath.Glob(filepath.Join(pkg, "*_test.go"))
	return slices.ContainsFunc(files, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && bytes.Contains(text, []byte(`"pgregory.net/rapid"`))
	})
}

// test runs some tests and returns survived where all of them pass.
func (r *runner) test(ctx context.Context, t tests, overlay string, limit time.Duration) (result, string) {
	args := []string{"test", "-short", "-failfast", "-count=1", "-vet=off", "-timeout", limit.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if t.Run != "" {
		args = append(args, "-run", t.Run)
	}
	args = append(args, "./"+t.Package)
	if usesRapid(t.Package) {
		args = append(args, "-rapid.nofailfile") // else a failure leaves a file in the tree
	}
	// Past its limit a test binary ends itself with the stacks of what hangs. This limit is for one that cannot, and for the compiler.
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if r.verbose != nil {
		fmt.Fprintf(r.verbose, "%s\n%s", cmd, said.Bytes())
	}
	first := func(of *regexp.Regexp) string {
		if found := of.FindSubmatch(said.Bytes()); found != nil {
			return string(found[1])
		}
		return ""
	}
	switch {
	case err == nil:
		return survived, ""
	case unbuilt.Match(said.Bytes()):
		return failed, said.String()
	case ctx.Err() != nil, hanging.Match(said.Bytes()):
		return timeout, t.Package
	case first(failing) != "":
		return killed, t.Package + " " + first(failing)
	case first(panicked) != "":
		return killed, t.Package + " " + first(panicked)
	}
	return failed, said.String()
}
