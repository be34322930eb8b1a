// Mutate breaks the source on purpose, one small reviewed mutation at a time, and reports which of
// them the tests notice.
//
//	go run ./tools/mutate                    every mutation
//	go run ./tools/mutate -run ^engine/      the mutations whose names match
//	go run ./tools/mutate -list              print them and their reasons
//
// A mutation is killed when a test fails, when a test hangs past the limit (counted apart), and not
// when the mutated source does not compile: that is an error. The tree is never edited; the mutated
// files reach the compiler by go test's -overlay.
//
// The mutations are data, in mutations/*.txt; list.go describes their form. A test of this package
// checks that each still applies to the source exactly once.
//
// Generated mutants (gremlins) were considered. They flip operators without knowing which promise a
// line keeps, run a package's whole tests for each of thousands of mutants (guard's alone take a
// minute), and cannot leave out a check, a lock or a wait.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run is the program; its error is nil when every mutation that was run is killed.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ExitOnError)
	pattern := flags.String("run", "", "run only the mutations whose names match this regular `expression`")
	jobs := flags.Int("jobs", 1, "how many mutations run at once")
	list := flags.Bool("list", false, "print the mutations and their reasons, and run none")
	verbose := flags.Bool("v", false, "print the output of the tests")
	result := flags.String("json", "", "write the results to this `file`, one JSON object a line")
	limit := flags.Duration("limit", 2*time.Minute, "how long tests named by a mutation may take; whole packages have three times as long")
	baseline := flags.Bool("baseline", true, "first require that the tests pass without a mutation")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *jobs < 1 || *limit <= 0 {
		return fmt.Errorf("-jobs is %d and -limit is %s; both must be positive", *jobs, *limit)
	}
	chosen, err := regexp.Compile(*pattern)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	all, err := load(".")
	if err != nil {
		return fmt.Errorf("%w; run mutate in the repository's root", err)
	}
	all = slices.DeleteFunc(all, func(m mutation) bool { return !chosen.MatchString(m.Name) })
	if *list {
		for _, m := range all {
			fmt.Fprintf(out, "%-44s %s: %s\n", m.Name, m.File, m.Why)
		}
		return nil
	}
	if len(all) == 0 {
		return fmt.Errorf("no mutation matches %q; -list prints their names", *pattern)
	}
	r := runner{limit: *limit}
	if *verbose {
		r.verbose = out
	}
	if r.scratch, err = os.MkdirTemp("", "mutate"); err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	done, err := r.build(ctx, all)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutation) bool {
		return slices.ContainsFunc(done, func(o outcome) bool { return o.Name == m.Name })
	})
	if *baseline {
		if err := r.baseline(ctx, all); err != nil {
			return err
		}
	}
	var lines *json.Encoder
	if *result != "" {
		file, err := os.Create(*result)
		if err != nil {
			return err
		}
		defer file.Close()
		lines = json.NewEncoder(file)
	}
	total := len(done) + len(all)
	var mu sync.Mutex // guards done and all that is printed
	var workers sync.WaitGroup
	next := make(chan mutation)
	for range *jobs {
		workers.Go(func() {
			for m := range next {
				o := r.try(ctx, m)
				if ctx.Err() != nil {
					return // its tests were cut short
				}
				mu.Lock()
				done = append(done, o)
				fmt.Fprintf(out, "%3d/%d %-8s %5.1fs %-44s %s\n", len(done), total, o.Result, o.Seconds, m.Name, o.By)
				if lines != nil {
					lines.Encode(o)
				}
				mu.Unlock()
			}
		})
	}
feed:
	for _, m := range all {
		select {
		case next <- m:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return report(out, done)
}

// report prints the totals and returns an error unless every mutation is killed.
func report(out io.Writer, done []outcome) error {
	totals := map[string]map[result]int{}
	count := func(pkg string, r result) {
		if totals[pkg] == nil {
			totals[pkg] = map[result]int{}
		}
		totals[pkg][r]++
	}
	for _, o := range done {
		count(o.Package, o.Result)
		count("total", o.Result)
	}
	pkgs := []string{}
	for pkg := range totals {
		if pkg != "total" {
			pkgs = append(pkgs, pkg)
		}
	}
	slices.Sort(pkgs)
	fmt.Fprintf(out, "\n%-22s %9s %7s %8s %9s %7s\n", "package", "mutations", "killed", "timeouts", "survivors", "errors")
	for _, pkg := range append(pkgs, "total") {
		t := totals[pkg]
		n := t[killed] + t[timeout] + t[survived] + t[failed]
		fmt.Fprintf(out, "%-22s %9d %7d %8d %9d %7d  %5.1f %% killed or timed out\n",
			pkg, n, t[killed], t[timeout], t[survived], t[failed], 100*float64(t[killed]+t[timeout])/float64(n))
	}
	slices.SortFunc(done, func(a, b outcome) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range done {
		if o.Result == survived || o.Result == failed {
			fmt.Fprintf(out, "\n%s: %s\n    %s: %s\n    %s\n", o.Result, o.Name, o.File, o.Why, o.By)
		}
	}
	if n := totals["total"][survived] + totals["total"][failed]; n > 0 {
		return fmt.Errorf("%d of %d mutations are not killed", n, len(done))
	}
	return nil
}
