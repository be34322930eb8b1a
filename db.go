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
	"github.com/mayflydb/mayfly/internal/descriptor"
	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/front/audit"
	"github.com/mayflydb/mayfly/internal/front/cloudwatch"
	"github.com/mayflydb/mayfly/internal/front/httploop"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/sdk"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// Errors of Open and of the clock, for errors.Is.
var (
	ErrLocked  = kv.ErrLocked     // another process has the directory open
	ErrFormat  = engine.ErrFormat // a newer version wrote the directory
	ErrCorrupt = kv.ErrCorrupt    // the directory is damaged
	// the directory is damaged, and no file was changed; matches ErrCorrupt too
	ErrDamaged    = kv.ErrDamaged
	ErrForeign    = kv.ErrForeign     // the directory has other files, and no database
	ErrNoSpace    = kv.ErrNoSpace     // the disk is too full to open the directory
	ErrClockAhead = engine.ErrAhead   // the directory's clock is more than a minute ahead of the machine's
	ErrBackward   = clock.ErrBackward // a clock cannot go back
	ErrBackup     = kv.ErrCopying     // another backup of the database is being made
)

// DB is an open database. Its methods may be called from any goroutine.
type DB struct {
	options Options
	dir     string // empty: in memory
	engine  *engine.Engine
	service *service.Service
	ring    *keys.Ring // nil: requests need no signature
	audit   *audit.Log // nil: none
	server  *wire.Server
	peers   *httploop.Connections // of all listeners
	admin   http.Handler
	metrics *admin.Metrics
	expired atomic.Int64 // items removed by their deadlines since Open

	dynamoDB  *dynamodb.Client
	streams   *dynamodbstreams.Client
	scheduler *schedulerapi.Client
	work      *work
	changes   changes

	stop      context.CancelFunc // ends the background work
	ran       chan struct{}      // closed when the background work has ended
	failed    chan struct{}      // closed when the database has stopped by itself
	failure   error              // the reason; set before failed is closed
	closeOnce sync.Once
	closeErr  error
}

// Open opens the database in a directory, and creates the directory if it is missing. If dir is
// empty, the database is in memory. Items expire until Close.
//
// Only one process can have a directory open. The package's error variables are the failures that a
// caller can act on.
func Open(dir string, options Options) (*DB, error) {
	options = options.withDefaults(dir)
	if err := options.validate(dir); err != nil {
		return nil, err
	}
	ring, err := options.ring()
	if err != nil {
		return nil, fmt.Errorf("mayfly: %w", err)
	}
	log, err := options.Audit.open(options.Logger)
	if err != nil {
		return nil, fmt.Errorf("mayfly: %w", err)
	}
	db := &DB{dir: dir, options: options, ring: ring, audit: log, ran: make(chan struct{}), failed: make(chan struct{})}
	store, err := engine.Open(engine.Options{
		Dir:             dir,
		FS:              options.fs,
		Durability:      options.Durability.kv(),
		CacheBytes:      options.CacheBytes,
		MemTableBytes:   options.MemTableBytes,
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
		OnDrop:          func(namespace, name string) { db.service.NoteDrop(namespace, name) },
	})
	if err != nil {
		return nil, errors.Join(openError(err), db.audit.Close())
	}
	db.engine = store
	db.assemble()
	err = db.service.AdoptExpiry(context.Background(), func(table string, from, to engine.Expiry) {
		options.Logger.Info("the expiry of a table's items has changed", "table", table, "from", from.String(), "to", to.String())
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mayfly: change how tables expire: %w", err), store.Close(), db.audit.Close())
	}
	if err := db.service.AdoptDestinations(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("mayfly: follow the Kinesis destinations of tables: %w", err), store.Close(), db.audit.Close())
	}
	registered := store.HoldAll() // keeps the records for consumers that are still to register
	ctx, stop := context.WithCancel(context.Background())
	db.stop = stop
	go db.run(ctx)
	db.work.resume(registered)
	return db, nil
}

// openError returns an error of the layers below so that it matches the package's errors:
// ErrCorrupt if the files or their contents are corrupt, and ErrFormat for a newer store.
func openError(err error) error {
	if errors.Is(err, kv.ErrNewer) {
		return fmt.Errorf("mayfly: %w: %w", ErrFormat, err)
	}
	if errors.Is(err, engine.ErrCorrupt) && !errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("mayfly: %w: %w", ErrCorrupt, err)
	}
	return fmt.Errorf("mayfly: %w", err)
}

// assemble connects the layers above the engine. It starts no goroutine.
func (db *DB) assemble() {
	o := db.options
	db.metrics = admin.NewMetrics(db.sources())
	db.service = service.New(service.Options{
		Engine:  db.engine,
		Bucket:  db.bucket,
		Logger:  o.Logger,
		Region:  o.Region,
		Account: o.Account,
		Expiry:  o.expiry(),
		Elapsed: clock.Stopwatch(),

		TransientStates: o.TransientStates,
		Throttle:        o.Throttle,

		SwitchedOff: func(table string) { db.work.switchedOff(table) },

		KinesisMapped: o.mapped(),
		FeedsChanged:  func(ctx context.Context) { db.work.feedsChanged(ctx) },
	})
	over := inProcess{db: db}
	db.dynamoDB, db.streams, db.scheduler = sdk.InProcess(over, o.Region)
	db.work = newWork(db)
	db.engine.Points().OnBegin(db.work.consumed)
	var further []wire.Route
	var named []wire.Action
	if !o.DatabaseOnly {
		further, named = db.work.host.Operations(db.work.making)
	}
	named = append(named, cloudwatch.Actions(db.engine.Points())...)
	db.service.NoteAllLevels()
	shared := db.shared()
	db.peers = shared.peers
	db.server = wire.New(wire.Options{
		Service:    db.service,
		Routes:     further,
		Actions:    named,
		Now:        time.Now, // real time, whatever the database's clock shows
		Date:       db.Clock().Now,
		Keys:       db.ring,
		BodyBudget: o.BodyBudget,
		Audit:      db.audit,
		Account:    o.Account,
		AuthForm:   shared.authForm,
		LikeLocal:  shared.likeLocal,
		Misplaced:  shared.misplaced,
		Pages:      o.pages(),
		Observe:    db.observe,
		Faults:     o.faults(),
		Logger:     o.Logger,
	})
	db.admin = admin.Handler(admin.Options{
		Ready:        db.ready,
		Degraded:     db.degraded,
		Metrics:      db.metrics,
		Clock:        shared.clock,
		Reset:        shared.reset,
		ClockControl: o.ClockControl == ClockControlOn,
		Backup:       db.serveBackup,
		Deadlines:    shared.deadlines,
		Hosts:        o.AllowHosts,
		Permitted:    db.permitted(),
		Noted:        db.server.Noted,

		MetricsPublic: o.MetricsPublic,
		Console:       shared.console,
	})
}

// shared are the parts of a database that its Server, if it has one, sets.
type shared struct {
	peers     *httploop.Connections
	clock     admin.Clock // of the endpoints
	reset     func(context.Context) (admin.ClockState, error)
	misplaced func(*wire.Request) error
	likeLocal bool
	authForm  bool
	console   http.Handler // nil: none
	deadlines func(context.Context, admin.DeadlineRange) (admin.Deadlines, error)
}

func (db *DB) shared() shared {
	out := shared{clock: db.Clock().functions(), deadlines: db.deadlines}
	s := db.options.server
	if s == nil {
		out.peers = httploop.NewConnections(descriptor.ForConnections())
		out.console = db.options.console(http.HandlerFunc(db.answer))
		return out
	}
	out.peers, out.reset, out.likeLocal, out.authForm = s.peers, s.reset, s.with.LikeLocal, s.with.AuthForm
	if db.options.first { // the others get no request for the console
		out.console = db.options.console(http.HandlerFunc(s.answer))
	}
	if s.with.Separate && db.options.first {
		out.clock, out.misplaced, out.deadlines = s.clocks(), s.misplaced, refuseDeadlines
		out.console = askKey(out.console)
	}
	return out
}

// permitted returns the check of keys for endpoints beside the API, or nil without keys.
func (db *DB) permitted() func(action string, next http.Handler) http.Handler {
	if db.ring == nil {
		return nil
	}
	return db.server.Permitted
}

// ready returns nil, or the reason why requests or schedules cannot be served at present. The
// endpoint /readyz answers with it.
func (db *DB) ready() error {
	if err := db.engine.Err(); err != nil {
		return err
	}
	return db.work.err()
}

// run does the engine's background work until ctx is done or the store fails. A store may fail in a
// call while that work sleeps, so run also waits for Failed.
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
	var transfers sync.WaitGroup
	defer transfers.Wait()
	transfers.Go(func() {
		if err := db.service.RunBulk(ctx); err != nil && ctx.Err() == nil {
			db.options.Logger.Error("exports and imports wait for the next start", "error", err)
		}
	})
	err := db.engine.Run(ctx)
	cancel()
	if err != nil {
		db.options.Logger.Error("the database has stopped", "error", err)
		db.failure = err
		close(db.failed)
	}
}

// Handler returns a handler for a server of yours: the API, /healthz, /readyz, /metrics and
// /_mayfly/clock. Serve needs no server.
func (db *DB) Handler() http.Handler {
	return db.server.Dated(http.HandlerFunc(db.answer))
}

// answer answers a request of the API, or one for operators.
func (db *DB) answer(w http.ResponseWriter, r *http.Request) {
	if admin.Serves(r.URL.Path) {
		db.admin.ServeHTTP(w, r)
		return
	}
	db.server.ServeHTTP(w, r)
}

// DynamoDB returns a client of the AWS SDK whose calls stay in this process, without sockets,
// signatures or retries. It is safe for concurrent use, until Close.
func (db *DB) DynamoDB() *dynamodb.Client { return db.dynamoDB }

// Streams returns a client for DynamoDB Streams, like DynamoDB.
func (db *DB) Streams() *dynamodbstreams.Client { return db.streams }

// Scheduler returns a client for EventBridge Scheduler, like DynamoDB. The targets of schedules are
// those of Options.Targets, and operations of DynamoDB on this database. The scheduler has no
// goroutine and no table until the first schedule.
func (db *DB) Scheduler() *schedulerapi.Client { return db.scheduler }

// Transport returns a transport that serves in this process all requests that Serve serves on a
// port. It is the HTTPClient's Transport of further clients of the AWS SDK, such as EventBridge's
// for classic rules and Lambda's for event source mappings. Their requests need no signature, and
// any endpoint.
func (db *DB) Transport() http.RoundTripper { return inProcess{db: db} }

// Clock returns the database's clock.
func (db *DB) Clock() *Clock { return &Clock{db.engine, &db.expired} }

// Failed returns a channel that is closed when the database stops by itself because it could not
// write its log. Acknowledged writes are on disk, and every later call fails. Err returns the
// reason.
func (db *DB) Failed() <-chan struct{} { return db.failed }

// Err returns nil while the database accepts requests, and otherwise the reason why it does not.
func (db *DB) Err() error { return db.engine.Err() }

// Close ends the background work and closes the store. Running deliveries have a second to end;
// undelivered ones resume when the directory is opened again. Running calls end first, or fail.
// Further calls of Close do nothing.
func (db *DB) Close() error {
	db.closeOnce.Do(func() {
		db.engine.HoldAll() // to the end: without it, the records of consumers that end could be trimmed undelivered
		db.work.end()       // before the store and the background work that it needs
		db.stop()
		<-db.ran
		db.closeErr = errors.Join(db.failure, db.engine.Close(), db.audit.Close())
	})
	return db.closeErr
}
