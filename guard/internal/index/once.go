package index

import (
	"context"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// oneSweep is a single run for scheduled calls: it removes all items due between the watermarks and
// an instant.
type oneSweep struct {
	*Strategy
	at int64 // ms; later deadlines are for the next run
}

const endedPause = 5 * time.Millisecond // between two checks that armed deadlines have ended

// Once sweeps the index for the deadlines up to an instant in ms, and returns when the removals
// have ended, or ctx is done. complete is false if the next run has to continue.
func Once(ctx context.Context, e *strategy.Env, options Options, at int64) (complete bool, err error) {
	o := &oneSweep{New(e, options), at}
	o.PatrolEvery = 0 // the continuous one; see patrolOnce
	complete, err = o.run(ctx)
	err = strategy.EndOf(ctx, err)
	return complete && err == nil, err
}

func (o *oneSweep) run(ctx context.Context) (complete bool, err error) {
	if err := o.find(); err != nil {
		return false, err
	}
	leases := o.Shares(Name)
	known, err := o.tryLayout(ctx, leases)
	if err != nil || !known { // the index is empty
		return err == nil, err
	}
	names, shards := o.divide()
	holding, end := context.WithCancel(ctx)
	defer end()
	var (
		mu   sync.Mutex
		done = map[string]bool{} // leases by name: one may be lost and taken again
	)
	err = lease.Hold(holding, leases, names, func(ctx context.Context, l *lease.Lease) error {
		if err := o.sweepLease(ctx, leases, l, shards[l.Shard()]); err != nil {
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
	complete = len(done) == len(names)
	if complete && err == nil && ctx.Err() == nil {
		err = o.patrolOnce(ctx, leases)
	}
	return complete, err
}

// sweepLease sweeps the shards of a lease from its watermark to the instant, and returns when their
// removals have ended.
func (o *oneSweep) sweepLease(ctx context.Context, leases *lease.Leases, l *lease.Lease, shards []string) error {
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
func (o *oneSweep) awaitEnded(ctx context.Context, seen *strategy.Sightings) error {
	for seen.Pending() <= o.at {
		clock.Pause(endedPause, ctx.Done())
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
