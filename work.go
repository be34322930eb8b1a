package mayfly

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/front/routes"
	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/reminder"
	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/internal/work/scheduler"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

// work is what a database does beside answering: it fires schedules and reminders, runs triggers, and brings deliveries to their targets. Until there is something of the
// kind it has no goroutine and no table.
type work struct {
	db         *DB
	dispatcher *deliver.Dispatcher
	scheduler  *scheduler.Scheduler
	triggers   *trigger.Triggers
	reminders  *reminder.Reminders
	retries    chan struct{} // closed when the database knows of the consumer of what was parked before

	first   sync.Mutex  // held by what may be the first work of all, until it has begun
	begun   atomic.Bool // set under mu
	failure atomic.Pointer[error]
	mu      struct {
		sync.Mutex
		over bool // nothing begins any more
	}
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newWork(db *DB) *work {
	o := db.options
	w := &work{db: db, retries: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	resolver := w.resolver()
	w.dispatcher = deliver.NewDispatcher(deliver.Options{
		DB: db.dynamoDB, Streams: db.streams, Resolver: resolver, Now: db.Clock().Now, Observe: db.delivery,
		Leases: lease.Options{Exclusive: true}, Hooks: w.hooksOfRetries(), Logger: o.Logger,
	})
	w.scheduler = scheduler.New(scheduler.Options{
		DB: db.dynamoDB, Streams: db.streams, Now: db.Clock().Now, Region: o.Region, Account: o.Account, Dispatcher: w.dispatcher,
		Leases: lease.Options{Exclusive: true}, Hooks: db.hooks(), Observe: db.firing, Refuse: w.refuse, CatchUp: o.CatchUp, Logger: o.Logger,
		Mapped: func(arn string) error {
			_, err := resolver.Resolve(arn)
			return err
		},
	})
	w.triggers = trigger.New(trigger.Options{
		DB: db.dynamoDB, Streams: db.streams, Clock: waitingClock{db.Clock()}, Resolver: resolver, Dispatcher: w.dispatcher, Region: o.Region, Account: o.Account,
		Declared: o.Triggers, Leases: lease.Options{Exclusive: true}, Hooks: db.hooks(), Logger: o.Logger,
	})
	w.reminders = reminder.New(reminder.Options{
		DB: db.dynamoDB, Streams: db.streams, Now: db.Clock().Now, Dispatcher: w.dispatcher, Region: o.Region, Account: o.Account, Rules: o.Reminders,
		Leases: lease.Options{Exclusive: true}, Hooks: db.hooks(), Logger: o.Logger,
	})
	return w
}

// waitingClock is the database's clock for those who wait by it.
type waitingClock struct{ *Clock }

// Sleep waits for an instant in ms since the epoch: see clock.Clock.
func (c waitingClock) Sleep(ctx context.Context, until int64, wake <-chan struct{}) error {
	return c.engine.Clock().Sleep(ctx, until, wake)
}

// adviceUnmapped says what to do about an ARN that leads nowhere.
const adviceUnmapped = `map one (option Targets, or mayfly serve --targets FILE), or record such deliveries (option Unmapped, or --unmapped accept)`

// resolver finds the targets of deliveries: the program's mappings, and DynamoDB's own operations on this database.
func (w *work) resolver() *resolve.Resolver {
	var unmapped *deliver.Lane
	if w.db.options.Unmapped == UnmappedAccept {
		unmapped = (&resolve.Recorder{DB: w.db.dynamoDB, Now: w.db.Clock().Now}).Lane()
	}
	own := target.Mapping{ARN: scheduler.DynamoPattern, Target: scheduler.DynamoTarget(w.db.dynamoDB), Name: "dynamodb"}
	return resolve.New(append(w.db.options.Targets[:len(w.db.options.Targets):len(w.db.options.Targets)], own), unmapped, adviceUnmapped)
}

// hooksOfRetries are the database's hooks, and note besides that the consumer of what is parked has registered. Where nothing was ever parked there is none.
func (w *work) hooksOfRetries() deliver.Hooks {
	hooks, once := w.db.hooks(), sync.OnceFunc(func() { close(w.retries) })
	if !w.db.hasTable(deliver.RetriesTable) {
		once()
	}
	return deliver.Hooks{Hold: func(consumer, streamARN string) deliver.Progress {
		p := hooks.Hold(consumer, streamARN)
		once()
		return p
	}}
}

// errHeld is why no new schedules are taken.
var errHeld = errors.New("the streams keep the most that they may for late deliveries; new schedules are refused until some are made")

// refuse says why no new schedules are taken; nil: they are.
func (w *work) refuse() error {
	if w.db.engine.HoldsFull() {
		return errHeld
	}
	return nil
}

// tablesOwn is what the names of all tables begin with that are mayfly's own.
const tablesOwn = "mayfly."

// tablesOfWork are what the names of the tables begin with in which there is work. Whoever has none of them has none.
var tablesOfWork = []string{"mayfly.schedule", "mayfly.rules", trigger.TableName, deliver.RetriesTable}

// hasTable reports whether there is a table whose name is one of those, or goes on behind it.
func (db *DB) hasTable(names ...string) bool {
	for _, t := range db.engine.Tables() {
		for _, name := range names {
			if strings.HasPrefix(t.Desc().Name, name) {
				return true
			}
		}
	}
	return false
}

// resume goes on with what is left from before or declared, and calls registered when all that takes part is known to the database.
func (w *work) resume(registered func()) {
	if w.db.options.noWork || w.db.options.DatabaseOnly || len(w.db.options.Triggers) == 0 && len(w.db.options.Reminders) == 0 && !w.db.hasTable(tablesOfWork...) {
		registered()
		return
	}
	w.begin()
	w.running.Go(func() {
		defer registered()
		w.await(w.ctx)
	})
}

// begin starts the work, if that has not happened.
func (w *work) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun.Load() || w.mu.over {
		return
	}
	w.begun.Store(true)
	w.run("deliveries", w.dispatcher.Run)
	w.run("schedules", w.scheduler.Run)
	w.run("triggers", w.triggers.Run)
	w.run("reminders", w.reminders.Run)
	w.running.Go(func() {
		select {
		case <-w.db.engine.Failed(): // there is no endpoint any more
			w.cancel()
		case <-w.ctx.Done():
		}
	})
}

// run runs a part of the work until its end. One that ends before fails the database's readiness: what it does is not done any more.
func (w *work) run(what string, run func(context.Context) error) {
	w.running.Go(func() {
		err := run(w.ctx)
		if err == nil || w.ctx.Err() != nil {
			return
		}
		err = fmt.Errorf("%s have stopped: %w", what, err)
		w.failure.CompareAndSwap(nil, &err)
		w.db.options.Logger.Error("a part of the database has stopped", "error", err)
	})
}

// await waits until the database knows of all consumers that there were to be when the work began.
func (w *work) await(ctx context.Context) {
	for _, held := range []<-chan struct{}{w.retries, w.scheduler.Ready(), w.triggers.Ready(), w.reminders.Ready()} {
		select {
		case <-held:
		case <-ctx.Done():
			return
		case <-w.ctx.Done():
			return
		}
	}
}

// restoreLimit is how long the clock waits for a table that is made again.
const restoreLimit = 30 * time.Second

// switchedOff makes what somebody has switched off of a table that the work rests on again. An advance of the clock waits for it, until the table is read again.
func (w *work) switchedOff(table string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !strings.HasPrefix(table, tablesOwn) || !w.begun.Load() || w.mu.over {
		return
	}
	registered := w.db.engine.HoldAll()
	w.running.Go(func() {
		defer registered()
		ctx, cancel := context.WithTimeout(w.ctx, restoreLimit)
		defer cancel()
		for _, restore := range []func(context.Context, string) (string, error){w.dispatcher.RestoreTable, w.scheduler.RestoreTable, w.reminders.RestoreTable} {
			arn, err := restore(ctx, table)
			if err != nil && w.ctx.Err() == nil {
				w.db.options.Logger.Error("a table that deliveries need could not be created again", "table", table, "error", err)
			}
			for pause := time.Millisecond; arn != "" && !w.db.service.HasConsumer(arn) && ctx.Err() == nil; pause = min(2*pause, time.Second) {
				clock.Pause(pause, ctx.Done())
			}
		}
	})
}

// end ends the work, and waits for it. Nothing begins afterwards.
func (w *work) end() {
	w.mu.Lock()
	w.mu.over = true
	w.mu.Unlock()
	w.cancel()
	w.running.Wait()
}

// err says which part of the work has stopped; nil: none has.
func (w *work) err() error {
	if failure := w.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// making makes an operation one that may leave the first work of all: once it has succeeded the work goes on, and the database knows of all who take part in it
// before the answer is given. So whoever moves the clock then has it wait for them.
func (w *work) making(do routes.Do) routes.Do {
	return func(ctx context.Context, c *wire.Call) (any, error) {
		if w.begun.Load() {
			return do(ctx, c)
		}
		w.first.Lock()
		defer w.first.Unlock()
		out, err := do(ctx, c)
		if err == nil {
			w.begin()
			w.await(ctx)
		}
		return out, err
	}
}

// delivery counts what becomes of a delivery.
func (db *DB) delivery(e deliver.Event) {
	db.metrics.Delivery(admin.DeliveryEvent{Event: e.What.String(), Group: e.Group, Code: e.Code, Attempt: e.Attempt, Lateness: e.Lateness})
}

// firing counts what becomes of a schedule.
func (db *DB) firing(e scheduler.Event) {
	db.metrics.Delivery(admin.DeliveryEvent{Event: e.What.String(), Group: e.Group, Lateness: e.Lateness})
}
