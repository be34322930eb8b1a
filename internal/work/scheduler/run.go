package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// again is the policy of calls to a failing endpoint.
var again = retry.Policy{First: 50 * time.Millisecond, Most: 5 * time.Second}

// Run fires the schedules of every group, and deletes the groups in state DELETING, until ctx is
// done. It includes groups that are created meanwhile. A failing endpoint is called again.
func (s *Scheduler) Run(ctx context.Context) error {
	r := &readers{s: s, running: map[string]*open{}}
	s.mu.Lock()
	stopped := make(chan struct{})
	s.mu.stopped = stopped
	s.mu.Unlock()
	defer func() {
		r.stop()
		close(stopped)
		s.mu.Lock()
		s.mu.stopped = nil
		s.mu.Unlock()
	}()
	look := true
	for pause := again.Start(); ; {
		var err error
		if look {
			err = s.readGroups(ctx)
		}
		if err == nil {
			err = r.reconcile(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			s.o.Logger.Warn("the schedule groups cannot be read or deleted; trying again", "error", err)
			pause.Wait(ctx)
			continue
		}
		pause.Reset()
		look = !s.changed.Wait(ctx, s.o.Refresh, nil) // other processes may have changed them
	}
}

// readGroups reads the groups and opens their tables, so that Run reads their firings. The tables
// of the default group and of the rules are opened only if they exist: the first schedule or rule
// creates them.
func (s *Scheduler) readGroups(ctx context.Context) error {
	all, err := s.groups(ctx)
	if err != nil {
		return err
	}
	for _, g := range all {
		s.remember(g)
		if g.state == stateActive && g.name != groupDefault {
			s.open(groupPlace(g.name))
		}
	}
	for _, p := range []place{groupPlace(groupDefault), rulesPlace} {
		_, err := s.o.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &p.table})
		switch {
		case err == nil:
			s.open(p)
		case !noTable(err):
			return err
		}
	}
	return nil
}

// readers are the running consumers of the groups' streams.
type readers struct {
	s       *Scheduler
	running map[string]*open // by table
	work    sync.WaitGroup
}

// reconcile starts the missing consumers, and deletes the groups in state DELETING.
func (r *readers) reconcile(ctx context.Context) error {
	s := r.s
	s.mu.Lock()
	var deleting []*group
	for _, g := range s.mu.groups {
		if g.state == stateDeleting {
			deleting = append(deleting, g)
		}
	}
	var places []*open
	for _, o := range s.mu.opened {
		if g := s.mu.groups[o.group]; o.rules || g == nil || g.state != stateDeleting {
			places = append(places, o)
		}
	}
	s.mu.Unlock()
	for _, o := range places {
		if r.running[o.table] != o {
			r.end(o.table) // the consumer of a table that was deleted and created again
			r.start(ctx, o)
		}
	}
	if s.o.Registry.Register != nil {
		for _, o := range places {
			select {
			case <-o.timers.Ready():
			case <-o.stopped:
			case <-ctx.Done():
				return nil
			}
		}
	}
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
	for _, g := range deleting {
		r.end(groupPlace(g.name).table)
		if err := s.deleteGroup(ctx, g); err != nil {
			return err
		}
		s.forget(g)
		s.o.Observe(Event{What: Ended, Group: g.name})
	}
	return nil
}

func (r *readers) start(ctx context.Context, o *open) {
	ctx, o.cancel = context.WithCancel(ctx)
	o.stopped = make(chan struct{})
	r.running[o.table] = o
	r.work.Go(func() {
		defer close(o.stopped)
		r.s.consume(ctx, o)
	})
}

// end stops the consumer of a table and waits for it.
func (r *readers) end(table string) {
	if o := r.running[table]; o != nil {
		o.cancel()
		<-o.stopped
		delete(r.running, table)
	}
}

func (r *readers) stop() {
	for _, o := range r.running {
		o.cancel()
	}
	r.work.Wait()
}

// newTimers returns the timers of a place.
func (s *Scheduler) newTimers(p place) *timer.Timers {
	return timer.New(timer.Options{
		Name: consumerOf(p), Table: p.spec(), DB: s.o.DB, Streams: s.o.Streams, Now: s.o.Now, Leases: s.o.Leases, Registry: s.o.Registry,
		Mark: s.o.Mark, Logger: s.o.Logger, Settle: s.o.Courier.Settle,
		Fire:   func(ctx context.Context, firings []timer.Firing) error { return s.fire(ctx, p, firings) },
		Search: func(ctx context.Context, before time.Time) error { return s.armLost(ctx, p, before) },
		Wanted: func(ctx context.Context) (bool, error) {
			if p.rules {
				return true, nil
			}
			g, err := s.readGroupNamed(ctx, p.group)
			return g != nil && g.state != stateDeleting, err
		},
	})
}

// consume fires the schedules of a place until ctx is done, or its table is not wanted.
func (s *Scheduler) consume(ctx context.Context, o *open) {
	if err := o.timers.Run(ctx); err != nil {
		s.o.Logger.Error("the firings of a group cannot be read", "group", o.group, "error", err)
	}
	if ctx.Err() == nil {
		s.close(o)
		s.o.Observe(Event{What: Ended, Group: o.group})
	}
}

// RestoreTable creates what is missing of a table that holds schedules or rules. It returns the ARN
// of its stream, or "".
func (s *Scheduler) RestoreTable(ctx context.Context, table string) (streamARN string, err error) {
	s.mu.Lock()
	o := s.mu.opened[table]
	s.mu.Unlock()
	if o == nil {
		return "", nil
	}
	return o.timers.Restore(ctx, table)
}
