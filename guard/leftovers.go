package guard

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

const leftoversLimit = 10 * time.Second

// leaveNothing deletes the leases and checkpoints of a table that was deleted while it was guarded: nobody comes back to them, since another table of the same name has another stream and is
// scanned anew. Each worker does so when it ends, so that those which end later leave nothing either. A table that was made again keeps them, as another guard may follow it by now.
func (g *Guard) leaveNothing(ctx context.Context, why error) {
	var p *Problem
	if !errors.As(why, &p) || p.Code != NoTable {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leftoversLimit)
	defer cancel()
	if _, err := g.describe(ctx); !ensure.Missing(err) { // it was made again
		return
	}
	stores := []*dynamodb.Client{g.db}
	if g.o.Deadlines != g.o.DB {
		stores = append(stores, g.o.Deadlines)
	}
	for _, db := range stores {
		for _, of := range []string{"schedule/scan/" + streamLabel(g.table.stream), "stream", "partitions", "scan", "dry-run/stream", "dry-run/partitions", "dry-run/scan", "index", "schedule", "status"} {
			if err := lease.Clear(ctx, db, "guard/"+g.table.label()+"/"+of); err != nil {
				g.log.Warn("the leases of a deleted table were not deleted; they are harmless", "table", g.o.Table, "error", err)
				return
			}
		}
	}
}
