// Package stream is the strategy that follows the table's stream.
//
//	stream's shards ─► reader ─► deadline table ─► owner of a partition ─► armed
//	first scan ────────────────►     │
//	                                 └─ due in a moment: armed by the reader itself
//
// For each record, the reader writes the new deadline into the deadline table and deletes the old
// one; then the record is done. So no worker's death loses a deadline. A scan finds the deadlines
// from before the stream was followed. It begins after the position in the stream is noted; if the
// two disagree, the stream is right.
package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

const (
	horizonAlone = 60_000 // ms

	// armedAlone is the maximum number of deadlines in the memory of a worker that is alone. Two
	// thirds of them may be armed ahead, which is the work of some 15 seconds. Later ones wait in the
	// deadline table. Such a worker reads each of them once, whenever it does; in a fleet, each poll
	// reads all that are near.
	armedAlone = 150_000

	// slack is the time, in ms, that owners and readers look ahead beyond the next poll. It covers
	// a poll's duration and differences between clocks.
	slack = 2_000

	// between two checks that the table and its stream are still the same
	tableEvery = 10 * time.Second
)

// New returns the strategy. local is the client of a store of this worker's own for the deadlines;
// nil if they are in a table at the endpoint.
func New(e *strategy.Env, local *dynamodb.Client) *Strategy {
	lease := e.Leases.Duration
	s := &Strategy{Reader: e.NewReader(e.MaxRCU), local: local != nil, every: lease + lease/4, rescan: make(chan struct{}, 1)}
	s.alone = s.local || e.Leases.Exclusive
	s.inserts = pace.New(0, 0)
	s.soon = s.every.Milliseconds() + slack
	s.horizon = s.soon
	if s.alone {
		s.horizon = horizonAlone
		e.Armed.Most = min(e.Armed.Most, armedAlone)
	}
	label := e.Table.Label()
	if e.DryRun { // a dry run leaves its items unfinished
		label += "/dry-run"
	}
	s.store = newStore(e, local, label)
	s.ended = newEnded()
	if !s.alone {
		s.me = shortName(e.Leases.Owner)
		s.store.claim = s.claim
	}
	s.cleaner.wake = make(chan struct{}, 1)
	for i := range s.shelves {
		s.shelves[i].items = map[armed.Key]*row{}
	}
	return s
}

// Run follows the stream until ctx is done.
func (s *Strategy) Run(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	consumer := s.consumer()
	s.start(ctx, func() error { return s.follow(ctx, consumer) })
	for _, d := range s.store.live() {
		s.join(ctx, d)
	}
	s.start(ctx, func() error { return s.scans(ctx, consumer) })
	s.start(ctx, func() error { return s.watchTable(ctx) })
	cleaned := make(chan struct{})
	go func() {
		defer close(cleaned)
		s.cleans(ctx)
	}()
	s.all.Wait()
	s.stop(nil)
	<-cleaned
	var p *table.Problem
	if cause := context.Cause(ctx); errors.As(cause, &p) {
		return p
	}
	return nil
}

// start runs a part of the strategy; an error ends all of it.
func (s *Strategy) start(ctx context.Context, part func() error) {
	s.all.Go(func() {
		err := part()
		if err == nil || ctx.Err() != nil {
			return
		}
		s.fail(err)
	})
}

// fail ends the strategy.
func (s *Strategy) fail(err error) {
	var p *table.Problem
	if !errors.As(err, &p) {
		p = &table.Problem{Code: table.Misconfigured, Message: "the stream cannot be read", Next: "fix the cause, then start guard again", Err: err}
	}
	s.stop(p)
}

// begin checks the stream, makes the deadline table, and reads or makes the settings.
func (s *Strategy) begin(ctx context.Context) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	if _, err := ensure.Table(ctx, s.store.db, s.store.spec); err != nil {
		return s.AtStart("CreateTable of "+s.store.spec.Name, err)
	}
	set, err := s.store.ensureSettings(ctx, s.Now(), s.Table.Stream)
	if err != nil {
		return s.AtStart("GetItem and PutItem on "+s.store.spec.Name, err)
	}
	s.set = set
	s.know(set)
	all, err := s.store.ensureDivisions(ctx, s.Now(), set, s.Partitions)
	if err != nil {
		return s.AtStart("GetItem and PutItem on "+s.store.spec.Name, err)
	}
	s.divide(all)
	if n := s.store.newest().partitions; s.Partitions > 0 && s.Partitions < n {
		s.Log.Info("the number of partitions does not shrink", "table", s.Table.Name, "partitions", n)
	}
	// workers of an older version follow the stream under a name without its label
	if err := s.consumer().Adopt(ctx, s.store.name(Name)); err != nil {
		return s.AtStart("Query, PutItem and DeleteItem on "+s.leaseOptions().TableName(), err)
	}
	return nil
}

// check returns the problem if the stream cannot be followed or read.
func (s *Strategy) check(ctx context.Context) error {
	if err := s.Check(); err != nil {
		return err
	}
	return s.CheckReading(ctx, s.Table.Stream)
}

// Check returns the problem if the table has no stream that the strategy can follow.
func (s *Strategy) Check() error {
	t := s.Table
	if t.Stream == "" {
		return s.noStream(fmt.Sprintf("table %s has no stream", t.Name))
	}
	if t.View != types.StreamViewTypeNewAndOldImages {
		return &table.Problem{
			Code: table.NoStream, Message: fmt.Sprintf("the stream of table %s has the view type %s, but guard needs NEW_AND_OLD_IMAGES", t.Name, t.View),
			Next: "disable the stream, enable it with that view type, and start guard again; other readers must change to the new stream",
		}
	}
	return nil
}

func (s *Strategy) noStream(message string) *table.Problem {
	return &table.Problem{Code: table.NoStream, Message: message, Next: fmt.Sprintf(
		"aws dynamodb update-table --table-name %s --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES, then start guard again", s.Table.Name)}
}

// leases returns the leases of a kind of share.
func (s *Strategy) leases(kind string) *lease.Leases {
	o := s.leaseOptions()
	o.CrewChanged = func(workers []string) { s.met(kind, workers) }
	o.Fatal = func(err error) bool { return s.problem("PutItem and Query on "+o.TableName(), err) != nil }
	return lease.New(s.store.db, s.store.name(kind), o)
}

func (s *Strategy) leaseOptions() lease.Options {
	o := s.Leases
	o.Exclusive, o.Fatal, o.Table = s.alone, nil, s.store.leases.Table
	return o
}

func (s *Strategy) consumer() *consume.Consumer {
	return &consume.Consumer{
		Name: s.store.readerName(s.set.stream), StreamARN: s.set.stream, Start: consume.Latest, DB: s.store.db, Streams: s.Streams,
		Now:    func() time.Time { return time.UnixMilli(s.Now()) },
		Leases: s.leaseOptions(), Handle: s.Handle, Settle: strategy.Settled, Logger: s.Log,
		Lost: s.Trimmed, Stalled: s.Stalled, Patience: 2 * s.CheckEach,
	}
}

// follow reads the stream until ctx is done. That a stream ends is a problem.
func (s *Strategy) follow(ctx context.Context, c *consume.Consumer) error {
	err := c.Run(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	if p := s.changed(ctx); p != nil {
		return p
	}
	return s.noStream(fmt.Sprintf("the stream of table %s has ended", s.Table.Name))
}

// watchTable checks periodically that the table and its stream are still the same. A stream that
// was switched off ends for its reader only when all its shards are closed.
func (s *Strategy) watchTable(ctx context.Context) error {
	for {
		clock.Pause(min(tableEvery, s.CheckEach), ctx.Done())
		if ctx.Err() != nil {
			return nil
		}
		if p := s.changed(ctx); p != nil {
			return p
		}
		s.watchDivisions(ctx)
	}
}

// met is called when a worker has come or gone, with all workers that share leases of a kind. It
// wakes all owners of this worker: the deadlines that a departed reader had armed are gone with it.
func (s *Strategy) met(kind string, workers []string) {
	crew := map[string]bool{}
	for _, w := range workers {
		crew[shortName(w)] = true
	}
	s.crews.Store(kind, crew)
	for _, d := range s.store.live() {
		for _, p := range d.parts {
			strategy.Nudge(p.wake)
		}
	}
}

// changed returns a problem if the table or its stream was replaced; else nil.
func (s *Strategy) changed(ctx context.Context) error {
	t, err := table.Describe(ctx, s.DB, s.Table.Name)
	if err != nil {
		if p := s.Problem("DescribeTable", err); p != nil {
			return table.Gone(p, s.Table.Name)
		}
		return nil // it may pass
	}
	switch {
	case !t.Same(s.Table):
		return &table.Problem{Code: table.NewTable, Message: fmt.Sprintf("table %s was deleted and created again", t.Name), Next: "start guard again to guard the new table"}
	case t.Stream == "":
		return s.noStream(fmt.Sprintf("the stream of table %s was disabled", t.Name))
	case t.Stream != s.set.stream:
		return &table.Problem{Code: table.NoStream, Message: fmt.Sprintf("table %s has a new stream since guard started", t.Name), Next: "start guard again to follow the new stream"}
	}
	return nil
}
