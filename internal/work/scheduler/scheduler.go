package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// Options says what a scheduler works with. DB, Streams, Now, Region, Account and Courier must be set.
type Options struct {
	DB       *dynamodb.Client        // keeps schedules, groups and rules
	Streams  *dynamodbstreams.Client // brings firings
	Now      func() time.Time        // the database's clock
	Region   string                  // that ARNs name, and that targets must be in
	Account  string                  // that ARNs name
	Courier  *deliver.Courier        // takes the deliveries; its Run is the caller's
	Leases   lease.Options           // how the groups' streams are shared with other workers
	Registry deliver.Registry        // the embedded database's
	Mark     string                  // attribute by which guard marks what it expires, on tables elsewhere; "": none

	// Mapped says what is wrong with a target's ARN that leads nowhere, and how to map it: the schedule is refused with its text. nil: every ARN is taken.
	Mapped func(arn string) error

	// Refuse says why no new schedules are taken for now; nil is the answer when they are. nil: they always are.
	Refuse func() error

	CatchUp   CatchUp       // what is caught up with where neither a schedule nor its group says it, and for the rules. Default: CatchUpLast
	Observe   func(Event)   // is told what happens; must be quick. Default: nobody is told
	Refresh   time.Duration // real time after which groups that other processes made or deleted are looked for; 0: there are no others
	GroupsMax int           // Default: 500
	RulesMax  int           // Default: 300
	Logger    *slog.Logger  // Default: nothing is logged
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
	if o.GroupsMax <= 0 {
		o.GroupsMax = groupsMaxDefault
	}
	if o.RulesMax <= 0 {
		o.RulesMax = rulesMaxDefault
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Scheduler is the operations on schedules, groups and rules, and their firing. Its methods may be called from many goroutines. The operations work
// whether or not it runs.
type Scheduler struct {
	o           Options
	expressions expressions
	changed     chan struct{} // holds a value when the groups or their tables are others
	ready       chan struct{} // closed when Run reads all that was there when it began
	began       time.Time
	mu          struct {
		sync.Mutex
		groups map[string]*group // by name, as far as they are known here; replaced, never edited in place
		opened map[string]*open  // places whose tables there are, by table
		ended  chan struct{}     // closed when Run ends; nil while it does not run
	}
}

// open is a place whose table exists, or is being created.
type open struct {
	place
	timers *timer.Timers
}

// New makes a scheduler, and registers it with the courier. It fires nothing until Run.
func New(o Options) *Scheduler {
	s := &Scheduler{o: o.withDefaults(), changed: make(chan struct{}, 1), ready: make(chan struct{})}
	s.began = s.now()
	s.mu.groups, s.mu.opened = map[string]*group{}, map[string]*open{}
	o.Courier.OnAttempt(originAttempt, attempt)
	o.Courier.OnAttempt(originEnd, attempt)
	o.Courier.OnEnd(originEnd, s.deliveriesEnded)
	return s
}

// known is a group as it was last seen here; nil where it never was.
func (s *Scheduler) known(name string) *group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.groups[name]
}

// know remembers a group.
func (s *Scheduler) know(g *group) {
	copied := *g
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.groups[g.name] = &copied
	s.tellLocked()
}

// tellLocked lets Run look at what is known.
func (s *Scheduler) tellLocked() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// open returns the open place of a table. Run reads its firings from then on.
func (s *Scheduler) open(p place) *open {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.mu.opened[p.table]
	if o == nil {
		o = &open{p, s.newTimers(p)}
		s.mu.opened[p.table] = o
		s.tellLocked()
	}
	return o
}

// opened opens a place. While Run runs, it returns when the embedded database knows that the firings
// are read, so that a later advance of the clock waits for them.
func (s *Scheduler) opened(ctx context.Context, p place) {
	o := s.open(p)
	s.mu.Lock()
	ended := s.mu.ended
	s.mu.Unlock()
	if ended != nil && s.o.Registry.Register != nil {
		select {
		case <-o.timers.Ready():
		case <-ended:
		case <-ctx.Done():
		}
	}
}

// closed notes that a place's table is gone: somebody has deleted it, or its group was. Should it be made anew, it is another.
func (s *Scheduler) closed(o *open) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.opened[o.table] == o {
		delete(s.mu.opened, o.table)
	}
}

// forget forgets a group that is gone.
func (s *Scheduler) forget(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.mu.groups[g.name]; now != nil && now.incarnation == g.incarnation {
		delete(s.mu.groups, g.name)
		delete(s.mu.opened, groupPlace(g.name).table)
	}
}

// Ready is closed when Run reads the firings of every group that there was when it began.
func (s *Scheduler) Ready() <-chan struct{} { return s.ready }

// catchUpOf is what holds for schedules of a group that say nothing of it.
func (s *Scheduler) catchUpOf(name string) CatchUp {
	if g := s.known(name); g != nil && g.catchUp() != CatchUpGroup {
		return g.catchUp()
	}
	return s.o.CatchUp
}

// now is the present instant, to the millisecond.
func (s *Scheduler) now() time.Time { return time.UnixMilli(s.o.Now().UnixMilli()).UTC() }
