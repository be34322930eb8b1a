package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// result is what became of a mutation.
type result string

const (
	killed   result = "killed"
	timeout  result = "timeout"  // a test hung: killed too, and counted apart
	survived result = "SURVIVED" // every test passed
	failed   result = "ERROR"    // the mutation does not apply or does not compile
)

// outcome is one mutation's result.
type outcome struct {
	Name, File, Package, Why string
	Result                   result
	By                       string // the first test that failed, or the error
	Seconds                  float64
}

// runner builds and runs test binaries. One binary holds every mutation of a package, and the
// environment selects the one that is active: to link a binary for each would take most of the
// time.
type runner struct {
	scratch  string
	limit    time.Duration
	verbose  io.Writer                    // nil: the output of tests is not printed
	overlays map[string]map[string]string // by mutated package: the files that replace its own
	binaries map[string]string            // by mutated package, a slash, and tested package
}

const mutantVariable = "MAYFLY_MUTANT"

// build makes the test binaries. It returns an outcome for each mutation that does not apply or
// does not compile, which is left out.
func (r *runner) build(ctx context.Context, all []mutation) (errs []outcome, err error) {
	r.overlays, r.binaries = map[string]map[string]string{}, map[string]string{}
	byPackage := map[string][]mutation{}
	for _, m := range all {
		byPackage[m.Package] = append(byPackage[m.Package], m)
	}
	for pkg, ms := range byPackage {
		for len(ms) > 0 {
			broken, err := r.buildPackage(ctx, pkg, ms)
			if err != nil {
				return nil, err
			}
			if len(broken) == 0 {
				break
			}
			for name, why := range broken {
				i := slices.IndexFunc(ms, func(m mutation) bool { return m.Name == name })
				errs = append(errs, outcome{Name: name, File: ms[i].File, Package: pkg, Why: ms[i].Why, Result: failed, By: why})
				ms = slices.Delete(ms, i, i+1)
			}
		}
		for _, m := range ms {
			for _, t := range m.Also {
				if out, err := r.compile(ctx, pkg, t.Package); err != nil {
					return nil, fmt.Errorf("build the tests of %s: %w\n%s", t.Package, err, out)
				}
			}
		}
	}
	return errs, nil
}

var compileError = regexp.MustCompile(`(?m)^.*?([^/\s]+\.go):(\d+):\d+: (.*)$`)

// buildPackage builds a package's tests with mutations of the package. broken are the mutations
// that do not apply or do not compile, with the reasons.
func (r *runner) buildPackage(ctx context.Context, pkg string, ms []mutation) (broken map[string]string, err error) {
	broken = map[string]string{}
	byFile := map[string][]mutation{}
	for _, m := range ms {
		byFile[m.File] = append(byFile[m.File], m)
	}
	replace := map[string]string{}
	ranges := map[string][]lines{} // by generated file
	dir := filepath.Join(r.scratch, strings.ReplaceAll(pkg, "/", "-"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	add := func(file string, text []byte) error {
		path, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		replace[path] = filepath.Join(dir, filepath.Base(file))
		return os.WriteFile(replace[path], text, 0o600)
	}
	name := ""
	for file, of := range byFile {
		text, where, wrong, err := combine(".", of)
		if err != nil {
			return nil, err
		}
		maps.Copy(broken, wrong)
		ranges[filepath.Base(file)] = where
		name = packageName(text)
		if err := add(file, text); err != nil {
			return nil, err
		}
	}
	if len(broken) > 0 {
		return broken, nil
	}
	text := fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar activeMutation = os.Getenv(%q)\n", name, mutantVariable)
	if err := add(filepath.Join(pkg, "zz_active_mutation.go"), []byte(text)); err != nil {
		return nil, err
	}
	r.overlays[pkg] = replace
	out, err := r.compile(ctx, pkg, pkg)
	if err == nil {
		return nil, nil
	}
	for _, found := range compileError.FindAllStringSubmatch(out, -1) {
		line, _ := strconv.Atoi(found[2])
		for _, l := range ranges[found[1]] {
			if l.from <= line && line <= l.to {
				broken[l.name] = "does not compile: " + found[3]
			}
		}
	}
	if len(broken) == 0 {
		return nil, fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out)
	}
	return broken, nil
}

// compile builds the tests of one package with the mutations of another, or of the same.
func (r *runner) compile(ctx context.Context, mutated, tested string) (out string, err error) {
	id := mutated + "/" + tested
	if r.binaries[id] != "" {
		return "", nil
	}
	base := filepath.Join(r.scratch, strings.ReplaceAll(id, "/", "-"))
	overlay, err := json.Marshal(map[string]any{"Replace": r.overlays[mutated]})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(base+".json", overlay, 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-gcflags=-e", "-ldflags=-s -w", "-overlay", base+".json", "-o", base+".test", "./"+tested)
	said, err := cmd.CombinedOutput()
	if err == nil {
		r.binaries[id] = base + ".test"
	}
	return string(said), err
}

// baseline requires that the packages' own tests pass without a mutation: a test that fails anyway
// kills nothing.
func (r *runner) baseline(ctx context.Context, all []mutation) error {
	var pkgs []string
	for _, m := range all {
		if !slices.Contains(pkgs, m.Package) {
			pkgs = append(pkgs, m.Package)
		}
	}
	for _, pkg := range pkgs {
		if res, by := r.test(ctx, mutation{Package: pkg}, tests{Package: pkg}, 3*r.limit); res != survived {
			return fmt.Errorf("%s does not pass without a mutation: %s %s", pkg, res, by)
		}
	}
	return ctx.Err()
}

// try runs the tests against one mutation until one of them fails: first those that it names, then
// all of its package's, then the tests of other packages.
func (r *runner) try(ctx context.Context, m mutation) outcome {
	elapsed := clock.Stopwatch()
	o := outcome{Name: m.Name, File: m.File, Package: m.Package, Why: m.Why, Result: survived}
	phases := []tests{{m.Package, m.Run}}
	if m.Run != "" {
		phases = append(phases, tests{Package: m.Package})
	}
	for _, t := range append(phases, m.Also...) {
		limit := r.limit
		if t.Run == "" {
			limit *= 3
		}
		if o.Result, o.By = r.test(ctx, m, t, limit); o.Result != survived {
			break
		}
	}
	o.Seconds = elapsed().Seconds()
	return o
}

var (
	failing  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	hanging  = regexp.MustCompile(`(?m)^panic: test timed out after`)
	panicked = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*)$`)
)

// usesRapid reports whether a package's tests use rapid, and so know its flags.
func usesRapid(pkg string) bool {
	files, _ := filepath.Glob(filepath.Join(pkg, "*_test.go"))
	return slices.ContainsFunc(files, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && bytes.Contains(text, []byte(`"pgregory.net/rapid"`))
	})
}

// test runs some tests and returns survived if all of them pass.
func (r *runner) test(ctx context.Context, m mutation, t tests, limit time.Duration) (result, string) {
	args := []string{"-test.short", "-test.failfast", "-test.paniconexit0", "-test.timeout", limit.String()}
	if t.Run != "" {
		args = append(args, "-test.run", t.Run)
	}
	if usesRapid(t.Package) {
		args = append(args, "-rapid.nofailfile") // else a failure leaves a file in the tree
	}
	// Past its limit a test binary ends itself with the stacks of what hangs. This limit is for one
	// that cannot.
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.binaries[m.Package+"/"+t.Package], args...)
	cmd.Dir = t.Package
	cmd.Env = append(os.Environ(), mutantVariable+"="+m.Name, "FULL_TESTS=1")
	cmd.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if r.verbose != nil {
		fmt.Fprintf(r.verbose, "%s %s\n%s", m.Name, cmd, said.Bytes())
	}
	first := func(of *regexp.Regexp) string {
		if found := of.FindSubmatch(said.Bytes()); found != nil {
			return string(found[1])
		}
		return ""
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return survived, ""
	case ctx.Err() != nil, hanging.Match(said.Bytes()):
		return timeout, t.Package
	case !errors.As(err, &exit):
		return failed, err.Error()
	case first(failing) != "":
		return killed, t.Package + " " + first(failing)
	case first(panicked) != "":
		return killed, t.Package + " " + first(panicked)
	}
	return killed, t.Package + ": the tests ended without a word"
}
