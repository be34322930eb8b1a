package guard

import (
	"context"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// oneSweep is the index strategy as a single run for scheduled calls: it removes all items due
// between the watermarks and an instant.
type oneSweep struct {
	*indexing
	at int64 // ms; later deadlines are for the next run
	// set by run: all shards were swept, and their due removals have ended; else the next run
	// continues
	complete bool
}

const endedPause = 5 * time.Millisecond // between two checks that armed deadlines have ended

// run returns nil when everything is done, or ctx is.
func (o *oneSweep) run(ctx context.Context) error {
	if err := o.find(); err != nil {
		return err
	}
	leases := o.g.shares(Index)
	known, err := o.tryLayout(ctx, leases)
	if err != nil {
		return endOf(ctx, err)
	}
	if !known { // the index is empty
		o.complete = true
		return nil
	}
	o.patrol = 0 // the continuous one; see patrolOnce
	names, shards := o.divide()
	holding, end := context.WithCancel(ctx)
	defer end()
	var (
		mu   sync.Mutex
		done = map[string]bool{}
	)
	err = lease.Hold(holding, leases, names, func(ctx context.Context, l *lease.Lease) error {
		if err := o.under(ctx, leases, l, shards[l.Shard()]); err != nil {
			return err
		}
		mu.Lock()
		if done[l.Shard()] = true; len(done) == len(names) {
			end()
		}
		mu.Unlock()
		<-ctx.Done() // or the lease would come back
		return nil
	})
	o.complete = len(done) == len(names)
	if o.complete && err == nil && ctx.Err() == nil {
		err = o.patrolOnce(ctx, leases)
	}
	return endOf(ctx, err)
}

// under sweeps the shards of a lease.
func (o *oneSweep) under(ctx context.Context, leases *lease.Leases, l *lease.Lease, shards []string) error {
	from, err := o.from(ctx, leases, l)
	if err != nil {
		return err
	}
	s := o.newSweeper(l, shards, from, o.at)
	o.share(1)
	defer o.share(-1)
	defer func() { s.save(context.WithoutCancel(ctx)) }()
	if err := s.catchUp(ctx, o.at); err != nil {
		return err
	}
	return o.awaitEnded(ctx, s.seen)
}

// awaitEnded waits until the armed and due deadlines have ended.
func (o *oneSweep) awaitEnded(ctx context.Context, seen *sightings) error {
	for seen.pending() <= o.at {
		clock.Pause(endedPause, ctx.Done())
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
