// Package host runs schedules, triggers and reminders beside an endpoint that is elsewhere, at anything that speaks DynamoDB's API, and serves their APIs.
//
// It keeps all that it knows in tables of that endpoint, so it can be stopped and started anywhere. Several workers share the work by leases, and take over from one
// that has died.
//
// What waits for an instant is an item there with a deadline, and its expiry is the signal. So firings are as exact as the endpoint expires items: to the millisecond where it
// is mayfly, and as late as items are removed where they are removed late.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/front/routes"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/reminder"
	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/internal/work/scheduler"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

// Options says what a worker works with. DB, Streams, Clock, Region and Account must be set.
type Options struct {
	DB      *dynamodb.Client
	Streams *dynamodbstreams.Client
	Clock   trigger.Clock // real time
	Region  string        // of ARNs
	Account string        // twelve digits

	Targets   []target.Mapping // where deliveries go; they have passed resolve.Check
	Unmapped  bool             // what is to go to an ARN without a mapping is recorded, instead of refused
	CatchUp   scheduler.CatchUp
	Triggers  []trigger.Spec  // declared ones; they have passed trigger.CheckSpecs
	Reminders []reminder.Spec // the same

	// Aside, where it is not empty, names a worker that runs the declared triggers and nothing else, beside others of whom it need not know. Those of one name share the
	// triggers, and have the same targets.
	Aside string

	Credentials []sigv4.Credential // that requests must be signed with; none: any
	Leases      lease.Options
	Logger      *slog.Logger // Default: nothing is logged
}

// look is how often it is seen what other workers have changed: groups, mappings.
const look = 5 * time.Second

// Worker is schedules, triggers and reminders at an endpoint.
type Worker struct {
	o          Options
	dispatcher *deliver.Dispatcher
	scheduler  *scheduler.Scheduler
	triggers   *trigger.Triggers
	reminders  *reminder.Reminders
	server     *wire.Server
	metrics    *admin.Metrics
}

const adviceUnmapped = "map it in the file of --targets, or use --unmapped accept"

// New makes a worker. It does nothing until Run.
func New(o Options) *Worker {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Worker{o: o, metrics: admin.NewMetrics(admin.Sources{})}
	resolver := w.resolver()
	w.dispatcher = deliver.NewDispatcher(deliver.Options{
		DB: o.DB, Streams: o.Streams, Resolver: resolver, Name: o.Aside, Now: o.Clock.Now, Observe: w.delivery, Leases: o.Leases, Logger: o.Logger,
	})
	w.scheduler = scheduler.New(scheduler.Options{
		DB: o.DB, Streams: o.Streams, Now: o.Clock.Now, Region: o.Region, Account: o.Account, Dispatcher: w.dispatcher, Leases: o.Leases, CatchUp: o.CatchUp,
		Observe: w.firing, Refresh: look, Logger: o.Logger,
		Mapped: func(arn string) error {
			_, err := resolver.Resolve(arn)
			return err
		},
	})
	w.triggers = trigger.New(trigger.Options{
		DB: o.DB, Streams: o.Streams, Clock: o.Clock, Resolver: resolver, Dispatcher: w.dispatcher, Region: o.Region, Account: o.Account, Declared: o.Triggers,
		OnlyThose: o.Aside != "", Leases: o.Leases, Poll: look, Logger: o.Logger,
	})
	w.reminders = reminder.New(reminder.Options{
		DB: o.DB, Streams: o.Streams, Now: o.Clock.Now, Dispatcher: w.dispatcher, Region: o.Region, Account: o.Account, Rules: o.Reminders, Leases: o.Leases, Logger: o.Logger,
	})
	further, named := routes.Of(w.scheduler, w.triggers, nil)
	w.server = wire.New(wire.Options{Routes: further, Actions: named, HandedOnly: true, Now: o.Clock.Now, Verifier: w.verifier(), Region: o.Region, Observe: w.request, Logger: o.Logger})
	return w
}

func (w *Worker) resolver() *resolve.Resolver {
	var unmapped *deliver.Lane
	if w.o.Unmapped {
		unmapped = (&resolve.Recorder{DB: w.o.DB, Now: w.o.Clock.Now}).Lane()
	}
	own := target.Mapping{ARN: scheduler.DynamoPattern, Target: scheduler.DynamoTarget(w.o.DB), Name: "dynamodb"}
	return resolve.New(append(w.o.Targets[:len(w.o.Targets):len(w.o.Targets)], own), unmapped, adviceUnmapped)
}

func (w *Worker) verifier() *sigv4.Verifier {
	if len(w.o.Credentials) == 0 {
		return nil
	}
	return sigv4.NewVerifier(w.o.Credentials...)
}

// Run works until ctx is done, or a part of it has stopped for good.
func (w *Worker) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	run := func(what string, part func(context.Context) error) {
		running.Go(func() {
			defer cancel()
			if err := part(ctx); err != nil && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, fmt.Errorf("%s have stopped: %w", what, err))
			}
		})
	}
	run("deliveries", w.dispatcher.Run)
	run("triggers", w.triggers.Run)
	if w.o.Aside == "" {
		run("schedules", w.scheduler.Run)
		run("reminders", w.reminders.Run)
	}
	running.Wait()
	return errors.Join(failed...)
}

// Handler serves the APIs of schedules, rules and triggers, and beside them /healthz, /readyz, /metrics and the clock, which cannot be moved.
func (w *Worker) Handler() http.Handler {
	health := admin.Handler(admin.Options{
		Metrics: w.metrics, Signed: w.server.Signed,
		Clock: admin.Clock{State: func() admin.ClockState { return admin.ClockState{Now: w.o.Clock.Now(), Rate: 1} }},
	})
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if admin.Serves(r.URL.Path) {
			health.ServeHTTP(out, r)
			return
		}
		w.server.ServeHTTP(out, r)
	})
}

// request counts an answered request.
func (w *Worker) request(operation string, _ int, code string, took time.Duration) {
	w.metrics.Request(operation, code, took)
}

// delivery counts what becomes of a delivery.
func (w *Worker) delivery(e deliver.Event) {
	w.metrics.Delivery(admin.DeliveryEvent{Event: e.What.String(), Group: e.Group, Code: e.Code, Attempt: e.Attempt, Lateness: e.Lateness})
}

// firing counts what becomes of a schedule.
func (w *Worker) firing(e scheduler.Event) {
	w.metrics.Delivery(admin.DeliveryEvent{Event: e.What.String(), Group: e.Group, Lateness: e.Lateness})
}
