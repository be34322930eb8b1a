package bench

import (
	"context"
	"fmt"
	"time"
)

// timers is a server with deadlines but without DynamoDB's API. Its entries have no images, so its
// figures compare lateness, not work.
type timers interface {
	// describe returns the server for the report.
	describe() Endpoint
	// entries returns the name of its entries, and their difference from items.
	entries() (name, difference string)
	// arm stores an entry for each item of a plan. It calls removed for each one that the server
	// announces, until stop.
	arm(ctx context.Context, p *plan, removed func(item int, at time.Time)) (stop func(), err error)
}

// callable is a server with other calls.
type callable interface {
	// startForeground makes calls to two operations until stop, each at a rate.
	startForeground(ctx context.Context, perS int) (*foreground, error)
}

// timers returns the servers whose lateness the run compares with the endpoints'.
func (r *run) timers() (list []timers) {
	if !r.runs(experimentExpiry) && !r.runs(experimentBurst) {
		return nil
	}
	if r.nats != nil {
		list = append(list, natsTimers{r.nats})
	}
	if r.redis != nil {
		list = append(list, r.redis)
	}
	return list
}

// timerServer measures the lateness of timers.
type timerServer struct{ timers }

// timersPerS is a first estimate of the rate of storing entries.
const timersPerS = 20_000

// expire runs an experiment. If storing the entries takes too long, it starts again with a lower
// estimate of the rate. A server without other calls has only one burst.
func (t timerServer) expire(ctx context.Context, r *run, x expiryExperiment) (found *Expiry, err error) {
	if _, calls := t.timers.(callable); !calls {
		if x.callsPerS > callsFew {
			return nil, nil
		}
		x.callsPerS = 0
	}
	name, difference := t.entries()
	found = x.newExpiry(t.describe().Name, x.items, name, difference)
	r.step("%s at %s: %d %s %s", x.name, found.Target, x.items, name, x.due(x.items))
	err = whenPrepared(timersPerS, func(perS float64) error { return t.expireOnce(ctx, r, x, found, perS) })
	if err != nil {
		return nil, fmt.Errorf("at %s: %w", found.Target, err)
	}
	r.result("%s", found.line())
	return found, nil
}

func (t timerServer) expireOnce(ctx context.Context, r *run, x expiryExperiment, found *Expiry, perS float64) error {
	p, idle := x.plan(), x.idle(r.Quick)
	w := newWatch(p)
	p.start(p.items, perS)
	p.first = p.first.Add(idle)
	stop, err := t.arm(ctx, p, w.removed)
	if err != nil {
		return err
	}
	defer stop()
	var calls *foreground
	if x.callsPerS > 0 {
		if calls, err = t.timers.(callable).startForeground(ctx, x.callsPerS); err != nil {
			return err
		}
		defer calls.stop()
	}
	if time.Now().After(p.first.Add(-idle)) {
		return errPreparing
	}
	calm, err := calls.idlePhase(ctx, p.first, idle)
	if err == nil {
		err = w.await(ctx, expiryGrace)
	}
	if err != nil {
		return err
	}
	during := calls.phase()
	found.Stream, found.ReaderPerS = w.summary(p.last()), w.perS()
	found.Early, found.Twice, found.Lost = w.faults()
	found.Foreground = calls.figures(calm, during)
	r.callErrors(found, calm, during)
	return nil
}
