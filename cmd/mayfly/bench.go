package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/bench"
)

type benchCommand struct {
	URL         string   `name:"url" help:"Endpoint to measure, http://host:port. Default: a server of this program, started for the run." placeholder:"[NAME[@VERSION][:DURABILITY]=]URL"`
	ServerPID   int      `name:"server-pid" help:"With --url: the server's process, whose CPU time is shown. Default: the one that listens there." placeholder:"PID"`
	Vs          []string `help:"Endpoint to compare with, measured in turn with the first. Can be given several times." placeholder:"[NAME[@VERSION][:DURABILITY]=]URL" sep:"none"`
	InMemory    bool     `help:"Also measure calls to a second server of this program, with its data in memory."`
	AllowRemote bool     `help:"Allow endpoints on other machines. Use only those that you may load to their limits."`

	Only        []string      `help:"Scenarios to run, from the list above. Default: all." placeholder:"NAME"`
	Connections []int         `help:"Numbers of connections. Default: 1,16,64." placeholder:"N"`
	Duration    time.Duration `help:"Duration of one measurement. Default: 500ms." placeholder:"TIME"`
	Rounds      int           `help:"Number of rounds. Each round runs every measurement once. Default: 3." placeholder:"N"`
	Items       int           `help:"Number of items stored before the reads. Default: 100000." placeholder:"N"`
	Expiring    int           `help:"Number of items that expire over --spread, at whole seconds and evenly. Default: 100000." placeholder:"N"`
	Spread      time.Duration `help:"Time over which they expire. Default: 30s." placeholder:"TIME"`
	Burst       int           `help:"Number of items that expire at the same instant. Default: 200000." placeholder:"N"`
	Pending     int           `help:"Number of further items with distant deadlines. Default: none." placeholder:"N"`
	NATS        string        `name:"nats" help:"NATS server with JetStream to which triggers also deliver, and whose scheduled messages expiry and burst compare. Its streams are created and removed." placeholder:"nats://HOST:PORT"`
	Redis       string        `help:"Redis server whose expiring keys expiry and burst compare. Sets notify-keyspace-events during the run." placeholder:"redis://HOST:PORT"`
	Quick       bool          `help:"Use small numbers: a run takes seconds and shows that everything works, not how fast."`

	Dir        string `help:"Directory for the data of the run, which is removed at the end. Default: the system's temporary directory." placeholder:"DIR"`
	Durability string `help:"Durability of this program's own server and of the loop: sync, async or memory." default:"sync"`

	JSON bool   `name:"json" help:"Print the report as JSON."`
	SVG  string `name:"svg" help:"Write charts to this file." placeholder:"FILE"`
	Page string `name:"markdown" help:"Write the report to this file as Markdown." placeholder:"FILE"`

	Merge string `name:"merge" help:"JSON report of an earlier run in which to replace the figures of this one. Works with the scenarios schedules, triggers, guard and start." placeholder:"FILE"`

	Role string `hidden:"" help:"Role of a process of a run."`
}

func (benchCommand) Help() string {
	return `Examples:

    mayfly bench
    mayfly bench --only put,get --connections 64 --duration 2s --rounds 5
    mayfly bench --only expiry,burst
    mayfly bench --only expiry,triggers --nats nats://127.0.0.1:4222 --redis redis://127.0.0.1:6379
    mayfly bench --only schedules --pending 1000000 --merge report.json
    mayfly bench --vs dynalite@4.0.0:async=http://127.0.0.1:4567 --svg bench.svg --markdown bench.md --json > bench.json

It measures the server beside two references in the same rounds: echo, a bare net/http handler that reads the same
request and writes the same answer, and loop, a bare store that commits the same bytes with the same sync. They are
references, not limits: the server can be faster. VERSION and DURABILITY (sync, async or memory) of other endpoints
only appear in the report.

Scenarios: ` + strings.Join(bench.ScenarioNames(), ", ") + `.
Exit code 1: an answer was wrong. docs/bench.md explains the figures.`
}

// Run runs the benchmark and prints the report.
func (c benchCommand) Run(ctx context.Context, s streams) error {
	if c.Role == bench.RoleEcho {
		return c.echo(ctx, s)
	}
	options, err := c.options()
	if err != nil {
		return err
	}
	whole, err := c.whole()
	if err != nil {
		return err
	}
	line := newBar(s.err)
	options.Progress = showSteps(s.err, line)
	report, err := bench.Run(ctx, options)
	line.clear()
	if ctx.Err() != nil {
		return errors.New("interrupted; its tables and files are removed")
	}
	if report == nil {
		return adviseBench(err)
	}
	report.Command = strings.Join(append([]string{"mayfly"}, os.Args[1:]...), " ")
	if c.JSON {
		err = errors.Join(err, writeIndentedJSON(s.out, report))
	} else {
		err = errors.Join(err, report.WriteTable(s.out))
	}
	if whole == nil {
		whole = report
	} else if merged := whole.Merge(report); merged != nil {
		return errors.Join(err, fmt.Errorf("%s is unchanged: %w", c.Merge, merged))
	}
	return errors.Join(err, writeFile(c.Merge, "report", func(out io.Writer) error { return writeIndentedJSON(out, whole) }),
		writeFile(c.SVG, "charts", whole.WriteSVG), writeFile(c.Page, "page", whole.WriteMarkdown))
}

// whole returns the report that this run extends, or nil if there is none.
func (c benchCommand) whole() (*bench.Report, error) {
	if c.Merge == "" {
		return nil, nil
	}
	if err := bench.CheckMerge(c.Only); err != nil {
		return nil, misused(err, "")
	}
	text, err := os.ReadFile(c.Merge)
	if err != nil {
		return nil, misused(fmt.Errorf("--merge: %w", err), "make a report with mayfly bench --json > %s", c.Merge)
	}
	report := new(bench.Report)
	if err := json.Unmarshal(text, report); err != nil || report.Date.IsZero() {
		return nil, misused(fmt.Errorf("--merge: %s is not a report of mayfly bench", c.Merge), "make one with mayfly bench --json > FILE")
	}
	return report, nil
}

// options returns the options that the flags set. bench validates them.
func (c benchCommand) options() (bench.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return bench.Options{}, fmt.Errorf("find this program: %w", err)
	}
	o := bench.Options{
		Self: []string{self}, AllowRemote: c.AllowRemote, Dir: c.Dir, Durability: c.Durability, Quick: c.Quick, Only: c.Only,
		Connections: c.Connections, Duration: c.Duration, Rounds: c.Rounds, Items: c.Items, Expiring: c.Expiring, Spread: c.Spread,
		Burst: c.Burst, Pending: c.Pending, NATS: c.NATS, Redis: c.Redis, InMemory: c.InMemory, Version: version(), Commit: readBuild().source(),
	}
	if c.URL != "" {
		remote := parseRemote(c.URL)
		remote.PID = c.ServerPID
		o.URL = &remote
	} else if c.ServerPID != 0 {
		return o, misused(errors.New("--server-pid works only with --url"), "set --url to the server's address")
	}
	for _, vs := range c.Vs {
		o.Versus = append(o.Versus, parseRemote(vs))
	}
	return o, nil
}

// parseRemote parses [NAME[@VERSION][:DURABILITY]=]URL.
func parseRemote(text string) bench.Remote {
	server, url, ok := strings.Cut(text, "=")
	if !ok || strings.Contains(server, "/") {
		return bench.Remote{URL: text}
	}
	server, durability, _ := strings.Cut(server, ":")
	name, version, _ := strings.Cut(server, "@")
	return bench.Remote{Name: name, URL: url, Version: version, Durability: durability}
}

func adviseBench(err error) error {
	var wrong *bench.UsageError
	switch {
	case errors.Is(err, bench.ErrNotLoopback):
		return advise(err, "add --allow-remote if the endpoint is yours and may be loaded to its limits")
	case errors.As(err, &wrong):
		return misusedOptions(wrong.Err, nil, "mayfly bench --help")
	}
	return err
}

// showSteps returns a function that shows the steps of a run: in one redrawn line on a terminal,
// otherwise in a line for each finished step.
func showSteps(out io.Writer, b bar) func(bench.Step) {
	return func(s bench.Step) {
		text := s.Text
		if s.Result != "" {
			text += ": " + s.Result
		}
		switch {
		case b.terminal != nil:
			b.draw(int64(s.Part), int64(s.Total), text)
		case s.Result != "":
			fmt.Fprintf(out, "%d/%d %s\n", s.Part, s.Total, text)
		}
	}
}

// writeFile writes a file, or nothing if the name is empty.
func writeFile(name, what string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return errors.Join(write(f), f.Close())
}

// echo runs this process as the reference server with the given name.
func (c benchCommand) echo(ctx context.Context, s streams) error {
	listener, err := listen("127.0.0.1", 0)
	if err != nil {
		return err
	}
	return bench.ServeEcho(ctx, listener, s.out)
}
