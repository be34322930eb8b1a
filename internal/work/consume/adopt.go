package consume

import (
	"context"

	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Adopt continues the work of a consumer of the same stream that had another name: it copies the
// checkpoints, unless this consumer has a start of its own. It deletes the old rows once no worker
// uses that name. Call it before Run.
func (c *Consumer) Adopt(ctx context.Context, name string) error {
	old, err := lease.New(c.DB, name, c.Leases).Rows(ctx)
	if err != nil || len(old) == 0 {
		return err
	}
	leases := lease.New(c.DB, c.Name, c.Leases)
	rows, err := leases.Rows(ctx)
	if err != nil {
		return err
	}
	if start := old[rowStart]; start.Exists() && !rows[rowStart].Exists() {
		if old[rowLost].Exists() {
			if err := leases.Mark(ctx, rowLost); err != nil {
				return err
			}
		}
		for shard, row := range old {
			if IsShard(shard) && row.Checkpoint != "" {
				if _, err := leases.Create(ctx, lease.Row{Shard: shard, Checkpoint: row.Checkpoint, Origin: row.Origin}); err != nil {
					return err
				}
			}
		}
		// last, so that a crash before leaves everything to the next call
		if _, err := leases.Note(ctx, rowStart, start.Checkpoint); err != nil {
			return err
		}
	}
	for row := range old {
		if lease.IsCrew(row) { // workers of an older version still read under that name
			return nil
		}
	}
	return Forget(ctx, c.DB, name, c.Leases)
}
