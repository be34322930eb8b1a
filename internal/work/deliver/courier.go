package deliver

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/timer"
	"github.com/mayflydb/mayfly/target"
)

// Options are the parts and settings of a courier. DB, Streams, Resolver and Now must be set.
type Options struct {
	DB       *dynamodb.Client        // has parked parcels and dead letters
	Streams  *dynamodbstreams.Client // has the records of due parcels
	Resolver Resolver
	// couriers with equal names share parked parcels and must have the same targets: letters,
	// digits, "-", "_" and ".". Default: the endpoint's own couriers
	Name     string
	Now      func() time.Time // the database's clock
	Observe  func(Event)      // receives events; must be quick. Default: none
	Leases   lease.Options    // division of parked parcels among workers
	Registry consume.Registry // the embedded database's
	// attribute with which guard marks expired items of tables elsewhere; "": none
	Mark string
	// from 0 to below 1; spreads the attempts. Called from many goroutines. Default: random
	Jitter  func() float64
	Backoff Backoff
	Grace   time.Duration // real time for attempts to finish when Run ends. Default: 1 s
	Logger  *slog.Logger  // Default: nothing is logged
}

// Backoff is the pause before another attempt: a random part of First, doubled with each attempt
// and limited by Most. A target may request a longer pause.
type Backoff struct {
	First time.Duration // Default: 1 s
	Most  time.Duration // Default: 15 minutes
}

const (
	backoffFirst = time.Second
	backoffMost  = 15 * time.Minute
	graceDefault = time.Second
)

func (o Options) withDefaults() Options {
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	o.Backoff.First = cmp.Or(max(o.Backoff.First, 0), backoffFirst)
	o.Backoff.Most = cmp.Or(max(o.Backoff.Most, 0), backoffMost)
	o.Grace = cmp.Or(max(o.Grace, 0), graceDefault)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Courier hands parcels to targets, through one lane for each target.
type Courier struct {
	o       Options
	parked  string // table of parked parcels
	elapsed clock.Elapsed
	ready   chan struct{}      // closed when Run has begun
	origins map[string]*origin // by kind; set before Run
	writer  *writer
	timers  *timer.Timers // of parked parcels
	slow    slowTasks
	lanes   struct {
		sync.Mutex
		byName map[string]*lane
		closed bool
	}
	attempts struct {
		ctx   context.Context // context of attempts; set before ready is closed
		open  context.Context // done when no further attempts may begin
		close context.CancelFunc
		// closed when the begun attempts have ended and their results are durable, or the grace is
		// over
		settled chan struct{}
		running sync.WaitGroup
	}
}

// Codes of parcels that did not reach their target.
const (
	codeUnmapped = "ResourceNotFoundException"
	codeTooLarge = "PayloadTooLarge"
	codeBusy     = "TargetBusy"
)

// prepare fills in the defaults of a new parcel.
func (d *Courier) prepare(parcel Parcel) Parcel {
	parcel.Delivery.Attempt = max(parcel.Delivery.Attempt, 1)
	parcel.Policy.MaxAttempts = cmp.Or(max(parcel.Policy.MaxAttempts, 0), maxAttemptsDefault)
	parcel.Policy.MaxAge = cmp.Or(max(parcel.Policy.MaxAge, 0), maxAgeDefault)
	if parcel.First.IsZero() {
		parcel.First = d.o.Now()
	}
	return parcel
}

// observe reports an event of a task.
func (d *Courier) observe(t *task, what What, code string) {
	e := Event{What: what, Group: t.parcel.Group, Target: t.target, Code: code, Attempt: t.parcel.Delivery.Attempt}
	if what == Attempted || what == Delivered {
		e.Lateness = d.o.Now().Sub(t.parcel.Delivery.Time)
	}
	d.o.Observe(e)
}

// observeResult reports the result of an attempt.
func (d *Courier) observeResult(t *task, err error) {
	if err == nil {
		d.observe(t, Delivered, "")
		return
	}
	e := target.AsError(err)
	d.observe(t, Failed, e.Code)
	if e.Throttled {
		d.observe(t, Throttled, e.Code)
	}
}

// origin is the registered source of a kind of parcels.
type origin struct {
	attempt func(Parcel) target.Delivery
	end     func(context.Context, []Ended) error
	log     *slog.Logger
	wake    chan struct{}
	mu      struct {
		sync.Mutex
		waiting []ending
		busy    bool
	}
}

// ending is the end of a parcel that its origin does not know yet.
type ending struct {
	Ended
	told func()
}
