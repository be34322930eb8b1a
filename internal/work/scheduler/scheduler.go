package scheduler

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// Options configures a scheduler. DB, Streams, Now, Region, Account and Courier must be set.
type Options struct {
	DB       *dynamodb.Client        // stores schedules, groups and rules
	Streams  *dynamodbstreams.Client // streams of the tables
	Now      func() time.Time        // the database's clock
	Region   string                  // of ARNs and targets
	Account  string                  // of ARNs
	Courier  *deliver.Courier        // delivers; the caller runs it
	Leases   lease.Options           // share the groups' streams with other workers
	Registry consume.Registry        // of the embedded database
	// attribute with which guard marks the items that it expires; "": none
	Mark string

	// Mapped returns an error for the ARN of a target that is not mapped; its text says how to map
	// it, and the API returns it. Default: every ARN is accepted.
	Mapped func(arn string) error

	// Refuse returns the reason for refusing new schedules at present, or nil. Default: none is
	// refused.
	Refuse func() error

	// of rules, and of schedules if neither they nor their group have one. Default: CatchUpLast
	CatchUp CatchUp
	Observe func(Event) // is called for each event; must return fast. Default: none
	// real time between looks for changes by other processes; 0: there are none
	Refresh   time.Duration
	GroupsMax int          // Default: 500
	RulesMax  int          // Default: 300
	Logger    *slog.Logger // Default: nothing is logged
}

const (
	groupsMaxDefault = 500
	rulesMaxDefault  = 300
)

func (o Options) withDefaults() Options {
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	if o.CatchUp == CatchUpGroup {
		o.CatchUp = CatchUpLast
	}
	o.GroupsMax = cmp.Or(max(o.GroupsMax, 0), groupsMaxDefault)
	o.RulesMax = cmp.Or(max(o.RulesMax, 0), rulesMaxDefault)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Scheduler implements the operations on schedules, groups and rules, and fires them. Its methods
// are safe for concurrent use. The operations do not need Run.
type Scheduler struct {
	o           Options
	expressions expressions
	changed     timer.Bell    // rings after a change of the groups or their tables
	ready       chan struct{} // closed when Run reads the groups that existed at its start
	began       time.Time
	mu          struct {
		sync.Mutex
		// by name; each as this process last saw it, and never edited in place
		groups  map[string]*group
		opened  map[string]*open // places with a table, by table
		stopped chan struct{}    // closed when Run ends; nil while it does not run
	}
}

// open is a place whose table exists, or is being created.
type open struct {
	place
	timers  *timer.Timers
	cancel  context.CancelFunc // ends its consumer; only Run uses it, and stopped
	stopped chan struct{}      // closed when the consumer has ended
}

// New returns a scheduler, and registers it with the courier. It fires nothing until Run.
func New(o Options) *Scheduler {
	s := &Scheduler{o: o.withDefaults(), changed: timer.NewBell(), ready: make(chan struct{})}
	s.began = s.now()
	s.mu.groups, s.mu.opened = map[string]*group{}, map[string]*open{}
	o.Courier.OnAttempt(originAttempt, attempt)
	o.Courier.OnAttempt(originEnd, attempt)
	o.Courier.OnEnd(originEnd, s.deliveriesEnded)
	return s
}

// remembered returns a group as this process last saw it; nil if it never did.
func (s *Scheduler) remembered(name string) *group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.groups[name]
}

// remember stores the state of a group.
func (s *Scheduler) remember(g *group) {
	copied := *g
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.groups[g.name] = &copied
	s.changed.Ring()
}

// open returns the open place of a table. Run reads its firings from then on.
func (s *Scheduler) open(p place) *open {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.mu.opened[p.table]
	if o == nil {
		o = &open{place: p, timers: s.newTimers(p)}
		s.mu.opened[p.table] = o
		s.changed.Ring()
	}
	return o
}

// awaitOpen opens a place. While Run runs, it returns when the embedded database knows that the
// firings are read, so that a later advance of the clock waits for them.
func (s *Scheduler) awaitOpen(ctx context.Context, p place) {
	o := s.open(p)
	s.mu.Lock()
	stopped := s.mu.stopped
	s.mu.Unlock()
	if stopped != nil && s.o.Registry.Register != nil {
		select {
		case <-o.timers.Ready():
		case <-stopped:
		case <-ctx.Done():
		}
	}
}

// close closes a place whose table is deleted. A new table of that name is another place.
func (s *Scheduler) close(o *open) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.opened[o.table] == o {
		delete(s.mu.opened, o.table)
	}
}

// forget removes a deleted group.
func (s *Scheduler) forget(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.mu.groups[g.name]; now != nil && now.incarnation == g.incarnation {
		delete(s.mu.groups, g.name)
		delete(s.mu.opened, groupPlace(g.name).table)
	}
}

// Ready returns a channel that is closed when Run reads the firings of every group that existed at
// its start.
func (s *Scheduler) Ready() <-chan struct{} { return s.ready }

// catchUpOf returns the catch-up of a group's schedules that have none of their own: the group's,
// or else the option's.
func (s *Scheduler) catchUpOf(name string) CatchUp {
	if g := s.remembered(name); g != nil && g.catchUp() != CatchUpGroup {
		return g.catchUp()
	}
	return s.o.CatchUp
}

// now returns the present instant, to the millisecond.
func (s *Scheduler) now() time.Time { return time.UnixMilli(s.o.Now().UnixMilli()).UTC() }
