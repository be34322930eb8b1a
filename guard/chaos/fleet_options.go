package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/command"
)

// fleetWord is the first argument of a run of a fleet.
const fleetWord = "fleet"

// fleetOptions are the flags of a run of a fleet.
type fleetOptions struct {
	For          time.Duration `help:"Time over which the deadlines are spread, from 2s to 24h." default:"10m"`
	Rate         int           `help:"Deadlines a second, up to 50,000." default:"5000" placeholder:"N"`
	Pending      int           `help:"Items with deadlines after the run, up to 100,000,000." default:"5000000" placeholder:"N"`
	Shards       int           `help:"Open shards of the table's stream, from 1 to 64." default:"64" placeholder:"N"`
	Workers      int           `help:"Workers at the beginning, from 2 to 16." default:"4" placeholder:"N"`
	Lease        time.Duration `help:"Time after which workers take over a silent worker's share, from 1s to 1m." default:"6s"`
	Pause        time.Duration `help:"Time for which a worker is stopped." default:"40s"`
	Ahead        time.Duration `help:"Time from an item's write to its deadline, from 1s to 10m." default:"30s"`
	WholeSeconds bool          `help:"Round the deadlines up to whole seconds. Default: they are spread over each second, in milliseconds."`
	Settle       time.Duration `help:"Time after the last deadline until every due item must be gone." default:"2m"`
	Dir          string        `help:"Directory of the mayfly, which must be empty. Default: it is in memory." placeholder:"DIR"`
	SVG          string        `name:"svg" help:"File for the picture of the lateness over time." placeholder:"FILE"`
	JSON         bool          `name:"json" help:"Print the report as JSON."`
	Verbose      bool          `help:"Print the logs of the workers to standard error."`
}

// Help implements the helper of package command.
func (fleetOptions) Help() string {
	return `It starts a mayfly in this process, writes the pending items, and starts the workers as processes of their own, with the strategy stream.
When these know all pending deadlines, items begin to expire. Of 100 items, around their deadlines, 10 are renewed, 1 loses its deadline,
and 1 is deleted by the load. A fifth of the time later a worker is killed for good, after two fifths another is stopped for --pause (SIGSTOP),
and after three fifths one is added.

A witness in front of the mayfly judges each removal at the time of its answer: one by DeleteItem by the old image of the item, and one in a
transaction, which shows none, by the answers to the load's writes: a renewal succeeds only before the removal. At the end, the table must
hold exactly the items that are not due, and the witness must have seen a removal of each other item.

An interrupt (Ctrl-C) lets a stopped worker go on, and ends the run without a report. If this program is killed during the pause, end the
stopped worker by hand with: kill -CONT PID. Exit codes: 1 if an item was removed early or wrongly, or a due item was left, or the run failed; 2 for a wrong command line.

Examples:

    go run ./guard/chaos fleet --svg fleet.svg
    go run ./guard/chaos fleet --pending 500000 --rate 1000 --for 3m --json`
}

const itemsMost = 100_000_000 // with deadlines in a run

func (o *fleetOptions) check() error {
	switch {
	case o.For < 2*time.Second || o.For > 24*time.Hour:
		return misusedFleet("--for: %v is not between 2s and 24h", o.For)
	case o.Rate < 1 || o.Rate > 50_000:
		return misusedFleet("--rate: %d is not between 1 and 50,000", o.Rate)
	case int64(o.Rate)*int64(o.For/time.Second) > itemsMost:
		return misusedFleet("--rate %d, --for %v: these are more than 100,000,000 items", o.Rate, o.For)
	case o.Pending < 0 || o.Pending > 100_000_000:
		return misusedFleet("--pending: %d is not between 0 and 100,000,000", o.Pending)
	case o.Shards < 1 || o.Shards > 64:
		return misusedFleet("--shards: %d is not between 1 and 64", o.Shards)
	case o.Workers < 2 || o.Workers > 16:
		return misusedFleet("--workers: %d is not between 2 and 16", o.Workers)
	case o.Lease < time.Second || o.Lease > time.Minute:
		return misusedFleet("--lease: %v is not between 1s and 1m", o.Lease)
	case o.Ahead < time.Second || o.Ahead > 10*time.Minute:
		return misusedFleet("--ahead: %v is not between 1s and 10m", o.Ahead)
	case o.Pause < 0 || o.Settle < 0:
		return misusedFleet("--pause %v, --settle %v: a time is negative", o.Pause, o.Settle)
	}
	return nil
}

func misusedFleet(format string, args ...any) error {
	return &advised{fmt.Errorf(format, args...), "go run ./guard/chaos fleet --help", exitUsage}
}

// line returns the command line that repeats the run.
func (o fleetOptions) line() string {
	words := []string{fmt.Sprintf("go run ./guard/chaos fleet --pending %d --rate %d --for %v --shards %d --workers %d", o.Pending, o.Rate, o.For, o.Shards, o.Workers)}
	words = append(words, fmt.Sprintf("--lease %v --pause %v --ahead %v --settle %v", o.Lease, o.Pause, o.Ahead, o.Settle))
	if o.WholeSeconds {
		words = append(words, "--whole-seconds")
	}
	return strings.Join(words, " ")
}

// runFleet runs one command line and returns the exit code.
func runFleet(ctx context.Context, args, program []string, stdout, stderr io.Writer) int {
	p := command.Program{Name: "chaos fleet", Help: "Run a fleet of guard's workers under load, and draw the lateness of its removals.", Env: "CHAOS_FLEET", Out: stdout, Err: stderr}
	selected, err := command.New(p, &fleetOptions{}).Parse(args)
	if wrong, ok := errors.AsType[*command.Usage](err); ok {
		err = misusedFleet("%w", wrong)
	}
	if err != nil || selected == nil { // nil: help was printed
		return fail(stderr, err)
	}
	o := selected.(*fleetOptions)
	if err := o.check(); err != nil {
		return fail(stderr, err)
	}
	r, err := (&fleetRun{fleetOptions: *o, program: program, stderr: stderr}).run(ctx)
	if err == nil && o.SVG != "" {
		err = r.draw(o.SVG)
	}
	if err == nil {
		err = r.print(stdout, o.JSON)
	}
	if err != nil {
		return fail(stderr, err)
	}
	if r.broken() {
		fmt.Fprintf(stderr, "chaos: guard broke a promise\n  next: repeat the run with: %s\n", o.line())
		return exitBroken
	}
	return 0
}
