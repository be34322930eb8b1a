package program

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mayflydb/mayfly/internal/when"
)

type seriesShardsCommand struct {
	seriesFlags
	Device string `arg:"" help:"The device."`
	Count  int    `arg:"" optional:"" help:"New number of partitions, 1 to 100."`
	JSON   bool   `name:"json" help:"Print it as JSON."`
}

func (seriesShardsCommand) Help() string {
	return `Examples:

    mayfly series shards weather roof
    mayfly series shards weather roof 4

Writers raise the number of shards of a hot device themselves, up to 16. Readers learn a higher number before writers use it. After a lower one they read the old
shards until retention has emptied them.`
}

// Run shows or changes a shard count.
func (c seriesShardsCommand) Run(ctx context.Context, s streams) error {
	e, series, err := c.openSeries(ctx)
	if err != nil {
		return err
	}
	n, err := series.Shards(ctx, c.Device)
	if err == nil && c.Count != 0 {
		n, err = series.SetShards(ctx, c.Device, c.Count)
	}
	if err != nil {
		return e.adviseSeries(err, c.Name)
	}
	if c.JSON {
		return json.NewEncoder(s.out).Encode(n)
	}
	now := e.now(ctx)
	fmt.Fprintf(s.out, "%s: writers use %d, readers read %d\n", c.Device, n.Writers(now), n.Readers(now))
	if now.Before(n.NextAt) {
		fmt.Fprintf(s.out, "writers use %d from %s on\n", n.Next, when.UTC(n.NextAt))
	}
	if n.Readers(now) > max(n.Count, n.Next) && !n.AskedEnds.IsZero() {
		fmt.Fprintf(s.out, "readers read %d from %s on, when retention has emptied the others\n", max(n.Count, n.Next), when.UTC(n.AskedEnds))
	}
	return nil
}
