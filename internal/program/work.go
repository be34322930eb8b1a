package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
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
	o.DB, o.Streams, o.Clock, o.Region = e.dynamodb(), e.streams(), clock.New(), e.config.Region
	o.Leases, o.Logger = lease.Options{Duration: f.Lease}, f.logger(s.err)
	return o
}

// work runs a worker until ctx is done. With a listener it runs the lifecycles of the endpoint too,
// and serves the APIs of schedules, rules and triggers.
func (f workFlags) work(ctx context.Context, s streams, e *endpoint, o host.Options, l net.Listener, credentials ...sigv4.Credential) error {
	o = f.options(s, e, o)
	if l == nil {
		return e.advise(host.NewWorker(o).Run(ctx))
	}
	lifecycles, err := newLifecycles(o)
	if err != nil {
		return err
	}
	w := host.NewWorker(o, credentials...)
	serve := func(ctx context.Context) error { return serveUntil(ctx, newServer(w.Handler()), l) }
	fmt.Fprintf(s.out, "working for %s\nlistening on http://%s\n", e.name(), l.Addr())
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

func newServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 2 * time.Minute, IdleTimeout: 3 * time.Minute}
}

// serveUntil answers requests until ctx is done. Requests in progress then have 5 seconds to finish.
func serveUntil(ctx context.Context, server *http.Server, l net.Listener) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	ending, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	err := server.Shutdown(ending)
	if s := <-served; !errors.Is(s, http.ErrServerClosed) {
		err = errors.Join(err, s)
	}
	return err
}
