package full

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/program"
)

// benchFlags are the flags of mayfly bench.
type benchFlags struct{ program.BenchFlags }

// runBench runs the benchmark and prints the report.
func runBench(ctx context.Context, flags program.BenchFlags, t program.Terminal) error {
	c := benchFlags{flags}
	if c.Role == bench.RoleEcho {
		return echo(ctx, t.Out)
	}
	options, err := c.options()
	if err != nil {
		return err
	}
	whole, err := c.whole()
	if err != nil {
		return err
	}
	options.Progress = func(s bench.Step) { t.Step(s.Part, s.Total, s.Text, s.Result) }
	report, err := bench.Run(ctx, options)
	t.Clear()
	if ctx.Err() != nil {
		return errors.New("interrupted; its tables and files are removed")
	}
	if report == nil {
		return adviseBench(err, "mayfly bench run --help")
	}
	report.Command = strings.Join(append([]string{"mayfly"}, os.Args[1:]...), " ")
	if c.JSON {
		err = errors.Join(err, indented(t.Out, report))
	} else {
		err = errors.Join(err, report.WriteTable(t.Out))
	}
	if whole == nil {
		whole = report
	} else if merged := whole.Merge(report); merged != nil {
		return errors.Join(err, fmt.Errorf("%s is unchanged: %w", c.Merge, merged))
	}
	return errors.Join(err, writeFile(c.Merge, "report", func(out io.Writer) error { return indented(out, whole) }),
		writeFile(c.SVG, "charts", whole.WriteSVG), writeFile(c.Page, "page", whole.WriteMarkdown))
}

// whole returns the report that this run extends, or nil if there is none.
func (c benchFlags) whole() (*bench.Report, error) {
	if c.Merge == "" {
		return nil, nil
	}
	if err := bench.CheckMerge(c.Only); err != nil {
		return nil, program.Misuse(err, "")
	}
	text, err := os.ReadFile(c.Merge)
	if err != nil {
		return nil, program.Misuse(fmt.Errorf("--merge: %w", err), "make a report with mayfly bench --json > %s", c.Merge)
	}
	report := new(bench.Report)
	if err := json.Unmarshal(text, report); err != nil || report.Date.IsZero() {
		return nil, program.Misuse(fmt.Errorf("--merge: %s is not a report of mayfly bench", c.Merge), "make one with mayfly bench --json > FILE")
	}
	return report, nil
}

// options returns the options that the flags set. bench validates them.
func (c benchFlags) options() (bench.Options, error) {
	self, err := program.Starter()
	if err != nil {
		return bench.Options{}, fmt.Errorf("find this program: %w", err)
	}
	version, commit := program.Version()
	o := bench.Options{
		Self: []string{self}, AllowRemote: c.AllowRemote, Dir: c.Dir, Durability: c.Durability, Quick: c.Quick, Only: c.Only,
		Connections: c.Connections, Duration: c.Duration, Rounds: c.Rounds, Items: c.Items, Expiring: c.Expiring, Spread: c.Spread,
		Burst: c.Burst, Pending: c.Pending, NATS: c.NATS, Redis: c.Redis, InMemory: c.InMemory, Version: version, Commit: commit,
	}
	if c.URL != "" {
		remote := parseRemote(c.URL)
		remote.PID = c.ServerPID
		o.URL = &remote
	} else if c.ServerPID != 0 {
		return o, program.Misuse(errors.New("--server-pid works only with --url"), "set --url to the server's address")
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

// adviseBench adds the next step to an error of a run that has not begun.
func adviseBench(err error, help string) error {
	var wrong *bench.UsageError
	switch {
	case errors.Is(err, bench.ErrNotLoopback):
		return program.Advise(err, "add --allow-remote if the endpoint is yours and may be loaded to its limits")
	case errors.As(err, &wrong):
		return program.MisuseOptions(wrong.Err, help)
	}
	return err
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

// indented writes a value as JSON for people.
func indented(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// echo runs this process as the reference server with the given name.
func echo(ctx context.Context, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return bench.ServeEcho(ctx, listener, out)
}
