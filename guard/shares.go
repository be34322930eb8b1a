package guard

import (
	"context"
	"fmt"

	"github.com/mayflydb/mayfly/internal/work/lease"
)

// leasesMost is the maximum number of leases that workers share; more shards or segments share
// them.
const leasesMost = 32

// shares are the leases of a strategy's consumer.
func (g *Guard) shares(strategy Strategy) *lease.Leases {
	return lease.New(g.db, consumerName(g.table, strategy), g.leaseOptions())
}

func consumerName(t *table, strategy Strategy) string {
	return fmt.Sprintf("guard/%s/%s", t.label(), strategy)
}

// leaseOptions returns the options of this worker's leases.
func (g *Guard) leaseOptions() lease.Options {
	return lease.Options{
		Owner: g.o.Owner, Duration: g.o.Lease, Exclusive: g.o.Alone, Logger: g.log, Fatal: func(err error) bool { return g.problem("GetItem", err) != nil },
	}
}

// settled is the Settle function of guard's consumers; it does nothing. A strategy ends after the
// last removal, and Settle is called after Handle has returned. The records that are not done by
// then will not be.
func settled(context.Context, string) {}
