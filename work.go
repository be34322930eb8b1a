package mayfly

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/front/routes"
	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/sdk"
	"github.com/mayflydb/mayfly/internal/work/autoscale"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/host"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/trigger"
)

// work fires schedules and reminders, runs triggers and makes deliveries. It has no goroutine and
// no table until there is something to do.
type work struct {
	db   *DB
	host *host.Host

	// held by an operation that may create the first work, until that work has begun and its
	// consumers have registered
	first   sync.Mutex
	begun   atomic.Bool // set under mu
	failure atomic.Pointer[error]
	mu      struct {
		sync.Mutex
		over bool // nothing begins after this
	}
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newWork(db *DB) *work {
	o := db.options
	w := &work{db: db}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	tables, streams, _ := sdk.InProcess(inProcess{db: db, own: true}, o.Region)
	w.host = host.New(host.Options{
		DB: tables, Streams: streams, Clock: waitingClock{db.Clock()}, Region: o.Region, Account: o.Account,
		Targets: o.Targets, Unmapped: o.Unmapped == UnmappedAccept, Advice: adviceUnmapped, CatchUp: o.catchUp(),
		Triggers: o.triggers(), Reminders: o.reminders(), Feeds: w.feeds(o.Region),
		Leases: lease.Options{Exclusive: true}, Registry: consume.Registry(db.Registry()), Parked: db.hasTable(deliver.RetriesTable),
		Scaling: &autoscale.Options{Units: db.unitsOf, Begun: w.begun.Load, Existing: db.hasTable(autoscale.TableName)},
		Refuse:  w.refuse, Observe: db.delivery, Failed: w.fail, Logger: o.Logger,
	})
	return w
}

// waitingClock is the database's clock with the Sleep that work needs, and that users do not see.
type waitingClock struct{ *Clock }

// Sleep waits for an instant in ms since the epoch; see clock.Clock.
func (c waitingClock) Sleep(ctx context.Context, until int64, wake <-chan struct{}) error {
	return c.engine.Clock().Sleep(ctx, until, wake)
}

// adviceUnmapped ends the error about an ARN that leads nowhere.
const adviceUnmapped = `map one (option Targets, or mayfly serve --targets FILE), or record such deliveries (option Unmapped, or --unmapped accept)`

// errHeld is the reason why new schedules are refused.
var errHeld = errors.New("the streams keep the most that they may for late deliveries; new schedules are refused until some are made")

// refuse returns the reason why new schedules are refused, or nil.
func (w *work) refuse() error {
	if w.db.engine.HoldsFull() {
		return errHeld
	}
	return nil
}

// tablesOwn is the beginning of the names of all of mayfly's own tables.
const tablesOwn = "mayfly."

// tablesOfWork are the beginnings of the names of the tables that store work. A database without
// such a table has no work from before.
var tablesOfWork = []string{"mayfly.schedule", "mayfly.rules", trigger.TableName, deliver.RetriesTable, autoscale.TableName}

// hasTable reports whether the name of a table begins with one of names.
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

// resume begins the work if the options declare some, or if tables or feeds from before hold some.
// It calls registered when all consumers of that work have registered with the database; at once if
// there is no work.
func (w *work) resume(registered func()) {
	if w.db.options.noWork || w.db.options.DatabaseOnly || len(w.db.options.Triggers) == 0 && len(w.db.options.Reminders) == 0 && !w.db.hasTable(tablesOfWork...) && !w.hasFeeds() {
		registered()
		return
	}
	w.begin()
	w.running.Go(func() {
		defer registered()
		w.await(w.ctx)
	})
}

// begin starts the work, once.
func (w *work) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun.Load() || w.mu.over {
		return
	}
	w.begun.Store(true)
	w.running.Go(func() { _ = w.host.Run(w.ctx) }) // fail receives its errors
	w.running.Go(func() {
		select {
		case <-w.db.engine.Failed(): // without it there is no endpoint
			w.cancel()
		case <-w.ctx.Done():
		}
	})
}

// fail records that a part of the work has stopped for good. The database is not ready any longer.
func (w *work) fail(err error) {
	w.failure.CompareAndSwap(nil, &err)
	w.db.options.Logger.Error("a part of the database has stopped", "error", err)
}

// await waits until every consumer that the present work needs has registered with the database, or
// ctx or the work is done.
func (w *work) await(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	w.host.Await(ctx)
}

// restoreLimit is the time for which the clock waits for a table that is created again.
const restoreLimit = 30 * time.Second

// switchedOff restores a table of the work after its stream or TTL was switched off, or the table
// was deleted. An advance of the clock waits until the table is read again.
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
		arn, err := w.host.RestoreTable(ctx, table)
		if err != nil && w.ctx.Err() == nil {
			w.db.options.Logger.Error("a table that deliveries need could not be created again", "table", table, "error", err)
		}
		for pauses := (retry.Policy{First: time.Millisecond, Most: time.Second}).Start(); arn != "" && !w.db.service.HasConsumer(arn) && pauses.Wait(ctx); { // until the consumer has registered
		}
	})
}

// end ends the work and waits for its end. No work begins afterwards.
func (w *work) end() {
	w.mu.Lock()
	w.mu.over = true
	w.mu.Unlock()
	w.cancel()
	w.running.Wait()
}

// err returns the error of a part of the work that has stopped, or nil.
func (w *work) err() error {
	if failure := w.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// making wraps an operation that may create the first work. After a success it begins the work, and
// answers when all consumers have registered. So an advance of the clock after the answer waits for
// them.
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
