package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// cli is the command line: one field a command.
type cli struct {
	Serve   serveCommand   `cmd:"" help:"Serve the DynamoDB API."`
	Demo    demoCommand    `cmd:"" help:"Watch real readings expire to the millisecond, then try the running endpoint."`
	Bench   benchCommand   `cmd:"" help:"Measure this server, or any DynamoDB endpoint, beside what is possible on this machine."`
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
	exited := -1
	parser, err := kong.New(&cli{},
		kong.Name("mayfly"),
		kong.Description("A DynamoDB-compatible database in which items expire exactly at their deadlines."),
		kong.DefaultEnvars("MAYFLY"),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(out),
	)
	if err != nil {
		return report(stderr, err)
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help has been answered
		return exited
	}
	if err != nil {
		fmt.Fprintf(stderr, "mayfly: %v\n  next: %s\n", err, usageAdvice)
		return exitUsage
	}
	return report(stderr, command.Run())
}

// report prints an error with its advice and gives the exit code that belongs to it.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "mayfly: %v\n", err)
	var a *advised
	if errors.As(err, &a) {
		fmt.Fprintf(stderr, "  next: %s\n", a.next)
	}
	return exitError
}

// advised is an error together with what to do about it.
type advised struct {
	error
	next string
}

func (a *advised) Unwrap() error { return a.error }

// advise attaches a next step.
func advise(err error, format string, args ...any) error {
	return &advised{err, fmt.Sprintf(format, args...)}
}
