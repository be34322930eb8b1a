package program

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/guard"
)

type guardInitCommand struct {
	Table     string `help:"Table to index." required:"" placeholder:"NAME"`
	Attribute string `help:"TTL attribute. Default: the table's own TTL attribute." placeholder:"NAME"`
	Version   string `name:"version-attribute" help:"Version attribute, to be projected into the index: removals are conditional on it." placeholder:"NAME"`

	Index       string        `help:"Name of the index. Default: an existing index of the right shape, else the partition key's name followed by Index." placeholder:"NAME"`
	Key         string        `help:"Partition key of the index. Default: from the existing index, else expirationShard or expirationWindow." placeholder:"NAME"`
	Granularity time.Duration `help:"Length of a window in the partition key, such as 1m: whole seconds, up to 24h. Default: no windows, only shards." placeholder:"TIME"`
	Shards      int           `help:"Number of shards, up to 10,000. Default: 4, or 1 with windows." placeholder:"N"`

	Segments int     `help:"Number of parallel parts of the scan." default:"4"`
	MaxRCU   float64 `name:"max-rcu" help:"Most read units a second for the scan." default:"100"`
	MaxWCU   float64 `name:"max-wcu" help:"Most write units a second for the backfill." default:"500"`
	leasesFlag
	ownTableFlags
	DryRun bool `help:"Change nothing; report what would be done."`
	JSON   bool `name:"json" help:"Print the report as JSON."`
	endpointFlags
	logFlags
}

func (guardInitCommand) Help() string {
	return `Examples:

    mayfly guard init --endpoint aws --table orders --dry-run
    mayfly guard init --endpoint aws --table orders --shards 8
    mayfly guard init --table orders --attribute ttl --granularity 1m

It creates or checks the index for the index strategy, waits until it is usable, and adds every item that has a TTL.
Stop it at any time; run it again to continue. Adapt your writers first: docs/guard-index.md.`
}

// Run creates and fills the index.
func (c guardInitCommand) Run(ctx context.Context, s streams) error {
	tables, err := c.tables(c.LeasesTable, "")
	if err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	p := newProgress(s.err)
	report, err := guard.Init(ctx, guard.InitOptions{
		DB: e.DynamoDB(), Table: c.Table, Attribute: c.Attribute, Version: c.Version, IndexName: c.Index, Key: c.Key, Granularity: c.Granularity, Shards: c.Shards,
		Segments: c.Segments, MaxRCU: c.MaxRCU, MaxWCU: c.MaxWCU, DryRun: c.DryRun, Tables: tables, Logger: c.logger(s.err),
	}, func(done, total int64) {
		p.show(done, total, fmt.Sprintf("%d of about %d items", done, max(total, done)))
	})
	p.clear()
	if ctx.Err() != nil {
		return advise(fmt.Errorf("interrupted after %d items read and %d written", report.Scanned, report.Written), "run the same command again to continue")
	}
	if isOption(err) {
		return misusedOptions(err, optionFlag, "mayfly guard init --help")
	}
	if err != nil {
		return e.adviseGuard(err)
	}
	if c.JSON {
		return writeIndentedJSON(s.out, report)
	}
	c.print(s, report)
	return nil
}

func (c guardInitCommand) print(s streams, r guard.InitReport) {
	made, gave := "exists", "were added"
	switch {
	case r.Created && c.DryRun:
		made = "would be created"
	case r.Created:
		made = "was created"
	}
	if c.DryRun {
		gave = "would be added"
	}
	fmt.Fprintf(s.out, "index %s: partition key %s holds %s; it %s\n", r.Index, r.Key, r.Layout, made)
	fmt.Fprintf(s.out, "%d items read: %d %s, %d were in it, %d have no TTL\n", r.Scanned, r.Written, gave, r.Right, r.Without)
	for _, x := range []struct {
		n    int64
		what string
	}{
		{r.Bad, "have a TTL value that is not epoch seconds and were left alone"}, {r.Renewed, "were renewed meanwhile and read again"},
		{r.Failed, "could not be written; the log says why"},
	} {
		if x.n > 0 {
			fmt.Fprintf(s.out, "%d %s\n", x.n, x.what)
		}
	}
}
