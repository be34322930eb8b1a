package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/target"
)

// Options says what a courier works with. DB, Streams, Resolver and Now must be set.
type Options struct {
	DB       *dynamodb.Client        // keeps parked parcels and dead letters
	Streams  *dynamodbstreams.Client // brings parked parcels back
	Resolver Resolver
	Name     string           // of couriers that share their parked parcels and resolve alike: letters, digits, "-", "_" and ".". Default: the endpoint's own
	Now      func() time.Time // the database's clock
	Observe  func(Event)      // is told what happens; must be quick. Default: nobody is told
	Leases   lease.Options    // how parked parcels are shared with other workers
	Registry Registry         // the embedded database's
	Mark     string           // attribute by which guard marks what it expires, on tables elsewhere; "": none
	Jitter   func() float64   // from 0 to below 1; spreads the attempts. May be called from many goroutines. Default: random
	Backoff  Backoff
	Grace    time.Duration // real time that attempts get to end when Run does. Default: 1 s
	Logger   *slog.Logger  // Default: nothing is logged
}

// Backoff says when a parcel is tried again: after a random part of First, doubled with each attempt, but of at most Most. A target that asks for more
// gets it.
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
	if o.Backoff.First <= 0 {
		o.Backoff.First = backoffFirst
	}
	if o.Backoff.Most <= 0 {
		o.Backoff.Most = backoffMost
	}
	if o.Grace <= 0 {
		o.Grace = graceDefault
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Courier hands parcels to targets, through a lane for each.
type Courier struct {
	o       Options
	parked  string // the table of parked parcels
	elapsed clock.Elapsed
	ready   chan struct{}      // closed when Run has begun
	origins map[string]*origin // by kind; set before Run
	writer  *writer
	retries *retries
	slow    slowTasks
	lanes   struct {
		sync.Mutex
		byName map[string]*lane
		closed bool
	}
	attempts struct {
		ctx     context.Context // of attempts; set before ready is closed
		stopped chan struct{}   // closed when no more attempts are to begin
		settled chan struct{}   // closed when those that had begun have ended, and what they left is written and told, as far as the grace lasts
		running sync.WaitGroup
	}
}

// NewCourier makes a courier. It does nothing until Run.
func NewCourier(o Options) *Courier {
	d := &Courier{o: o.withDefaults(), elapsed: clock.Stopwatch(), ready: make(chan struct{}), origins: map[string]*origin{}, retries: newRetries()}
	d.parked = retriesOf(o.Name)
	d.lanes.byName = map[string]*lane{}
	d.attempts.stopped, d.attempts.settled = make(chan struct{}), make(chan struct{})
	d.writer = newWriter(d.o.DB, d.o.Logger)
	d.writer.missing = func(ctx context.Context) error { return d.retries.tables(ctx, d) }
	return d
}

// OnEnd registers who is told of the ends of parcels of a kind, in batches, success or final failure. The parcel is done only when f has returned nil; after an error f
// is called again with the same. After a crash f may be told of an end again. It is called before Run.
func (d *Courier) OnEnd(kind string, f func(ctx context.Context, ended []Ended) error) {
	d.origin(kind).end = f
}

// OnAttempt registers what makes the delivery of an attempt out of a parcel of a kind: it gets the parcel as it was handed over, with the number of
// the attempt. It is called before Run.
func (d *Courier) OnAttempt(kind string, f func(Parcel) target.Delivery) {
	d.origin(kind).attempt = f
}

func (d *Courier) origin(kind string) *origin {
	if d.origins[kind] == nil {
		d.origins[kind] = newOrigin(d.o.Logger.With("origin", kind))
	}
	return d.origins[kind]
}

// Run hands parcels over, and brings parked ones back when they are due, until ctx is done. Attempts under way then have the grace to end; parcels that were not begun are
// not done, so they come again from where they came. A courier runs once.
func (d *Courier) Run(ctx context.Context) error {
	if err := d.check(); err != nil {
		return fmt.Errorf("dispatcher: %w", err)
	}
	after := context.WithoutCancel(ctx)
	attempts, cut := context.WithCancel(after)
	defer cut()
	behind, end := context.WithCancel(after) // what attempts leave to be written and told
	defer end()
	d.attempts.ctx = attempts
	var reads, work sync.WaitGroup
	work.Go(func() { d.writer.run(behind) })
	for _, o := range d.origins {
		work.Go(func() { o.run(behind) })
	}
	reads.Go(func() { d.retries.run(ctx, d) })
	close(d.ready)
	<-ctx.Done()
	d.stop(cut)
	close(d.attempts.settled)
	reads.Wait()
	end()
	work.Wait()
	return nil
}

func (d *Courier) check() error {
	if d.o.DB == nil || d.o.Streams == nil || d.o.Resolver == nil || d.o.Now == nil {
		return errors.New("DB, Streams, Resolver and Now must be set")
	}
	return nil
}

// stop lets attempts under way end, for as long as the grace is, and what they leave to be written and told.
func (d *Courier) stop(cut func()) {
	close(d.attempts.stopped)
	d.lanes.Lock()
	d.lanes.closed = true
	for _, l := range d.lanes.byName {
		l.close()
	}
	d.lanes.Unlock()
	timer := clock.AfterFunc(d.o.Grace, cut)
	defer timer.Stop()
	d.attempts.running.Wait()
	since := clock.Stopwatch()
	for !d.idle() && since() < d.o.Grace {
		clock.Pause(idleLook, nil)
	}
}

// Settle returns, where Run is ending, when no parcel will be done any more that was not: attempts under way have had their grace, and what came of them is
// durable. That takes at most twice the grace and the second in which a target that is cut off has to answer. Where Run goes on, it returns after 250 ms. It is what
// consumers have for Settle whose records are done with their parcels.
func (d *Courier) Settle(ctx context.Context, _ string) {
	goesOn := make(chan struct{})
	timer := clock.AfterFunc(settleLimit, func() { close(goesOn) })
	defer timer.Stop()
	select {
	case <-d.attempts.stopped:
	case <-goesOn:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-d.attempts.settled:
	case <-ctx.Done():
	}
}

const idleLook = time.Millisecond // while the courier ends

// idle reports whether all that attempts have left is written and told.
func (d *Courier) idle() bool {
	for _, o := range d.origins {
		if !o.idle() {
			return false
		}
	}
	return d.writer.idle()
}

// Deliver hands a parcel to its target's lane and returns soon: when the lane is full it waits as long as the lane is fast, and parks the parcel when it is not. done is called
// once the parcel needs nothing more from its source: it is delivered, parked durably, or durably a dead letter. It is not called when ctx is done or the
// courier ends before; then the source hands over the parcel again.
//
// A parcel that names what no table can keep, because it is too large, is a dead letter of what can be kept of it.
func (d *Courier) Deliver(ctx context.Context, parcel Parcel, done func()) {
	d.accept(ctx, &task{parcel: parcel, done: done})
}

func (d *Courier) accept(ctx context.Context, t *task) {
	select {
	case <-d.ready:
	case <-ctx.Done():
		return
	}
	t.parcel = d.prepare(t.parcel)
	var err error
	if wrong := t.parcel.fits(); wrong != "" {
		t.parcel.shrink()
		err = target.Permanent(codeTooLarge, wrong)
	}
	if err == nil {
		if t.lane, err = d.lane(t.parcel.Delivery.TargetARN); err == nil {
			defer t.lane.letGo()
		}
	}
	switch {
	case err != nil:
		t.lane = unresolved(d, t.parcel)
		t.state = over
		d.observeFailure(t, err)
		d.failed(t, err)
	case t.parcel.Waits > 0 && d.o.Now().Sub(t.parcel.First) > t.parcel.Policy.MaxAge:
		t.state = over
		if t.parcel.Last.Code == "" {
			t.parcel.Last = Failure{codeBusy, "the target is too busy"}
		}
		d.bury(t, ExhaustedAge)
	default:
		t.lane.push(ctx, t)
	}
}

// The codes of parcels that have not come to their target.
const (
	codeUnmapped = "ResourceNotFoundException"
	codeTooLarge = "PayloadTooLarge"
	codeBusy     = "TargetBusy"
)

// prepare fills in what a new parcel leaves out.
func (d *Courier) prepare(parcel Parcel) Parcel {
	parcel.Delivery.Attempt = max(parcel.Delivery.Attempt, 1)
	parcel.Policy = parcel.Policy.withDefaults()
	if parcel.First.IsZero() {
		parcel.First = d.o.Now()
	}
	return parcel
}

// observe tells of something that happened to a task.
func (d *Courier) observe(t *task, what What, code string) {
	e := Event{What: what, Group: t.parcel.Group, Target: t.lane.name, Code: code, Attempt: t.parcel.Delivery.Attempt}
	if what == Attempted || what == Delivered {
		e.Lateness = d.o.Now().Sub(t.parcel.Delivery.Time)
	}
	d.o.Observe(e)
}

// observeFailure tells of a failed attempt.
func (d *Courier) observeFailure(t *task, err error) {
	e := target.AsError(err)
	d.observe(t, Failed, e.Code)
	if e.Throttled {
		d.observe(t, Throttled, e.Code)
	}
}
