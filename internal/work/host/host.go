// Package host runs all work of an endpoint: the courier of deliveries, schedules, triggers and
// reminders.
//
// The embedded database hosts its own work. A Worker hosts the work of an endpoint elsewhere, and
// serves the APIs of schedules, rules and triggers beside it. All state is in tables at the
// endpoint, so a worker can stop and start anywhere. Several workers share the work by leases, and
// take over the work of one that died.
//
// Anything that waits for an instant is an item with a deadline, and its expiry is the signal. So
// firings are exactly as punctual as the endpoint's expiry.
package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/front/audit"
	"github.com/mayflydb/mayfly/internal/front/browser"
	"github.com/mayflydb/mayfly/internal/front/routes"
	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/work/autoscale"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/reminder"
	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/internal/work/scheduler"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

// Options describes the work of an endpoint. DB, Streams, Clock, Region and Account must be set.
type Options struct {
	DB      *dynamodb.Client
	Streams *dynamodbstreams.Client
	Clock   trigger.Clock // the endpoint's time
	Region  string        // of ARNs
	Account string        // twelve digits

	Targets   []target.Mapping  // of deliveries; resolve.Check has accepted them
	Unmapped  bool              // records deliveries to an ARN without a mapping; default: refuses them
	Advice    string            // ends the error about an ARN without a mapping. Default: names the flags of mayfly worker
	CatchUp   scheduler.CatchUp // of schedules after downtime
	Triggers  []trigger.Spec    // declared triggers; trigger.CheckSpecs has accepted them
	Reminders []reminder.Spec   // declared reminders; reminder.CheckSpecs has accepted them

	Feeds trigger.Feeds // of the embedded database, for Kinesis destinations

	// Scaling is the autoscaling of tables. Its Units, Begun and Existing are set, and the host sets
	// the rest. Nil: it is not served.
	Scaling *autoscale.Options

	// Aside names a host that runs the declared triggers only, beside others that it need not know.
	// Hosts of one name share the triggers and must have the same targets. Default: all work runs.
	Aside string

	Pages         browser.Rules // of a Worker, for web pages that call it
	Audit         *audit.Log    // of a Worker's requests; nil: none
	MetricsPublic bool          // a Worker with keys serves its metrics without one

	Leases   lease.Options
	Registry consume.Registry          // the embedded database's
	Parked   bool                      // deliveries were parked before: Await waits for the consumer of those
	Poll     time.Duration             // interval of the search for changes by other workers. Default: never
	Refuse   func() error              // returns why new schedules are refused. Default: they are not
	Observe  func(admin.DeliveryEvent) // counts deliveries and firings. Default: they are not counted
	Logger   *slog.Logger              // Default: nothing is logged

	// Failed receives the error of a part that stopped for good; the other parts go on.
	// Default: the first such error ends all parts, and Run returns it.
	Failed func(error)
}

func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Observe == nil {
		o.Observe = func(admin.DeliveryEvent) {}
	}
	o.Advice = cmp.Or(o.Advice, "map it in the file of --targets, or use --unmapped accept")
	return o
}

// Host is the work of one endpoint.
type Host struct {
	o         Options
	courier   *deliver.Courier
	scheduler *scheduler.Scheduler
	triggers  *trigger.Triggers
	reminders *reminder.Reminders
	scaler    *autoscale.Scaler // nil: not served
}

// New returns the work of an endpoint. It does nothing until Run.
func New(o Options) *Host {
	o = o.withDefaults()
	h := &Host{o: o}
	resolver := h.resolver()
	h.courier = deliver.NewCourier(deliver.Options{
		DB: o.DB, Streams: o.Streams, Resolver: resolver, Name: o.Aside, Now: o.Clock.Now,
		Observe: h.delivery, Leases: o.Leases, Registry: o.Registry, Logger: o.Logger,
	})
	h.scheduler = scheduler.New(scheduler.Options{
		DB: o.DB, Streams: o.Streams, Now: o.Clock.Now, Region: o.Region, Account: o.Account,
		Courier: h.courier, Leases: o.Leases, Registry: o.Registry, CatchUp: o.CatchUp,
		Observe: h.firing, Refuse: o.Refuse, Refresh: o.Poll, Logger: o.Logger,
		Mapped: func(arn string) error { return mapped(resolver, arn) },
	})
	h.triggers = trigger.New(trigger.Options{
		DB: o.DB, Streams: o.Streams, Clock: o.Clock, Resolver: resolver, Courier: h.courier,
		Region: o.Region, Account: o.Account, Declared: o.Triggers, OnlyThose: o.Aside != "", Feeds: o.Feeds,
		Leases: o.Leases, Registry: o.Registry, Poll: o.Poll, Logger: o.Logger,
	})
	h.reminders = reminder.New(reminder.Options{
		DB: o.DB, Streams: o.Streams, Now: o.Clock.Now, Courier: h.courier, Region: o.Region,
		Account: o.Account, Rules: o.Reminders, Leases: o.Leases, Registry: o.Registry, Logger: o.Logger,
	})
	if o.Scaling != nil {
		scaling := *o.Scaling
		scaling.DB, scaling.Streams, scaling.Now, scaling.Region, scaling.Account = o.DB, o.Streams, o.Clock.Now, o.Region, o.Account
		scaling.Leases, scaling.Registry, scaling.Logger = o.Leases, o.Registry, o.Logger
		h.scaler = autoscale.New(scaling)
	}
	return h
}

// FollowFeeds waits until each feed has a reader, or ctx is done.
func (h *Host) FollowFeeds(ctx context.Context) { h.triggers.FollowFeeds(ctx) }

// Scaler returns the autoscaling of tables, or nil.
func (h *Host) Scaler() *autoscale.Scaler { return h.scaler }

// mapped returns an error that names the ARN if it has no target. A schedule has two ARNs, of its
// target and of its queue.
func mapped(resolver deliver.Resolver, arn string) error {
	_, err := resolver.Resolve(arn)
	switch {
	case err == nil:
		return nil
	case strings.Contains(arn, ":aws-sdk:"):
		return fmt.Errorf("%s: %w; a target of kind aws makes only the calls in docs/targets-aws.md, and any call can be mapped to a webhook or a command", arn, err)
	}
	return fmt.Errorf("%s: %w", arn, err)
}

// resolver finds the targets of deliveries: the mappings, and DynamoDB's operations at the
// endpoint.
func (h *Host) resolver() *resolve.Resolver {
	var unmapped *deliver.Lane
	if h.o.Unmapped {
		unmapped = (&resolve.Recorder{DB: h.o.DB, Now: h.o.Clock.Now}).Lane()
	}
	own := target.Mapping{
		ARN: scheduler.DynamoPattern, Target: scheduler.DynamoTarget(h.o.DB), Name: "dynamodb",
	}
	return resolve.New(append(slices.Clip(h.o.Targets), own), unmapped, h.o.Advice)
}

// Run works until ctx is done, or a part has stopped for good; see Options.Failed.
func (h *Host) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	run := func(what string, part func(context.Context) error) {
		running.Go(func() {
			err := part(ctx)
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("%s have stopped: %w", what, err)
				if h.o.Failed != nil {
					h.o.Failed(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
			if h.o.Failed == nil {
				cancel()
			}
		})
	}
	run("deliveries", h.courier.Run)
	run("triggers", h.triggers.Run)
	if h.o.Aside == "" {
		run("schedules", h.scheduler.Run)
		run("reminders", h.reminders.Run)
	}
	if h.scaler != nil {
		run("scaling policies", h.scaler.Run)
	}
	running.Wait()
	return errors.Join(failed...)
}

// Await waits until all consumers that were needed when Run began have registered, or ctx is done.
func (h *Host) Await(ctx context.Context) {
	needed := []<-chan struct{}{h.scheduler.Ready(), h.triggers.Ready(), h.reminders.Ready()}
	if h.o.Parked {
		needed = append(needed, h.courier.Ready())
	}
	if h.scaler != nil {
		needed = append(needed, h.scaler.Ready())
	}
	for _, ready := range needed {
		select {
		case <-ready:
		case <-ctx.Done():
			return
		}
	}
}

// RestoreTable creates a table of the work again, or enables its stream again. It returns the
// stream's ARN; "" for any other table.
func (h *Host) RestoreTable(ctx context.Context, table string) (streamARN string, err error) {
	parts := []func(context.Context, string) (string, error){h.courier.RestoreTable, h.scheduler.RestoreTable, h.reminders.RestoreTable}
	if h.scaler != nil {
		parts = append(parts, h.scaler.RestoreTable)
	}
	for _, restore := range parts {
		if streamARN, err = restore(ctx, table); streamARN != "" || err != nil {
			return streamARN, err
		}
	}
	return "", nil
}

// Operations returns the operations of schedules, rules, triggers and autoscaling for the wire; see
// routes.Operations.
func (h *Host) Operations(making func(routes.Do) routes.Do) ([]wire.Route, []wire.Action) {
	further, named := routes.Operations(h.scheduler, h.triggers, routes.Owner{Region: h.o.Region, Account: h.o.Account}, making)
	if h.scaler != nil {
		named = append(named, routes.Scaling(h.scaler, making)...)
	}
	return further, named
}

func (h *Host) delivery(e deliver.Event) {
	h.o.Observe(admin.DeliveryEvent{
		Event: e.What.String(), Group: e.Group, Code: e.Code, Attempt: e.Attempt, Lateness: e.Lateness,
	})
}

func (h *Host) firing(e scheduler.Event) {
	h.o.Observe(admin.DeliveryEvent{Event: e.What.String(), Group: e.Group, Lateness: e.Lateness})
}
