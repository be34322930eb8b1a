package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/descriptor"
	"github.com/mayflydb/mayfly/internal/front/httploop"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/work/host"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/lifecycle"
)

// workFlags are the flags of worker, trigger run and lifecycle run, which run work for an endpoint.
// All processes with the same work share it by leases.
type workFlags struct {
	Lease time.Duration `help:"Time after which others take over a silent worker's share." default:"10s"`
	endpointFlags
	logFlags
}

// options adds the settings that all workers of an endpoint share to o: clients, clock, leases
// and log.
func (f workFlags) options(s streams, e *endpoint, o host.Options) host.Options {
	o.DB, o.Streams, o.Clock, o.Region = e.DynamoDB(), e.Streams(), clock.New(), e.Config.Region
	o.Leases, o.Logger = lease.Options{Duration: f.Lease}, f.logger(s.err)
	return o
}

// work runs a worker until ctx is done. With a listener, at this URL, it runs the lifecycles of the endpoint too,
// and serves the APIs of schedules, rules and triggers.
func (f workFlags) work(ctx context.Context, s streams, e *endpoint, o host.Options, l net.Listener, url string, ring *keys.Ring) error {
	o = f.options(s, e, o)
	if l == nil {
		return e.advise(host.NewWorker(o, nil).Run(ctx))
	}
	lifecycles, err := newLifecycles(o)
	if err != nil {
		return err
	}
	w := host.NewWorker(o, ring)
	serve := func(ctx context.Context) error { return serveUntil(ctx, w.Handler(), l, o.Logger) }
	fmt.Fprintf(s.out, "working for %s\nlistening on %s\n", e.name(), url)
	return e.advise(runTogether(ctx, w.Run, lifecycles.Run, serve))
}

// newLifecycles returns the lifecycles of an endpoint, to run beside other work.
func newLifecycles(o host.Options) (*lifecycle.Lifecycles, error) {
	return lifecycle.New(lifecycle.Options{
		DB: o.DB, Streams: o.Streams, Now: o.Clock.Now, Targets: o.Targets, Unmapped: o.Unmapped,
		Lease: o.Leases.Duration, Region: o.Region, Account: o.Account, Logger: o.Logger,
	})
}

// runTogether runs parts until ctx is done or one of them has ended. It returns their errors when
// all have ended.
func runTogether(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(parts))
	var running sync.WaitGroup
	for i, part := range parts {
		running.Go(func() {
			defer cancel()
			errs[i] = part(ctx)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// serveUntil answers requests until ctx is done. Requests in progress then have 5 seconds to finish.
func serveUntil(ctx context.Context, handler http.Handler, l net.Listener, log *slog.Logger) error {
	err := httploop.Serve(ctx, l, httploop.Options{
		Fallback: handler, Connections: httploop.NewConnections(descriptor.ForConnections()), Now: time.Now, Logger: log,
	})
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
