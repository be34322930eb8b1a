// Chaos runs guard through faults and judges each of its removals.
//
//	go run ./guard/chaos --for 10m --seed 7                        an embedded mayfly
//	go run ./guard/chaos --endpoint http://127.0.0.1:8000 --for 1h any endpoint
//	go run ./guard/chaos fleet --svg fleet.svg                     four workers under load
//
// For each strategy it makes a table, starts workers as processes of their own, and writes items
// that are renewed, freed, moved and deleted around their deadlines. The load goes directly to the
// endpoint. The workers reach it through a proxy:
//
//	load ──────────────────────────► endpoint
//	  │ each write                      ▲
//	  ▼                                 │ signed again, DeleteItem with ReturnValues=ALL_OLD
//	ledger ◄── each removal ── witness ─┘
//	                              ▲
//	                           faults: delays, lost answers, errors, wrong Dates, …
//	                              ▲
//	            workers ──────────┘ paused, killed and started again
//
// A run has three phases: a quarter of the time without faults, for comparison; the faults; and the
// settling, without load and faults, until every due item is gone.
//
// The proxy is the witness. The old image in the answer to a DeleteItem shows which write of the
// item was removed (in a transaction, the answers to the load's writes do, except for a put at the
// same time), and this machine's monotonic clock whether its deadline had passed. At the end
// a scan of the table must agree with the ledger. These findings make the exit code 1:
//
//	early  a removal before the deadline, by more than --max-skew if the fault date is on
//	wrong  a removed item without a deadline, a renewed item removed for an earlier deadline, an
//	       item that is missing or has another state than its last write, an unexpected write
//	left   a due item that is still there when the settling has ended, after --settle
//	died   a worker that ended with an error that no fault explains
//
// The same seed makes the same decisions: a fault happens or not by a hash of the seed and the
// number of the request. The order of concurrent requests differs from run to run, so a run with
// the same seed is similar, not equal.
//
// With the word fleet, it runs the stream strategy at a high rate with millions of pending deadlines,
// loses, pauses and adds a worker, and draws the lateness over time; see fleetOptions.
//
// An interrupt (Ctrl-C) ends the load and the faults. The run settles and reports as usual; a second
// interrupt ends the program at once and leaves its tables. A run of a fleet ends without a report at
// the first interrupt; its tables are in this process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/command"
)

const (
	exitBroken = 1 // guard broke a promise, or the run failed
	exitUsage  = 2
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == workerWord {
		os.Exit(runWorker(os.Args[2], nil))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	code := exitBroken
	if self, err := os.Executable(); err != nil {
		fail(os.Stderr, err)
	} else {
		code = run(ctx, os.Args[1:], []string{self, workerWord}, os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(code)
}

// options are the flags.
type options struct {
	Endpoint string        `help:"Endpoint with the DynamoDB API. Default: a mayfly in this process." placeholder:"URL"`
	For      time.Duration `help:"Duration of the load: a quarter without faults, the rest with them." default:"1m"`
	Seed     uint64        `help:"Seed of the load and the faults. Default: random." placeholder:"N"`
	Strategy []string      `help:"Strategies to run side by side: stream, index, scan. Default: all that the endpoint supports." placeholder:"NAME"`
	Workers  int           `help:"Workers of each strategy, from 1 to 16. A single one has a store of its own for the stream strategy's deadlines, and writes them in batches." default:"2"`
	Rate     float64       `help:"New items a second for each strategy, up to 1,000." default:"50"`
	Faults   []string      `help:"Faults to inject, or none. Default: all." placeholder:"NAME"`
	Batch    int           `help:"Removals in one transaction of a worker, up to 100; 0 uses no transactions." default:"0"`
	MaxSkew  time.Duration `help:"The workers' limit for the difference of the clocks, from 100ms to 1m." default:"1s"`
	Lease    time.Duration `help:"Time after which workers take over a silent worker's share." default:"3s"`
	Settle   time.Duration `help:"Time after the faults until every due item must be gone." default:"1m"`
	Keep     bool          `help:"Keep the tables."`
	JSON     bool          `name:"json" help:"Print the report as JSON."`
	Verbose  bool          `help:"Print the logs of the workers to standard error."`
}

// Help implements the helper of package command.
func (options) Help() string {
	var all []string
	for _, f := range faults {
		all = append(all, fmt.Sprintf("    %-11s %s", f.name, f.help))
	}
	return `Examples:

    go run ./guard/chaos --for 1m
    go run ./guard/chaos --endpoint http://127.0.0.1:8000 --for 1h --seed 7 --json
    go run ./guard/chaos --strategy stream --faults lost,kill,repeat
    go run ./guard/chaos fleet --help

Credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, the region from AWS_REGION; any values
are fine for an endpoint that checks none. Exit codes: 1 if guard broke a promise or the run failed, 2 for a wrong command line.

Faults:

` + strings.Join(all, "\n")
}

// check returns an error for values out of range, and an unknown strategy or fault.
func (o *options) check() error {
	switch {
	case o.For < time.Second:
		return misused("--for: %v is shorter than 1s", o.For)
	case o.Workers < 1 || o.Workers > 16:
		return misused("--workers: %d is not between 1 and 16", o.Workers)
	case o.Rate <= 0 || o.Rate > 1000:
		return misused("--rate: %v is not between 0 and 1,000", o.Rate)
	case o.Batch < 0 || o.Batch > 100:
		return misused("--batch: %d is not between 0 and 100", o.Batch)
	case o.MaxSkew < 100*time.Millisecond || o.MaxSkew > time.Minute:
		return misused("--max-skew: %v is not between 100ms and 1m", o.MaxSkew)
	case o.Lease < time.Second || o.Lease > time.Minute:
		return misused("--lease: %v is not between 1s and 1m", o.Lease)
	}
	for _, name := range o.Strategy {
		if !slices.Contains(strategies, guard.Strategy(name)) {
			return misused("--strategy: %q is not one of stream, index, scan", name)
		}
	}
	if slices.Equal(o.Faults, []string{"none"}) {
		o.Faults = nil
		return nil
	}
	var known []string
	for _, f := range faults {
		known = append(known, f.name)
	}
	if o.Faults == nil {
		o.Faults = known
	}
	for _, name := range o.Faults {
		if !slices.Contains(known, name) {
			return misused("--faults: %q is not one of none, %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// advised is an error with a next step and an exit code.
type advised struct {
	error
	next string
	exit int
}

func misused(format string, args ...any) error {
	return &advised{fmt.Errorf(format, args...), "go run ./guard/chaos --help", exitUsage}
}

func advise(err error, format string, args ...any) error {
	return &advised{err, fmt.Sprintf(format, args...), exitBroken}
}

// run runs one command line and returns the exit code. program is the program of a worker with its
// first arguments.
func run(ctx context.Context, args, program []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == fleetWord {
		return runFleet(ctx, args[1:], program, stdout, stderr)
	}
	p := command.Program{Name: "chaos", Help: "Run guard through faults, and judge each of its removals.", Env: "CHAOS", Out: stdout, Err: stderr}
	selected, err := command.New(p, &options{}).Parse(args)
	if wrong, ok := errors.AsType[*command.Usage](err); ok {
		err = &advised{wrong, wrong.Next, exitUsage}
	}
	if err != nil || selected == nil { // nil: help was printed
		return fail(stderr, err)
	}
	o := selected.(*options)
	if err := o.check(); err != nil {
		return fail(stderr, err)
	}
	if o.Seed == 0 {
		o.Seed = 1 + rand.Uint64N(1_000_000_000)
	}
	r, err := runAll(ctx, *o, program, stderr)
	if err != nil {
		if r != nil && r.broken() { // it may be the cause
			_ = r.print(stderr, false)
		}
		return fail(stderr, err)
	}
	if err := r.print(stdout, o.JSON); err != nil {
		return fail(stderr, err)
	}
	if r.broken() {
		fmt.Fprintf(stderr, "chaos: guard broke a promise\n  next: repeat the run with: %s\n", o.line())
		return exitBroken
	}
	return 0
}

// fail prints an error with its next step and returns the exit code.
func fail(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "chaos: %v\n", err)
	if a, ok := errors.AsType[*advised](err); ok {
		if a.next != "" {
			fmt.Fprintf(stderr, "  next: %s\n", a.next)
		}
		return a.exit
	}
	return exitBroken
}

// line returns the command line that repeats the run.
func (o options) line() string {
	words := []string{"go run ./guard/chaos"}
	if o.Endpoint != "" {
		words = append(words, "--endpoint "+o.Endpoint)
	}
	words = append(words, fmt.Sprintf("--for %v --seed %d --workers %d --rate %v --max-skew %v --lease %v", o.For, o.Seed, o.Workers, o.Rate, o.MaxSkew, o.Lease))
	if o.Strategy != nil {
		words = append(words, "--strategy "+strings.Join(o.Strategy, ","))
	}
	if len(o.Faults) == 0 {
		words = append(words, "--faults none")
	} else if len(o.Faults) < len(faults) {
		words = append(words, "--faults "+strings.Join(o.Faults, ","))
	}
	if o.Settle != time.Minute {
		words = append(words, fmt.Sprintf("--settle %v", o.Settle))
	}
	if o.Batch > 0 {
		words = append(words, fmt.Sprintf("--batch %d", o.Batch))
	}
	return strings.Join(words, " ")
}
