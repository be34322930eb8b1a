package host

import (
	"context"
	"net/http"
	"time"

	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/wire"
)

// poll is the interval at which a worker looks for changes by others: groups, mappings.
const poll = 5 * time.Second

// Worker is the work of an endpoint elsewhere, with the APIs of schedules, rules and triggers.
type Worker struct {
	host    *Host
	server  *wire.Server
	metrics *admin.Metrics
	now     func() time.Time
}

// NewWorker returns a worker. Requests must be signed with one of the keys, if there are any: nil
// means none. The worker polls and counts by itself, so Options.Poll and Observe have no effect. It does
// nothing until Run.
func NewWorker(o Options, ring *keys.Ring) *Worker {
	w := &Worker{metrics: admin.NewMetrics(admin.Sources{}), now: o.Clock.Now}
	o.Poll, o.Observe = poll, w.metrics.Delivery
	w.host = New(o)
	further, named := w.host.Operations(nil)
	w.server = wire.New(wire.Options{
		Routes: further, Actions: named, MountedOnly: true, Now: w.now, Keys: ring, Audit: o.Audit,
		Account: o.Account, Pages: o.Pages, Observe: w.request, Logger: w.host.o.Logger,
	})
	return w
}

// Run works until ctx is done, or a part of the work has stopped for good.
func (w *Worker) Run(ctx context.Context) error { return w.host.Run(ctx) }

// Handler serves the APIs, and beside them /healthz, /readyz, /metrics and the clock, which cannot
// be moved.
func (w *Worker) Handler() http.Handler {
	o := admin.Options{
		Metrics: w.metrics, MetricsPublic: w.host.o.MetricsPublic, Hosts: w.server.Pages.Hosts,
		Clock: admin.Clock{State: func() admin.ClockState { return admin.ClockState{Now: w.now(), Rate: 1} }},
	}
	if w.server.Keys != nil {
		o.Permitted = w.server.Permitted
	}
	health := admin.Handler(o)
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if admin.Serves(r.URL.Path) {
			health.ServeHTTP(out, r)
			return
		}
		w.server.ServeHTTP(out, r)
	})
}

func (w *Worker) request(operation string, _ int, code string, took time.Duration) {
	w.metrics.Request(operation, code, took)
}
