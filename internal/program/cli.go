// Package program has the command line of mayfly and of mayfly-full: a file for each command. Main
// runs it with the parts of one of them.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/command"
)

// commands are the commands that both programs have: one field for each, the most used first. The
// group "Most used" has six commands in both programs.
type commands struct {
	Serve    serveCommand    `cmd:"" env:"short" group:"Most used" help:"Serve the DynamoDB API, in memory or on disk."`
	Demo     demoCommand     `cmd:"" group:"Most used" help:"Watch readings expire to the millisecond, then try the server."`
	Guard    guardCommand    `cmd:"" group:"Most used" help:"Remove expired items on time from tables at any endpoint."`
	Schedule scheduleCommand `cmd:"" group:"Most used" help:"Create, list and fire schedules (EventBridge Scheduler's API)."`
	Clock    clockCommand    `cmd:"" group:"Most used" help:"Show, freeze, set and advance a server's clock, for tests."`
	Console  consoleCommand  `cmd:"" group:"Most used" help:"Show tables, items, deadlines and schedules in a browser."`

	Check       checkCommand       `cmd:"" group:"Server" help:"Check a database directory for damage."`
	Salvage     salvageCommand     `cmd:"" group:"Server" help:"Copy the readable part of a damaged directory; list losses."`
	Backup      backupCommand      `cmd:"" group:"Server" help:"Back up a database while its server runs, once or regularly."`
	Restore     restoreCommand     `cmd:"" group:"Server" help:"Restore a backup into a new directory; list or check backups."`
	Healthcheck healthcheckCommand `cmd:"" group:"Server" help:"Report whether a server is ready, for probes of containers."`
	Reset       resetCommand       `cmd:"" group:"Server" help:"Empty a server between tests; put its clock back to the start."`
	Policy      policyCommand      `cmd:"" group:"Server" help:"Explain what the access keys of a server may do."`

	Export  exportCommand  `cmd:"" group:"Data" help:"Export a table to a directory or bucket, in Amazon's layout."`
	Import  importCommand  `cmd:"" group:"Data" help:"Import an export, DynamoDB JSON or CSV into a table."`
	Copy    copyCommand    `cmd:"" group:"Data" help:"Copy a table to another endpoint, or under another name."`
	Doctor  doctorCommand  `cmd:"" group:"Data" help:"Find TTL values by which items never expire; see what is due."`
	Explain explainCommand `cmd:"" group:"Data" help:"Explain why an item does or does not expire, and when."`

	Trigger    triggerCommand    `cmd:"" group:"Schedules and triggers" help:"Call a target when items of a table change or expire."`
	Reminder   reminderCommand   `cmd:"" group:"Schedules and triggers" help:"List reminders: calls at the times that items name."`
	Deadletter deadletterCommand `cmd:"" group:"Schedules and triggers" help:"List, show, redrive and delete dead letters."`
	Recorded   recordedCommand   `cmd:"" group:"Schedules and triggers" help:"Show deliveries to targets that are not mapped."`
	Worker     workerCommand     `cmd:"" group:"Schedules and triggers" help:"Run schedules, triggers and lifecycles for another endpoint."`
}

// cli is the command line of a program with all parts.
type cli struct {
	commands
	Series    seriesCommand    `cmd:"" group:"Toolkits" help:"Time series: ingest readings, show ranges, rollups and plots."`
	Lifecycle lifecycleCommand `cmd:"" group:"Toolkits" help:"Lifecycles: entities whose states change at set times."`
	Plan      planCommand      `cmd:"" group:"Toolkits" help:"Compute what a table needs and costs, with each way to expire."`
	Bench     benchCommand     `cmd:"" group:"Server" help:"Measure this server, or any endpoint, beside two references."`
	Torture   tortureCommand   `cmd:"" group:"Server" help:"Test the laws: simulate crashes and faults, judge each answer."`

	Version versionCommand `cmd:"" group:"Other" help:"Print the version of this program."`
	Man     manCommand     `cmd:"" group:"Other" help:"Print the manual page of a command, or write all pages."`
}

// smallCLI is the command line of mayfly. It has only the names and help texts of the commands of
// mayfly-full. TestSmallNamesAll compares them with cli's: one struct would link their code.
type smallCLI struct {
	commands
	Series    elsewhere `cmd:"" group:"Toolkits" help:"Time series: ingest readings, show ranges, rollups and plots."`
	Lifecycle elsewhere `cmd:"" group:"Toolkits" help:"Lifecycles: entities whose states change at set times."`
	Plan      elsewhere `cmd:"" group:"Toolkits" help:"Compute what a table needs and costs, with each way to expire."`
	Bench     elsewhere `cmd:"" group:"Server" help:"Measure this server, or any endpoint, beside two references."`
	Torture   elsewhere `cmd:"" group:"Server" help:"Test the laws: simulate crashes and faults, judge each answer."`

	Version versionCommand `cmd:"" group:"Other" help:"Print the version of this program."`
	Man     manCommand     `cmd:"" group:"Other" help:"Print the manual page of a command, or write all pages."`
}

// elsewhere is a command of mayfly-full.
type elsewhere struct{}

func (elsewhere) Run(context.Context, streams) error { return &missingPart{"this command"} }

// AllCommands returns the command line with the commands of all parts. Only mayfly-full calls it, so
// that the linker leaves them out of mayfly.
func AllCommands() any { return new(cli) }

// streams are the outputs of a command: results go to out, everything else to err.
type streams struct {
	out, err io.Writer
}

const (
	exitOK    = 0
	exitError = 1 // the command failed
	exitUsage = 2 // the command line is wrong, or a value in it
)

// run runs one command line until it is done or ctx is, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := streams{stdout, stderr}
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-v") {
		args = []string{"version"}
	}
	args, err := fromDynamoDBLocal(args)
	if errors.Is(err, errLocalHelp) {
		_, err = io.WriteString(stdout, localHelp)
		return report(stderr, err)
	}
	if err != nil {
		return report(stderr, err)
	}
	if missing := parts.missing(args); missing != nil {
		code, err := handOver(ctx, missing, args)
		return cmp.Or(report(stderr, err), code)
	}
	parser := command.New(command.Program{Name: programName, Help: programHelp, Env: programEnv, Out: stdout, Err: stderr, Now: time.Now}, parts.commands())
	selected, err := parser.Parse(args)
	err = misusedCommand(err)
	if err != nil || selected == nil { // nil: help was printed
		return report(stderr, err)
	}
	warnExposed(stderr, parser.Exposed())
	err = selected.(runner).Run(ctx, out)
	if missing, ok := errors.AsType[*missingPart](err); ok {
		if err := checkReadable(args); err != nil {
			return report(stderr, err)
		}
		if err := os.Setenv(envStartedWarned, "yes"); err != nil {
			return report(stderr, err)
		}
		code, err := handOver(ctx, missing, args)
		return cmp.Or(report(stderr, err), code)
	}
	return report(stderr, err)
}

const (
	programName = "mayfly"
	programHelp = "A DynamoDB-compatible database in which items expire exactly at their deadlines."
	programEnv  = "MAYFLY"
)

// misusedCommand returns an error of package command with its next step and exit code.
func misusedCommand(err error) error {
	if wrong, ok := errors.AsType[*command.Usage](err); ok {
		return &advised{error: err, next: wrong.Next, exit: exitUsage}
	}
	return err
}

// runner is a command. The text of its method Help, if it has one, is part of --help.
type runner interface {
	Run(ctx context.Context, s streams) error
}

// configFlag is --config.
type configFlag = command.File

// report prints an error with its advice and returns its exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	// Package mayfly begins its errors with its name, as libraries do.
	fmt.Fprintf(stderr, "mayfly: %s\n", strings.TrimPrefix(err.Error(), "mayfly: "))
	var a *advised
	if !errors.As(err, &a) {
		return exitError
	}
	if a.next != "" {
		fmt.Fprintf(stderr, "  next: %s\n", a.next)
	}
	return cmp.Or(a.exit, exitError)
}

// warnExposed warns of secrets on the command line.
func warnExposed(stderr io.Writer, all []command.Exposed) {
	if warned {
		return
	}
	for _, e := range all {
		what := e.Flag
		if e.Password {
			what = "the password in " + e.Flag
		}
		fmt.Fprintf(stderr, "mayfly: warning: other users of this machine can read %s on the command line\n  next: set %s\n", what, e.Instead)
	}
}

// advised is an error with a next step.
type advised struct {
	error
	next string // "": none
	exit int    // exit code; 0: exitError
}

func (a *advised) Unwrap() error { return a.error }

// advise returns an error with a next step.
func advise(err error, format string, args ...any) error {
	return &advised{error: err, next: fmt.Sprintf(format, args...)}
}

// misused returns an error of the command line, such as a wrong value or contradicting flags. next
// may be empty.
func misused(err error, next string, args ...any) error {
	return &advised{error: err, next: fmt.Sprintf(next, args...), exit: exitUsage}
}
