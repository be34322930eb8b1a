package program

import (
	"context"
	"time"
)

// BenchFlags are the flags of mayfly bench.
type BenchFlags struct {
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

// benchCommand measures servers.
type benchCommand struct {
	Run    benchRunCommand    `cmd:"" default:"withargs" help:"Measure calls, expiry, schedules and triggers. \"mayfly bench\" alone means this."`
	Expiry benchExpiryCommand `cmd:"" help:"Score how any endpoint expires items: lateness, leaks, faults."`
}

func (benchCommand) Help() string {
	return `Examples:

    mayfly bench --only put,get --connections 64
    mayfly bench expiry --endpoint http://127.0.0.1:8000

The first measures this program's server, or others by their URLs, beside two references. The second is a client that
knows nothing about the server, and scores its expiry. mayfly bench run --help shows the flags of the first.`
}

type benchRunCommand struct{ BenchFlags }

func (benchRunCommand) Help() string {
	return `Examples:

    mayfly bench
    mayfly bench run --only put,get --connections 64 --duration 2s --rounds 5
    mayfly bench --only expiry,burst
    mayfly bench --only expiry,triggers --nats nats://127.0.0.1:4222 --redis redis://127.0.0.1:6379
    mayfly bench --only schedules --pending 1000000 --merge report.json
    mayfly bench --vs dynalite@4.0.0:async=http://127.0.0.1:4567 --svg bench.svg --markdown bench.md --json > bench.json

It measures the server beside two references in the same rounds: echo, a bare net/http handler that reads the same
request and writes the same answer, and loop, a bare store that commits the same bytes with the same sync. They are
references, not limits: the server can be faster. VERSION and DURABILITY (sync, async or memory) of other endpoints
only appear in the report.

Scenarios: ` + benchScenarios + `.
Exit code 1: an answer was wrong. docs/bench.md explains the figures.`
}

// benchScenarios are the names of the scenarios, in order. Package bench has them; a test compares.
const benchScenarios = "get, query, query-index, scan, put-plain, put-no-ttl, put, put-indexed, update, batch-write, transact-write, expiry, burst, drain, " +
	"schedules, triggers, guard, start"

// Run runs the benchmark and prints the report.
func (c benchRunCommand) Run(ctx context.Context, s streams) error {
	return parts.Bench(ctx, c.BenchFlags, s.terminal())
}
