package trigger

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// Options configures triggers. DB, Streams, Clock, Resolver, Courier, Region and Account must be
// set.
type Options struct {
	DB        *dynamodb.Client
	Streams   *dynamodbstreams.Client
	Clock     Clock            // the database's, for windows, pauses and the age of records
	Resolver  deliver.Resolver // finds targets
	Courier   *deliver.Courier // makes the attempts, and stores parked deliveries and dead letters
	Region    string           // of the ARNs of functions and mappings
	Account   string           // twelve digits
	Declared  []Spec           // triggers in addition to the mappings; CheckSpecs has accepted them
	OnlyThose bool             // leaves the mappings and feeds to other workers
	Feeds     Feeds            // for Kinesis destinations
	Leases    lease.Options
	Registry  consume.Registry
	// interval, in real time, of the search for mappings changed by other workers. Default: never
	Poll time.Duration
	// between the attempts for a batch in its lane. Default: from 100 ms to a minute
	Backoff deliver.Backoff
	Jitter  func() float64 // from 0 to below 1; spreads the attempts. Default: random
	Logger  *slog.Logger   // Default: nothing is logged
}

// Clock is the database's time.
type Clock interface {
	Now() time.Time
	// Sleep waits until the clock shows an instant in ms since the epoch, or wake has an element.
	// It may return early, and returns ctx's error once ctx is done.
	Sleep(ctx context.Context, until int64, wake <-chan struct{}) error
}

const (
	backoffFirst = 100 * time.Millisecond
	backoffMost  = time.Minute
)

func (o Options) withDefaults() Options {
	o.Backoff.First = cmp.Or(max(o.Backoff.First, 0), backoffFirst)
	o.Backoff.Most = cmp.Or(max(o.Backoff.Most, 0), backoffMost)
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Triggers are the mappings at one endpoint and the triggers declared for it. The operations work
// without Run.
type Triggers struct {
	o       Options
	changed timer.Bell    // rings when the mappings may have changed
	ready   chan struct{} // see Ready
	feeding feeding
	mu      struct {
		sync.Mutex
		runs map[string]*run // the running ones, by id
	}
}

// New returns triggers. They do nothing until Run.
func New(o Options) *Triggers {
	t := &Triggers{o: o.withDefaults(), changed: timer.NewBell(), ready: make(chan struct{})}
	t.feeding.forgotten = map[string]bool{}
	t.mu.runs = map[string]*run{}
	return t
}

// Ready returns a channel that is closed when Run reads the existing streams of all triggers that
// existed when it began.
func (t *Triggers) Ready() <-chan struct{} { return t.ready }

// wake makes Run read the mappings and the feeds.
func (t *Triggers) wake() { t.changed.Ring() }

// Run runs the triggers until ctx is done. It can be called once.
func (t *Triggers) Run(ctx context.Context) error {
	var stopped sync.WaitGroup
	defer stopped.Wait()
	for _, s := range t.o.Declared {
		if s.Disabled {
			continue
		}
		p, err := t.o.plan(s)
		if err != nil {
			return err
		}
		t.start(ctx, &stopped, p, 0)
	}
	if t.o.OnlyThose {
		t.begun(ctx)
		<-ctx.Done()
		return nil
	}
	t.feeding.begin(func(p *plan) *run { return t.start(ctx, &stopped, p, 0) })
	defer t.feeding.begin(nil)
	t.wake()
	for {
		t.changed.Wait(ctx, t.o.Poll, nil)
		if ctx.Err() != nil {
			return nil
		}
		for pauses := (retry.Policy{First: backoffFirst, Most: backoffMost}).Start(); ; pauses.Wait(ctx) {
			err := t.reconcile(ctx, &stopped)
			if err == nil || ctx.Err() != nil {
				t.begun(ctx)
				break
			}
			t.o.Logger.Warn("reading the event source mappings or feeds failed; trying again", "error", err, "after", pauses.Next())
		}
	}
}

// begun waits, the first time, until the database has registered all running triggers, and closes
// ready.
func (t *Triggers) begun(ctx context.Context) {
	select {
	case <-t.ready:
		return
	default:
	}
	for _, r := range t.running() {
		select {
		case <-r.registered:
		case <-ctx.Done():
			return
		}
	}
	close(t.ready)
}

// reconcile starts the feeds that have begun. It starts and stops mappings as the table says, and
// writes their states. An error of feeds stops no mapping.
func (t *Triggers) reconcile(ctx context.Context, stopped *sync.WaitGroup) error {
	return errors.Join(t.followFeeds(ctx), t.followMappings(ctx, stopped))
}

func (t *Triggers) followMappings(ctx context.Context, stopped *sync.WaitGroup) error {
	all, err := t.all(ctx)
	if err != nil {
		return err
	}
	stored := map[string]bool{}
	for _, m := range all {
		stored[m.UUID] = true
		if err := t.follow(ctx, stopped, m); err != nil {
			return err
		}
	}
	for _, r := range t.running() {
		if r.revision > 0 && !stored[r.id] {
			r.cancel()
		}
	}
	return nil
}

// follow makes a mapping run, or stop, as its item says. A run that must stop may take as long as
// its current call of the target; then Run looks again.
func (t *Triggers) follow(ctx context.Context, stopped *sync.WaitGroup, m *mapping) error {
	r := t.run(m.UUID)
	if r != nil && r.revision != m.revision {
		r.cancel()
		return nil
	}
	switch {
	case m.State == stateDeleting:
		return t.end(ctx, m)
	case !m.Enabled:
		return t.settle(ctx, m, stateDisabled)
	case r == nil:
		p, err := m.plan()
		if err != nil {
			t.o.Logger.Error("an event source mapping cannot run", "uuid", m.UUID, "error", err)
			return nil
		}
		r = t.start(ctx, stopped, p, m.revision)
	}
	if m.State != stateEnabled && !(r.isRegistered() && r.begun(ctx)) {
		clock.AfterFunc(beginAgain, t.wake)
		return nil
	}
	return t.settle(ctx, m, stateEnabled)
}

// beginAgain is the real time between looks for a mapping that has not begun to read.
const beginAgain = 5 * time.Millisecond

// settle writes a mapping's state if it has changed.
func (t *Triggers) settle(ctx context.Context, m *mapping, state string) error {
	if m.State == state {
		return nil
	}
	m.State = state
	return t.wakeIfChanged(t.put(ctx, m))
}

// end removes a stopped mapping with its checkpoints.
func (t *Triggers) end(ctx context.Context, m *mapping) error {
	if err := consume.Forget(ctx, t.o.DB, consumerName(m.UUID), t.o.Leases); err != nil {
		return err
	}
	return t.wakeIfChanged(t.remove(ctx, m))
}

// wakeIfChanged makes Run look again if another worker has changed the mapping first.
func (t *Triggers) wakeIfChanged(err error) error {
	if errors.Is(err, errChanged) {
		t.wake()
		return nil
	}
	return err
}

// consumerName returns the name of a trigger's consumer.
func consumerName(id string) string { return "trigger." + id }

// start starts a trigger.
func (t *Triggers) start(ctx context.Context, stopped *sync.WaitGroup, p *plan, revision int64) *run {
	ctx, cancel := context.WithCancel(ctx)
	r := newRun(t, p, revision, cancel)
	t.mu.Lock()
	t.mu.runs[r.id] = r
	t.mu.Unlock()
	stopped.Go(func() {
		defer cancel()
		r.run(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.mu.runs, r.id)
		t.wake()
	})
	return r
}

// run returns the run of a trigger, or nil.
func (t *Triggers) run(id string) *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.runs[id]
}

// running returns all runs.
func (t *Triggers) running() []*run {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.mu.runs))
}
