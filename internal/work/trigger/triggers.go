package trigger

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Options says what triggers work with. DB, Streams, Clock, Resolver, Courier, Region and Account must be set.
type Options struct {
	DB        *dynamodb.Client
	Streams   *dynamodbstreams.Client
	Clock     Clock            // the database's: windows, pauses between attempts and the age of records go by it
	Resolver  deliver.Resolver // finds targets
	Courier   *deliver.Courier // makes the attempts, and keeps what is parked or dead
	Region    string           // of the ARNs of functions and mappings
	Account   string           // twelve digits
	Declared  []Spec           // triggers that run besides the mappings; they have passed CheckSpecs
	OnlyThose bool             // the mappings are another's to run
	Leases    lease.Options
	Registry  deliver.Registry
	Poll      time.Duration   // real time after which the mappings are looked at again, where other workers can change them. Default: never
	Backoff   deliver.Backoff // between the attempts for a batch that keeps its place. Default: from 100 ms to a minute
	Jitter    func() float64  // from 0 to below 1; spreads the attempts. Default: random
	Logger    *slog.Logger    // Default: nothing is logged
}

// Clock is the database's time.
type Clock interface {
	Now() time.Time
	// Sleep returns once the clock shows until, in ms since the epoch, or something is received from wake, or when it should be looked at again; and with ctx's error
	// once ctx is done.
	Sleep(ctx context.Context, until int64, wake <-chan struct{}) error
}

const (
	backoffFirst = 100 * time.Millisecond
	backoffMost  = time.Minute
)

func (o Options) withDefaults() Options {
	if o.Backoff.First <= 0 {
		o.Backoff.First = backoffFirst
	}
	if o.Backoff.Most <= 0 {
		o.Backoff.Most = backoffMost
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Triggers are the mappings at one endpoint and the triggers that were declared for it. The operations work whether it runs or not.
type Triggers struct {
	o       Options
	changed chan struct{} // has an element when the mappings should be looked at
	ready   chan struct{} // closed when Run reads all that was there when it began
	mu      struct {
		sync.Mutex
		runs map[string]*run // those under way, by id
	}
}

// New gives triggers. They do nothing until Run.
func New(o Options) *Triggers {
	t := &Triggers{o: o.withDefaults(), changed: make(chan struct{}, 1), ready: make(chan struct{})}
	t.mu.runs = map[string]*run{}
	return t
}

// Ready is closed when Run reads the streams of all the triggers that there were when it began, as far as there are such streams. It runs once.
func (t *Triggers) Ready() <-chan struct{} { return t.ready }

// look makes Run look at the mappings.
func (t *Triggers) look() { tell(t.changed) }

// tell wakes the one who waits on a channel with room for one element.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run runs the triggers until ctx is done.
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
	t.look()
	for {
		again := t.pollAgain()
		select {
		case <-t.changed:
		case <-ctx.Done():
		}
		again()
		if ctx.Err() != nil {
			return nil
		}
		for wait := backoffFirst; ; wait = min(2*wait, backoffMost) {
			err := t.reconcile(ctx, &stopped)
			if err == nil || ctx.Err() != nil {
				t.begun(ctx)
				break
			}
			t.o.Logger.Warn("reading the event source mappings failed; trying again", "error", err, "after", wait)
			clock.Pause(wait, ctx.Done())
		}
	}
}

// begun waits, the first time, until the database knows of all that runs.
func (t *Triggers) begun(ctx context.Context) {
	select {
	case <-t.ready:
		return
	default:
	}
	for _, r := range t.running() {
		select {
		case <-r.held:
		case <-ctx.Done():
			return
		}
	}
	close(t.ready)
}

// pollAgain sees to it that the mappings are looked at after a while, where others can change them.
func (t *Triggers) pollAgain() (stop func() bool) {
	if t.o.Poll <= 0 {
		return func() bool { return false }
	}
	return clock.AfterFunc(t.o.Poll, t.look).Stop
}

// reconcile starts and stops mappings as the table has them, and writes there what has become of them.
func (t *Triggers) reconcile(ctx context.Context, stopped *sync.WaitGroup) error {
	all, err := t.all(ctx)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, m := range all {
		kept[m.UUID] = true
		if err := t.follow(ctx, stopped, m); err != nil {
			return err
		}
	}
	for _, r := range t.running() {
		if r.revision > 0 && !kept[r.id] {
			r.cancel()
		}
	}
	return nil
}

// follow makes a mapping be what its item says. A run that has to end may take as long as the call of its target that is under way; it makes Run look again when it has.
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
	if m.State != stateEnabled && !(r.isHeld() && r.begun(ctx)) {
		clock.AfterFunc(beginAgain, t.look)
		return nil
	}
	return t.settle(ctx, m, stateEnabled)
}

// beginAgain is the real time after which it is looked again whether a mapping has begun to read.
const beginAgain = 5 * time.Millisecond

// settle writes a mapping's state where it has come to be another.
func (t *Triggers) settle(ctx context.Context, m *mapping, state string) error {
	if m.State == state {
		return nil
	}
	m.State = state
	return t.lookAfter(t.put(ctx, m))
}

// end removes a mapping that has stopped, with its checkpoints.
func (t *Triggers) end(ctx context.Context, m *mapping) error {
	leases := lease.New(t.o.DB, consumerName(m.UUID), t.o.Leases)
	rows, err := leases.Rows(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := leases.Forget(ctx, row); err != nil {
			return err
		}
	}
	return t.lookAfter(t.remove(ctx, m))
}

// lookAfter looks again where a write has found that another worker was faster.
func (t *Triggers) lookAfter(err error) error {
	if errors.Is(err, errChanged) {
		t.look()
		return nil
	}
	return err
}

// consumerName is the name of a trigger's consumer.
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
		t.look()
	})
	return r
}

// run is the run of a trigger that is under way; nil where there is none.
func (t *Triggers) run(id string) *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.runs[id]
}

// running are all runs under way.
func (t *Triggers) running() (all []*run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.mu.runs {
		all = append(all, r)
	}
	return all
}
