package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mayflydb/mayfly/internal/command"
)

// cli is the command line: one field a command.
type cli struct {
	Serve      serveCommand      `cmd:"" help:"Serve the DynamoDB API."`
	Demo       demoCommand       `cmd:"" help:"Watch real readings expire to the millisecond, then try the running endpoint."`
	Bench      benchCommand      `cmd:"" help:"Measure this server, or any DynamoDB endpoint, beside two references."`
	Schedule   scheduleCommand   `cmd:"" help:"Create, list and fire schedules, through the API of EventBridge Scheduler."`
	Trigger    triggerCommand    `cmd:"" help:"Call a target for a table's changes and expiries, through the API of Lambda."`
	Reminder   reminderCommand   `cmd:"" help:"Look at reminders: targets called at instants that items name."`
	Lifecycle  lifecycleCommand  `cmd:"" help:"Entities whose states change at known times: check, draw, simulate, apply, create, show."`
	Deadletter deadletterCommand `cmd:"" help:"List, inspect and redrive what could not be delivered."`
	Recorded   recordedCommand   `cmd:"" help:"Show what was delivered to targets that are not mapped."`
	Guard      guardCommand      `cmd:"" help:"Give tables elsewhere, such as in Amazon DynamoDB, exact expiry."`
	Series     seriesCommand     `cmd:"" help:"Keep readings of devices: ingest files, show the latest, ranges, rollups and plots."`
	Worker     workerCommand     `cmd:"" help:"Run schedules, triggers, reminders and lifecycles beside a DynamoDB endpoint that is elsewhere."`
	Plan       planCommand       `cmd:"" help:"Compute what a table will need and cost, in each capacity mode and with each way to expire."`
	Check      checkCommand      `cmd:"" help:"Check the directory of a database: every checksum, and every relation between its parts."`
	Salvage    salvageCommand    `cmd:"" help:"Copy what can be read of a damaged directory into a new one, and list the losses."`

	Healthcheck healthcheckCommand `cmd:"" help:"Report whether a running server is ready, for probes of containers."`

	Version versionCommand `cmd:"" help:"Print what this program was built from."`
}

// streams is where a command writes: results to out, everything else to err.
type streams struct {
	out, err io.Writer
}

const (
	exitOK    = 0
	exitError = 1 // what was asked could not be done
	exitUsage = 2 // what was asked is not understood
)

const usageAdvice = "every flag can also be set as MAYFLY_<FLAG> in the environment; mayfly <command> --help shows them"

// run executes one command line until it is done or ctx is, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := streams{stdout, stderr}
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-v") {
		args = []string{"version"}
	}
	parser := command.New(command.Program{Name: "mayfly", Help: "A DynamoDB-compatible database in which items expire exactly at their deadlines.", Env: "MAYFLY", Out: stdout, Err: stderr}, &cli{})
	selected, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "mayfly: %v\n  next: %s\n", err, usageAdvice)
		return exitUsage
	}
	if selected == nil { // --help has been answered
		return exitOK
	}
	return report(stderr, selected.(runner).Run(ctx, out))
}

// runner is what every command is.
type runner interface {
	Run(ctx context.Context, s streams) error
}

// configFlag is --config.
type configFlag = command.File

// report prints an error with its advice and gives the exit code that belongs to it.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "mayfly: %v\n", err)
	var a *advised
	if errors.As(err, &a) {
		fmt.Fprintf(stderr, "  next: %s\n", a.next)
		if a.exit != exitOK {
			return a.exit
		}
	}
	return exitError
}

// advised is an error together with what to do about it.
type advised struct {
	error
	next string
	exit int // code; 0: exitError
}

func (a *advised) Unwrap() error { return a.error }

// advise attaches a next step.
func advise(err error, format string, args ...any) error {
	return &advised{error: err, next: fmt.Sprintf(format, args...)}
}
