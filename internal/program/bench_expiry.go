package program

import (
	"context"
	"net/http"
	"time"
)

// BenchExpiryFlags are the flags of mayfly bench expiry besides the endpoint.
type BenchExpiryFlags struct {
	Name        string `help:"Name of the endpoint in the report. Default: its URL." placeholder:"NAME"`
	Configured  string `help:"What is configured at the endpoint, for the report: the period of its sweep, durability, memory." placeholder:"TEXT"`
	ServerPID   int    `name:"server-pid" help:"The server's process, whose CPU time and disk writes are shown. Default: the one that listens there." placeholder:"PID"`
	Start       string `help:"Command line that starts the server, which keeps its data. The run starts it, and kills it once to see what survives. A kill keeps what the kernel has; it does not show whether data is synced." placeholder:"COMMAND"`
	AllowRemote bool   `help:"Allow an endpoint on another machine. Use only one that you may load to its limits."`

	Only     []string      `help:"Parts to run, from the list above. Default: all." placeholder:"NAME"`
	Items    int           `help:"Number of items that expire evenly over --spread. Default: 1000." placeholder:"N"`
	Spread   time.Duration `help:"Time over which they expire, in whole seconds. Default: 10s." placeholder:"TIME"`
	AtOnce   []int         `help:"Numbers of items that expire at the same instant, measured one after the other. Default: 1000,10000,200000." placeholder:"N"`
	Pending  []int         `help:"Numbers of further items with distant deadlines beside which lateness is measured. Default: 0." placeholder:"N"`
	Renewals int           `help:"Number of items that are renewed around their deadlines. Default: 1000." placeholder:"N"`
	Load     time.Duration `help:"Longest time to write the items of one measurement, which is left out otherwise. Default: 1m." placeholder:"TIME"`
	Wait     time.Duration `help:"Longest wait for removals after the last deadline. Default: 30s." placeholder:"TIME"`
	Quick    bool          `help:"Use small numbers: a run takes about a minute, and its figures mean little."`

	JSON bool   `name:"json" help:"Print the report as JSON."`
	Page string `help:"Write the report with charts to this file, as HTML." placeholder:"FILE"`
}

type benchExpiryCommand struct {
	endpointFlags
	BenchExpiryFlags
}

func (benchExpiryCommand) Help() string {
	return `Examples:

    mayfly bench expiry --endpoint http://127.0.0.1:8000 --name mayfly
    mayfly bench expiry --endpoint http://127.0.0.1:4568 --configured "sweep each second" --json > score.json
    mayfly bench expiry --endpoint http://127.0.0.1:8000 --start "mayfly serve --data score-data" --only survival,cost

It writes items with deadlines into tables of its own, and watches them through the API of DynamoDB only. It measures
how late readers see removals, which operations still see an expired item, and what an expiration costs; and it finds
removals before the deadline, renewed items that are removed, faults of stream records, and what a kill loses.
Parts: ` + benchExpiryParts + `.
Exit code 1: the endpoint broke a promise of a server that claims durable data. docs/expiry-benchmark/README.md has the rules.`
}

// benchExpiryParts are the names of the parts, in order. Package expirybench has them; a test compares.
const benchExpiryParts = "lateness, visibility, renewals, events, calls, cost, survival"

// callHeadLimit bounds the wait for an answer, so that an endpoint that hangs ends the run.
const callHeadLimit = time.Minute

// Run scores the endpoint and prints the report.
func (c benchExpiryCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, "DYNAMODB")
	if err != nil {
		return err
	}
	const connections = 64
	e.widen(connections)
	e.tune(func(t *http.Transport) { t.ResponseHeaderTimeout = callHeadLimit })
	return parts.BenchExpiry(ctx, e.Endpoint, c.BenchExpiryFlags, s.terminal())
}
