package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/deliver"
)

// Pauses between tries at an endpoint that fails.
const (
	againFirst = 50 * time.Millisecond
	againMost  = 5 * time.Second
)

// Run reads what fires in every group, and deletes the groups that are to be, until ctx is done. Groups that are made meanwhile are read from then on. An
// endpoint that fails is asked again.
func (s *Scheduler) Run(ctx context.Context) error {
	r := &readers{s: s, running: map[string]*reading{}}
	s.mu.Lock()
	ended := make(chan struct{})
	s.mu.ended = ended
	s.mu.Unlock()
	defer func() {
		r.stop()
		close(ended)
		s.mu.Lock()
		s.mu.ended = nil
		s.mu.Unlock()
	}()
	look := true
	for pause := againFirst; ; {
		var err error
		if look {
			err = s.look(ctx)
		}
		if err == nil {
			err = r.match(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			s.o.Logger.Warn("the schedule groups cannot be read or deleted; trying again", "error", err)
			clock.Pause(pause, ctx.Done())
			pause = min(2*pause, againMost)
			continue
		}
		pause, look = againFirst, s.wait(ctx)
	}
}

// wait waits until the groups have changed here, and gives whether they may have elsewhere.
func (s *Scheduler) wait(ctx context.Context) (elsewhere bool) {
	refresh := make(chan struct{})
	if s.o.Refresh > 0 {
		timer := clock.AfterFunc(s.o.Refresh, func() { close(refresh) })
		defer timer.Stop()
	}
	select {
	case <-s.changed:
		return false
	case <-refresh:
		return true
	case <-ctx.Done():
		return false
	}
}

// look finds out which groups there are, and sees to it that they have their tables. The default group and the rules have theirs from the first schedule or rule on; that of
// another group was left out only if a process ended just then.
func (s *Scheduler) look(ctx context.Context) error {
	all, err := s.groups(ctx)
	if err != nil {
		return err
	}
	places := []place{groupPlace(groupDefault), rulesPlace}
	for _, g := range all {
		s.know(g)
		if p := groupPlace(g.name); g.state == stateActive && g.name != groupDefault {
			if err := s.makeTable(ctx, p); err != nil {
				return err
			}
			places = append(places, p)
		}
	}
	for _, p := range places {
		_, err := s.o.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &p.table})
		if noTable(err) {
			continue
		}
		if err == nil {
			err = s.makeTable(ctx, p)
		}
		if err != nil {
			return err
		}
		s.mu.Lock()
		if s.mu.opened[p.table] == nil {
			s.mu.opened[p.table] = &open{place: p, held: make(chan struct{})}
		}
		s.mu.Unlock()
	}
	return nil
}

// readers are the consumers of the groups' streams.
type readers struct {
	s       *Scheduler
	running map[string]*reading // by table
	work    sync.WaitGroup
}

// reading is a consumer that runs.
type reading struct {
	of     *open
	cancel context.CancelFunc
	ended  chan struct{}
}

// match starts a consumer for each place that has a table and none yet, and deletes the groups that are to be.
func (r *readers) match(ctx context.Context) error {
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
		if it := r.running[o.table]; it == nil || it.of != o {
			r.end(o.table) // of a table that was deleted and made anew
			r.start(ctx, o)
		}
	}
	if s.o.Registry.Register != nil {
		for _, o := range places {
			select {
			case <-o.held:
			case <-r.running[o.table].ended:
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
		if err := s.clear(ctx, g); err != nil {
			return err
		}
		s.forget(g)
		s.o.Observe(Event{What: Ended, Group: g.name})
	}
	return nil
}

func (r *readers) start(ctx context.Context, o *open) {
	ctx, cancel := context.WithCancel(ctx)
	it := &reading{o, cancel, make(chan struct{})}
	r.running[o.table] = it
	r.work.Go(func() {
		defer close(it.ended)
		r.s.consume(ctx, o)
	})
}

// end stops the consumer of a table and waits for it.
func (r *readers) end(table string) {
	if it := r.running[table]; it != nil {
		it.cancel()
		<-it.ended
		delete(r.running, table)
	}
}

func (r *readers) stop() {
	for _, it := range r.running {
		it.cancel()
	}
	r.work.Wait()
}

// consumerOf is the name of a place's consumer.
func consumerOf(p place) string {
	if p.rules {
		return "rules"
	}
	return "schedules." + p.group
}

// consume hands the firings of a place on until ctx is done, or its stream is gone.
func (s *Scheduler) consume(ctx context.Context, o *open) {
	p := o.place
	c := &deliver.Consumer{
		Name: consumerOf(p), Table: p.table, Start: deliver.TrimHorizon,
		DB: s.o.DB, Streams: s.o.Streams, Now: s.o.Now, Leases: s.o.Leases, Registry: s.o.Registry.Notify(o.hold), Logger: s.o.Logger,
		Settle: s.o.Courier.Settle,
		Handle: func(ctx context.Context, _ string, records []deliver.Record) error { return s.fire(ctx, p, records) },
	}
	c.Renewed = func(ctx context.Context, streamARN string) error { return s.armLost(ctx, p, streamARN) }
	c.Restore = func(ctx context.Context) (bool, error) {
		_, wanted, err := s.restore(ctx, p)
		return wanted, err
	}
	for pause := againFirst; ctx.Err() == nil; pause = min(2*pause, againMost) {
		err := c.Run(ctx)
		if err == nil && ctx.Err() == nil {
			s.closed(o) // the group is being deleted, or is no more
			s.o.Observe(Event{What: Ended, Group: p.group})
			return
		}
		if ctx.Err() == nil {
			s.o.Logger.Warn("the firings of a group cannot be read; trying again", "group", p.group, "error", err)
			clock.Pause(pause, ctx.Done())
		}
	}
}

// restore makes what is missing of a place's table again, unless it is that of a group that is being deleted or is no more: that is not wanted.
func (s *Scheduler) restore(ctx context.Context, p place) (streamARN string, wanted bool, err error) {
	if !p.rules {
		g, err := s.readGroupNamed(ctx, p.group)
		if err != nil || g == nil || g.state == stateDeleting {
			return "", false, err
		}
	}
	streamARN, err = deliver.Restore(ctx, s.o.DB, s.o.Logger, p.spec())
	return streamARN, true, err
}

// RestoreTable makes what is missing of a table again, if it is one whose firings are read, and gives the ARN of its stream.
func (s *Scheduler) RestoreTable(ctx context.Context, table string) (streamARN string, err error) {
	s.mu.Lock()
	o := s.mu.opened[table]
	s.mu.Unlock()
	if o == nil {
		return "", nil
	}
	streamARN, _, err = s.restore(ctx, o.place)
	return streamARN, err
}

// gone waits until a table that is being deleted is no more.
func (s *Scheduler) gone(ctx context.Context, table string) error {
	for pause := againFirst; ; pause = min(2*pause, againMost) {
		_, err := s.o.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		if noTable(err) {
			return nil
		}
		if err != nil {
			return err
		}
		clock.Pause(pause, ctx.Done())
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
