package mayfly

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	schedulerapi "github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// What Open runs into, for errors.Is.
var (
	ErrLocked     = kv.ErrLocked      // another process has the directory open
	ErrFormat     = engine.ErrFormat  // a newer version wrote the directory
	ErrCorrupt    = kv.ErrCorrupt     // the directory is damaged
	ErrDamaged    = kv.ErrDamaged     // the directory is damaged, and nothing in it was changed; matches ErrCorrupt too
	ErrForeign    = kv.ErrForeign     // the directory holds other files, and no database
	ErrNoSpace    = kv.ErrNoSpace     // the disk is too full to open the directory
	ErrClockAhead = engine.ErrAhead   // the directory's clock is more than a minute ahead of the machine's
	ErrBackward   = clock.ErrBackward // a clock was to go back
)

// DB is an open database. Its methods may be called from any goroutine.
type DB struct {
	options Options
	engine  *engine.Engine
	service *service.Service
	server  *wire.Server
	admin   http.Handler
	metrics *admin.Metrics
	expired atomic.Int64 // items removed by their deadlines since Open

	dynamoDB  *dynamodb.Client
	streams   *dynamodbstreams.Client
	scheduler *schedulerapi.Client
	work      *work
	changes   changes

	stop      context.CancelFunc // ends the background work
	ran       chan struct{}      // closed when it has ended
	failed    chan struct{}      // closed when the database has stopped by itself
	failure   error              // why; set before failed is closed
	closeOnce sync.Once
	closeErr  error
}

// Open opens the database in a directory, and makes it where there is none. With an empty dir it lives in memory. Items expire
// from then on; Close ends that.
//
// One process at a time can have a directory open. The errors of the package's variables say what a caller can do something about.
func Open(dir string, options Options) (*DB, error) {
	options = options.withDefaults(dir)
	if err := options.validate(dir); err != nil {
		return nil, err
	}
	db := &DB{options: options, ran: make(chan struct{}), failed: make(chan struct{})}
	store, err := engine.Open(engine.Options{
		Dir:             dir,
		FS:              options.fs,
		Durability:      options.Durability.kv(),
		CacheBytes:      options.CacheBytes,
		ReserveBytes:    options.reserve,
		Start:           options.Start,
		Frozen:          options.Frozen,
		ClockControl:    options.ClockControl == ClockControlOn,
		StreamShards:    options.Shards,
		ShardBytes:      options.ShardBytes,
		StreamRetention: options.StreamRetention,
		HoldBytes:       options.HoldBytes,
		Logger:          options.Logger,
		OnReap:          func(r engine.Reap) { db.reaped(r) },
	})
	if err != nil {
		return nil, openError(err)
	}
	db.engine = store
	db.assemble()
	err = db.service.AdoptExpiry(context.Background(), func(table string, from, to engine.Expiry) {
		options.Logger.Info("the expiry of a table's items has changed", "table", table, "from", from.String(), "to", to.String())
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mayfly: change how tables expire: %w", err), store.Close())
	}
	registered := store.HoldAll() // what the consumers need that are yet to run stays meanwhile
	ctx, stop := context.WithCancel(context.Background())
	db.stop = stop
	go db.run(ctx)
	db.work.resume(registered)
	return db, nil
}

// openError makes ErrCorrupt of what either layer calls corrupt: the store its files, the engine their content. It makes ErrFormat of a newer store.
func openError(err error) error {
	if errors.Is(err, kv.ErrNewer) {
		return fmt.Errorf("mayfly: %w: %w", ErrFormat, err)
	}
	if errors.Is(err, engine.ErrCorrupt) && !errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("mayfly: %w: %w", ErrCorrupt, err)
	}
	return fmt.Errorf("mayfly: %w", err)
}

// assemble puts the layers together over the engine. It starts nothing.
func (db *DB) assemble() {
	o := db.options
	db.metrics = admin.NewMetrics(db.sources())
	db.service = service.New(service.Options{
		Engine:  db.engine,
		Region:  o.Region,
		Account: o.Account,
		Expiry:  o.expiry(),
		Elapsed: clock.Stopwatch(),

		SwitchedOff: func(table string) { db.work.switchedOff(table) },
	})
	over := inProcess{db}
	db.dynamoDB, db.streams = newClients(over, o.Region)
	db.scheduler = newSchedulerClient(over, o.Region)
	db.work = newWork(db)
	var further []wire.Route
	var named []wire.Action
	if !o.DatabaseOnly {
		further, named = db.work.host.Operations(db.work.making)
	}
	db.server = wire.New(wire.Options{
		Service:  db.service,
		Routes:   further,
		Actions:  named,
		Now:      time.Now, // real time, whatever the clock says
		Date:     db.Clock().Now,
		Verifier: o.verifier(),
		Region:   o.Region,
		CORS:     o.CORS,
		Observe:  db.observe,
		Logger:   o.Logger,
	})
	db.admin = admin.Handler(admin.Options{
		Ready:        db.ready,
		Degraded:     db.degraded,
		Metrics:      db.metrics,
		Clock:        db.Clock().functions(),
		ClockControl: o.ClockControl == ClockControlOn,
		Signed:       db.server.Signed,
	})
}

// ready says why requests, or what schedules ask for, cannot be served at present.
func (db *DB) ready() error {
	if err := db.engine.Err(); err != nil {
		return err
	}
	return db.work.err()
}

// run is the background work, until ctx is done or the store fails. A failure may find the work asleep, so it is watched for.
func (db *DB) run(ctx context.Context) {
	defer close(db.ran)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-db.engine.Failed():
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := db.engine.Run(ctx); err != nil {
		db.options.Logger.Error("the database has stopped", "error", err)
		db.failure = err
		close(db.failed)
	}
}

// Handler serves the API over HTTP, and beside it /healthz, /readyz, /metrics and /_mayfly/clock, to be mounted
// on a server of yours. Serve is for where there is no other.
func (db *DB) Handler() http.Handler {
	return db.server.Dated(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if admin.Serves(r.URL.Path) {
			db.admin.ServeHTTP(w, r)
			return
		}
		db.server.ServeHTTP(w, r)
	}))
}

// DynamoDB is a client of the AWS SDK whose calls stay in this process: no socket, no signature, no retry. It can be used until
// Close, by any number of goroutines.
func (db *DB) DynamoDB() *dynamodb.Client { return db.dynamoDB }

// Streams is such a client for DynamoDB Streams.
func (db *DB) Streams() *dynamodbstreams.Client { return db.streams }

// Scheduler is such a client for EventBridge Scheduler: schedules whose targets are those of Options.Targets, or operations of DynamoDB on this database. Nothing of
// the scheduler runs, and no table of it is there, until the first schedule is.
func (db *DB) Scheduler() *schedulerapi.Client { return db.scheduler }

// Transport answers, in this process, whatever the port does that Serve serves. It is for further clients of the AWS SDK, such as EventBridge's for classic rules and
// Lambda's for event source mappings, which take it as their HTTPClient's Transport. Their requests need no signature, and an endpoint only for its form.
func (db *DB) Transport() http.RoundTripper { return inProcess{db} }

// Clock is the database's clock.
func (db *DB) Clock() *Clock { return &Clock{db.engine, &db.expired} }

// Failed is closed when the database stops by itself, because the log could not be written. What was acknowledged is on disk;
// every call fails from then on. Err tells why.
func (db *DB) Failed() <-chan struct{} { return db.failed }

// Err is nil while the database takes requests, and otherwise says why it does not.
func (db *DB) Err() error { return db.engine.Err() }

// Close ends the background work and closes the store. Deliveries that are under way have a second to end; what has not been delivered is when the directory is opened
// again. Calls that are under way end first, or fail. Closing again does nothing.
func (db *DB) Close() error {
	db.closeOnce.Do(func() {
		db.work.end() // before what it works with
		db.stop()
		<-db.ran
		db.closeErr = errors.Join(db.failure, db.engine.Close())
	})
	return db.closeErr
}
