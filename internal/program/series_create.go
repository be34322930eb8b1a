package program

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/timeseries"
)

type seriesCreateCommand struct {
	seriesFlags
	Retention   span     `help:"How long a sample is kept, counted from its timestamp, such as 30d. It cannot be changed later. Default: samples are never deleted." placeholder:"TIME"`
	Index       []string `help:"Metric to index across all devices. It costs one more write for each sample with that metric. Repeatable." placeholder:"METRIC" sep:"none"`
	IndexShards int      `help:"Number of partitions for one day of such an index." default:"4"`
	Latest      bool     `help:"Keep the latest sample of each device separately. It costs one more write." default:"true" negatable:""`
	Ahead       span     `help:"How far in the future a sample's timestamp may be." default:"1h" placeholder:"TIME"`
	Cache       span     `help:"How long readers and writers cache shard counts." default:"1m" placeholder:"TIME"`
	JSON        bool     `name:"json" help:"Print the settings as JSON."`
}

func (seriesCreateCommand) Help() string {
	return `Examples:

    mayfly series create weather --retention 30d
    mayfly series create weather --retention 30d --index temperature --endpoint aws

Repeated with the same settings, it changes nothing.`
}

// Run creates a series.
func (c seriesCreateCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	e.askClock(ctx)
	series, err := timeseries.Create(ctx, e.DynamoDB(), timeseries.Spec{
		Table: c.Name, Retention: time.Duration(c.Retention), Metrics: c.Index, MetricShards: c.IndexShards, NoLatest: !c.Latest,
		Ahead: time.Duration(c.Ahead), CacheFor: time.Duration(c.Cache), Now: func() time.Time { return e.now(ctx) },
	})
	if err != nil {
		return e.adviseSeries(err, c.Name)
	}
	if lacks := series.Lacks(); lacks != "" {
		fmt.Fprintf(s.err, "mayfly: %s\n", lacks)
	}
	spec := series.Spec()
	if c.JSON {
		return writeIndentedJSON(s.out, spec)
	}
	retention := "samples are never deleted"
	if spec.Retention > 0 {
		retention = "samples are kept for " + span(spec.Retention).String()
	}
	if spec.Retention == 0 {
		fmt.Fprintf(s.err, "mayfly: without --retention, the series grows for ever, and this cannot be changed later\n  next: for another series, mayfly series create NAME --retention 30d\n")
	}
	tables := []string{spec.Table}
	if !spec.NoLatest {
		tables = append(tables, spec.LatestTable())
	}
	fmt.Fprintf(s.out, "series %s at %s: %s\n", spec.Table, e.name(), retention)
	fmt.Fprintf(s.out, "tables: %s, and %s for the settings\n", strings.Join(tables, ", "), timeseries.ConfigTable)
	for _, m := range spec.Metrics {
		fmt.Fprintf(s.out, "index across devices: %s, %d shards a day\n", m, spec.MetricShards)
	}
	return nil
}
