package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// again is the pauses between attempts at an endpoint that failed, in real time.
var again = retry.Policy{First: 50 * time.Millisecond, Most: 10 * time.Second}

const (
	// interval of the search for new lifecycles, at an endpoint that does not announce changes
	searchEvery = 5 * time.Second
	courier     = "lifecycle" // its name among the couriers of the endpoint
)

// runner reads the streams of lifecycles, and hands over calls.
type runner struct {
	l       *Lifecycles
	courier *deliver.Courier
	ready   chan struct{} // closed when Run follows all lifecycles that existed at its start
	mu      struct {
		sync.Mutex
		begun     bool
		ctx       context.Context          // of Run; nil before and after
		following map[string]*timer.Timers // the transitions and calls of each lifecycle
		work      sync.WaitGroup
		failed    error
		cancel    context.CancelFunc
	}
}

func newRunner(l *Lifecycles) *runner {
	r := &runner{l: l, ready: make(chan struct{})}
	r.mu.following = map[string]*timer.Timers{}
	if l.o.Streams == nil {
		return r
	}
	r.courier = deliver.NewCourier(deliver.Options{
		DB: l.o.DB, Streams: l.o.Streams, Name: courier, Now: l.o.Now, Leases: l.leases(), Registry: l.o.Registry, Mark: l.o.Mark, Logger: l.o.Logger,
		Resolver: deliver.ResolverFunc(l.lane),
	})
	r.courier.OnEnd(originKind, l.recordOutcomes)
	return r
}

// Run makes the due transitions of all lifecycles at the endpoint, and calls their handlers, until
// ctx is done. It can be called once. Several processes may run at one endpoint with the same
// handlers, unless Options.Alone is set.
func (l *Lifecycles) Run(ctx context.Context) error {
	r := l.runner
	if l.o.Streams == nil {
		return errors.New("lifecycle: Streams must be set")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	if r.mu.begun {
		r.mu.Unlock()
		return errors.New("lifecycle: Run was called before")
	}
	r.mu.begun, r.mu.ctx, r.mu.cancel = true, ctx, cancel
	r.mu.Unlock()
	r.start("calls", r.courier.Run)
	first, pauses := true, again.Start()
	for ctx.Err() == nil {
		poll := searchEvery
		changed, looked := consume.Registry(l.o.Registry).NextChange()
		looked() // the search need not hold the clock: Ready is for that
		if changed != nil {
			poll = 0
		}
		// a deleted lifecycle may have calls under way, and may be applied again
		names, err := l.names(ctx, true)
		if err != nil {
			if ctx.Err() == nil {
				l.o.Logger.Warn("looking for lifecycles failed; trying again", "error", err, "after", pauses.Next())
				pauses.Wait(ctx)
			}
			continue
		}
		pauses.Reset()
		for _, name := range names {
			if err := r.follow(ctx, name); err != nil {
				break
			}
		}
		if first {
			first = false
			close(r.ready)
		}
		timer.Bell(nil).Wait(ctx, poll, changed)
	}
	r.mu.Lock()
	r.mu.ctx = nil
	r.mu.Unlock()
	r.mu.work.Wait()
	return r.mu.failed
}

// Ready returns a channel that closes when Run follows all lifecycles that existed at its start.
func (l *Lifecycles) Ready() <-chan struct{} { return l.runner.ready }

// start runs a part of the work. If one part fails, all end.
func (r *runner) start(name string, part func(context.Context) error) {
	ctx := r.mu.ctx
	r.mu.work.Go(func() {
		err := part(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		r.mu.failed = errors.Join(r.mu.failed, fmt.Errorf("%s have stopped: %w", name, err))
		r.mu.Unlock()
		r.mu.cancel()
	})
}

// follow starts to read a lifecycle's stream, if Run runs and does not read it yet. It returns when
// the embedded database waits for its transitions; at once if Run does not run.
func (r *runner) follow(ctx context.Context, lifecycle string) error {
	r.mu.Lock()
	t := r.mu.following[lifecycle]
	if t == nil {
		if r.mu.ctx == nil {
			r.mu.Unlock()
			return nil
		}
		t = r.timers(lifecycle)
		r.mu.following[lifecycle] = t
		r.start("transitions of "+lifecycle, t.Run)
	}
	r.mu.Unlock()
	select {
	case <-t.Ready():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// consumerOf returns the name of the consumer of a lifecycle's stream.
func consumerOf(lifecycle string) string { return "lifecycle." + lifecycle }

// timers returns the timers in a lifecycle's table: its pending transitions, and calls.
func (r *runner) timers(lifecycle string) *timer.Timers {
	l := r.l
	log := l.o.Logger.With("lifecycle", lifecycle)
	return timer.New(timer.Options{
		Name: consumerOf(lifecycle), Table: entitiesSpec(lifecycle), DB: l.o.DB, Streams: l.o.Streams, Now: l.o.Now, Leases: l.leases(),
		Registry: l.o.Registry, Mark: l.o.Mark, Logger: log, Settle: r.courier.Settle, SearchTrimmed: true,
		Fire: func(ctx context.Context, expired []timer.Firing) error { return l.fireExpired(ctx, lifecycle, expired) },
		Search: func(ctx context.Context, before time.Time) error {
			armed, called, err := l.search(ctx, lifecycle, before)
			if err == nil {
				log.Warn("stream records were lost; a scan found the changes in them", "transitions", armed, "calls", called)
			}
			return err
		},
	})
}
