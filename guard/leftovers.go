package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/guard/internal/audit"
	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

const leftoversLimit = 10 * time.Second

// leaveNothing deletes the leases and checkpoints of a table that was deleted while it was guarded.
// They are useless: a new table of the same name has another stream and is scanned anew. Each
// worker does so at its end, so that the last one leaves nothing. A table that was created again
// keeps them, as another guard may already follow it.
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
	stores := map[*dynamodb.Client]lease.Options{g.db: {Table: g.leasesTable()}}
	if local := g.localDeadlines(); local != nil {
		stores[local] = lease.Options{}
	}
	for db, leases := range stores {
		for _, kind := range []string{"schedule/scan/" + table.StreamLabel(g.table.Stream), "stream", "partitions", "scan", "dry-run/stream", "dry-run/partitions", "dry-run/scan", "index", "schedule", "status", "first-pass", audit.Name, "dry-run/" + audit.Name} {
			for _, consumer := range g.consumers(kind) {
				if err := lease.Clear(ctx, db, consumer, leases); err != nil {
					g.log.Warn("the leases of a deleted table were not deleted; they are harmless", "table", g.o.Table, "error", err)
					return
				}
			}
		}
	}
}

// consumers returns the names under which a kind of lease is stored. The reader of a stream has the
// stream's label in its name; it had not in older versions. Each division into partitions has its
// own.
func (g *Guard) consumers(kind string) []string {
	name := "guard/" + g.table.Label() + "/" + kind
	switch kind {
	case "stream", "dry-run/stream", "schedule":
		return []string{name, name + "/" + table.StreamLabel(g.table.Stream)}
	case "partitions", "dry-run/partitions":
		names := []string{name}
		for n := 2; n <= stream.DivisionsMost; n++ {
			names = append(names, fmt.Sprint(name, "/", n))
		}
		return names
	}
	return []string{name}
}
