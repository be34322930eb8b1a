package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard"
)

type guardInitCommand struct {
	Table     string `help:"Table that gets the index." required:"" placeholder:"NAME"`
	Attribute string `help:"TTL attribute. Default: that of the table's own TTL." placeholder:"NAME"`
	Version   string `name:"version-attribute" help:"Attribute that the index has to hold besides, for removals that are conditional on it." placeholder:"NAME"`

	Index       string        `help:"Index. Default: the one that has the shape, else named after its partition key." placeholder:"NAME"`
	Key         string        `help:"Attribute that is the index's partition key. Default: that of the index that there is, else expirationShard or expirationWindow." placeholder:"NAME"`
	Granularity time.Duration `help:"Length of the windows that the partition key holds, such as 1m: whole seconds, up to 24h. Default: none, and it holds shards alone." placeholder:"TIME"`
	Shards      int           `help:"Number of shards, up to 10,000. Default: 4, or with windows 1." placeholder:"N"`

	Segments int     `help:"Into how many parts the scan is divided." default:"4"`
	MaxRCU   float64 `name:"max-rcu" help:"Read units a second that the scan consumes at most." default:"100"`
	MaxWCU   float64 `name:"max-wcu" help:"Write units a second that the backfill consumes at most." default:"500"`
	DryRun   bool    `help:"Make and write nothing; say what would be."`
	JSON     bool    `name:"json" help:"Print the report as JSON."`
	endpointFlags
	logFlags
}

// Help is the part of --help behind the flags.
func (guardInitCommand) Help() string {
	return `Examples:

    mayfly guard init --endpoint aws --table orders --dry-run
    mayfly guard init --endpoint aws --table orders --shards 8
    mayfly guard init --table orders --attribute ttl --granularity 1m

It makes or checks the index of the index strategy, waits until that can be used, and gives each item that has a TTL its
place in it. It may be stopped, and goes on then. Teach the writers first: docs/guard-index.md.`
}

// Run makes the index ready.
func (c guardInitCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	p := &initProgress{bar: newBar(s.err), s: s, began: time.Now()}
	report, err := guard.Init(ctx, guard.InitOptions{
		DB: e.dynamodb(), Table: c.Table, Attribute: c.Attribute, Version: c.Version, IndexName: c.Index, Key: c.Key, Granularity: c.Granularity, Shards: c.Shards,
		Segments: c.Segments, MaxRCU: c.MaxRCU, MaxWCU: c.MaxWCU, DryRun: c.DryRun, Logger: c.logger(s.err),
	}, p.show)
	p.bar.clear()
	if ctx.Err() != nil {
		return advise(fmt.Errorf("interrupted: %d items were read and %d written", report.Scanned, report.Written), "run it again: it goes on from there")
	}
	if p := (*guard.Problem)(nil); err != nil && !errors.As(err, &p) && report.Index == "" {
		return misusedOptions(err, "mayfly guard init")
	}
	if err != nil {
		return e.adviseGuard(err)
	}
	if c.JSON {
		encoder := json.NewEncoder(s.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	c.tell(s, report)
	return nil
}

func (c guardInitCommand) tell(s streams, r guard.InitReport) {
	made, gave := "is there", "got their place in it"
	switch {
	case r.Created && c.DryRun:
		made = "would be made"
	case r.Created:
		made = "was made"
	}
	if c.DryRun {
		gave = "would get their place in it"
	}
	fmt.Fprintf(s.out, "index %s: partition key %s holds %s; it %s\n", r.Index, r.Key, r.Layout, made)
	fmt.Fprintf(s.out, "%d items read: %d %s, %d had it, %d have no TTL\n", r.Scanned, r.Written, gave, r.Right, r.Without)
	for _, x := range []struct {
		n    int64
		what string
	}{
		{r.Bad, "have a TTL that is no number of epoch seconds, and stay as they are"}, {r.Renewed, "were renewed meanwhile, and were looked at again"},
		{r.Failed, "could not be written: see the log"},
	} {
		if x.n > 0 {
			fmt.Fprintf(s.out, "%d %s\n", x.n, x.what)
		}
	}
}

// initProgress draws a bar on a terminal, and elsewhere writes a line now and then.
type initProgress struct {
	bar   bar
	s     streams
	mu    sync.Mutex
	began time.Time // of the run, and then of the last line
}

func (p *initProgress) show(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("%d of about %d items", done, max(total, done))
	if p.bar.terminal != nil {
		p.bar.draw(done, max(total, done), text)
		return
	}
	if time.Since(p.began) >= progressEvery {
		p.began = time.Now()
		fmt.Fprintln(p.s.err, text)
	}
}
