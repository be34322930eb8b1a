// Package schedule is the strategy that follows the table's stream and keeps one schedule per item
// at an EventBridge Scheduler (docs/spec/patterns.md (c)), which deletes the item at its deadline:
// see schedules.go. Guard itself removes only items that have expired, or are about to, when the
// strategy finds them.
//
//	stream   each record that adds, changes or removes a deadline creates, updates or deletes the
//	         schedule; it is done only when the Scheduler has confirmed that
//	scan     creates the schedules of the items from before the stream, once, and again when records
//	         were lost. One that it creates while the item loses its deadline stays until it
//	         fires, and is refused then
//	removals by schedules are counted from the stream's REMOVE records: see removals.go
//	dry run  deadlines wait in memory instead, and are reported
package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	// Name is the name of the strategy.
	Name = "schedule"

	// a schedule that is due sooner could be refused as past by the time it is made
	nearMs     = 5_000
	scanPrefix = "scan/"

	streamPause = 500 * time.Millisecond // between two checks for another stream
	streamLooks = 20                     // then a table that has none is a problem
)

// begunPauses are the pauses between two checks that the position in the stream is noted.
var begunPauses = retry.Policy{First: 10 * time.Millisecond, Most: schedulePauses}

// Run follows the table's stream, and the next one if it is switched off and on again.
func (x *Strategy) Run(ctx context.Context) error {
	if err := x.Check(); err != nil {
		return err
	}
	if err := x.CheckReading(ctx, x.Table.Stream); err != nil {
		return strategy.EndOf(ctx, err)
	}
	for arn := x.Table.Stream; ; {
		err := x.stream(ctx, arn)
		if err == nil && ctx.Err() == nil {
			last := arn
			if arn, err = x.nextStream(ctx, last); err == nil {
				err = x.forgetStream(ctx, last) // that one does not come back
			}
		}
		if err != nil || ctx.Err() != nil {
			return strategy.EndOf(ctx, err)
		}
	}
}

// nextStream waits for the successor of a stream that has ended.
func (x *Strategy) nextStream(ctx context.Context, last string) (arn string, err error) {
	for looks := streamLooks; ; looks-- {
		var t *table.Table
		err := x.AskOther(ctx, "DescribeTable", func() (err error) {
			t, err = table.Describe(ctx, x.DB, x.Table.Name)
			return err
		})
		if p := (*table.Problem)(nil); errors.As(err, &p) {
			return "", table.Gone(p, x.Table.Name)
		} else if err != nil {
			return "", err
		}
		if !t.Same(x.Table) {
			return "", &table.Problem{Code: table.NewTable, Message: fmt.Sprintf("table %s was deleted and created again", x.Table.Name), Next: "start guard again"}
		}
		p := x.followable(t)
		switch {
		case p == nil && t.Stream != last:
			return t.Stream, nil
		case p != nil && looks <= 0:
			return "", p
		}
		clock.Pause(min(streamPause, x.CheckEach), ctx.Done())
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
}

// Check returns the problem if the table has no stream that the strategy can follow.
func (x *Strategy) Check() error {
	if p := x.followable(x.Table); p != nil {
		return p
	}
	return nil
}

// followable returns the problem with a table's stream, which must have new images; else nil.
func (x *Strategy) followable(t *table.Table) *table.Problem {
	const next = "enable a stream with NEW_AND_OLD_IMAGES, or choose the strategy index or scan"
	switch {
	case t.Stream == "":
		return &table.Problem{Code: table.NoStream, Message: fmt.Sprintf("table %s has no stream", x.Table.Name), Next: next}
	case t.View != types.StreamViewTypeNewAndOldImages && t.View != types.StreamViewTypeNewImage:
		return &table.Problem{Code: table.NoStream, Message: fmt.Sprintf("the stream of table %s has the view type %s, which does not contain deadlines", x.Table.Name, t.View), Next: next}
	}
	return nil
}

// stream follows one stream. It notes the position in the stream before the scan, so that one of
// the two sees each write.
func (x *Strategy) stream(ctx context.Context, arn string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &consume.Consumer{
		Name: x.readerName(arn), StreamARN: arn, Start: consume.Latest, DB: x.DB, Streams: x.Streams, Leases: x.Leases, Logger: x.Log, Settle: strategy.Settled,
		Now:     func() time.Time { return time.UnixMilli(x.Now()) },
		Stalled: x.Stalled, Patience: 2 * x.CheckEach,
		Handle: func(ctx context.Context, _ string, records []consume.Record) error {
			x.lag.Note(x.Now(), records)
			return x.handle(ctx, table.StreamLabel(arn), records)
		},
		Lost: func(ctx context.Context) error {
			x.scanned.Store(false)
			x.Log.Warn("stream records were lost, as they were not read within a day or the checkpoint was deleted; the table is scanned again", "table", x.Table.Name)
			if err := x.forgetScan(ctx, table.StreamLabel(arn)); err != nil {
				return err
			}
			scanned := make(chan struct{})
			select {
			case x.lost <- scanned:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case <-scanned:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
	defer x.Settle(table.NoStream)
	if err := x.adopt(ctx, c, arn); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	x.scanned.Store(false)
	err := x.begun(ctx, c)
	var scanned chan struct{}
	for again := false; err == nil; again = true {
		if err = x.scanTable(ctx, table.StreamLabel(arn), again); err != nil {
			break
		}
		x.scanned.Store(true)
		if scanned != nil && ctx.Err() == nil {
			close(scanned)
		}
		select {
		case scanned = <-x.lost:
			continue
		case err = <-ended:
			return err
		}
	}
	cancel()
	<-ended
	return err
}

// CaughtUp reports whether the table was scanned, and the stream's records were read in time lately.
// within is how long an item may take to get its schedule and to be deleted by it, also while a
// dead worker's share is taken over.
func (x *Strategy) CaughtUp(context.Context) (within time.Duration, ok bool, err error) {
	within = strategy.Learning + 3*x.Leases.Duration
	return within, x.scanned.Load() && !x.lag.Within(within, x.Now()), nil
}

// begun waits until a consumer has noted its first position.
func (x *Strategy) begun(ctx context.Context, c *consume.Consumer) error {
	for pauses := begunPauses.Start(); ; pauses.Wait(ctx) {
		begun := false
		err := x.call(ctx, "Query", func() (err error) {
			begun, err = c.Begun(ctx)
			return err
		})
		if begun || err != nil {
			return err
		}
	}
}

// scanName returns the consumer for the scan of a stream. Any worker continues the scan until all
// its leases are done.
func (x *Strategy) scanName(label string) string { return x.Consumer(Name) + "/scan/" + label }

// readerName returns the name of the consumer of a stream. It has the stream's label, because a
// table that was deleted and made again may have a stream with the same shards.
func (x *Strategy) readerName(arn string) string {
	return x.Consumer(Name) + "/" + table.StreamLabel(arn)
}

// adopt continues from the checkpoints of workers of an older version, whose consumers had names
// without a label. They are of this stream if its scan has begun.
func (x *Strategy) adopt(ctx context.Context, c *consume.Consumer, arn string) error {
	scan, err := x.Rows(ctx, lease.New(x.DB, x.scanName(table.StreamLabel(arn)), x.Leases))
	if err != nil {
		return err
	}
	return x.call(ctx, "Query, PutItem and DeleteItem on "+x.Leases.TableName(), func() error {
		if len(scan) == 0 {
			return consume.Forget(ctx, x.DB, x.Consumer(Name), x.Leases)
		}
		return c.Adopt(ctx, x.Consumer(Name))
	})
}

// forgetStream deletes the checkpoints and the scan of a stream that has ended.
func (x *Strategy) forgetStream(ctx context.Context, arn string) error {
	err := x.call(ctx, "DeleteItem", func() error { return consume.Forget(ctx, x.DB, x.readerName(arn), x.Leases) })
	if err != nil {
		return err
	}
	return x.forgetScan(ctx, table.StreamLabel(arn))
}

// forgetScan makes the workers repeat the scan. A worker in the middle of the scan loses its lease,
// and begins anew.
func (x *Strategy) forgetScan(ctx context.Context, label string) error {
	err := x.call(ctx, "DeleteItem", func() error { return lease.Clear(ctx, x.DB, x.scanName(label), x.Leases) })
	if p, ok := errors.AsType[*table.Problem](err); ok && ctx.Err() == nil {
		x.Fail(p)
	}
	return err
}

// scanTable creates the schedules of the existing items, together with the other workers, unless
// that has been done. again distinguishes a repeated scan in the progress.
func (x *Strategy) scanTable(ctx context.Context, label string, again bool) error {
	names := x.SegmentNames(scanPrefix)
	all := &strategy.Track{Env: x.Env, Doing: strategy.FirstScan, Until: strategy.OverIsCalled}
	if again {
		all.Doing = strategy.WholeScan
	}
	var held atomic.Int64
	err := lease.Hold(ctx, lease.New(x.DB, x.scanName(label), x.Leases), names, func(ctx context.Context, l *lease.Lease) error {
		x.Share(held.Add(1), len(names))
		defer func() { x.Share(held.Add(-1), len(names)) }()
		part := all.Part(0, len(names))
		defer part.Leave()
		return strategy.EndOf(ctx, x.segment(ctx, l, len(names), part))
	})
	if err == nil && ctx.Err() == nil {
		all.Over()
	}
	return err
}

// segment scans a part of the table. All items before the checkpoint have their schedule, or are
// gone.
func (x *Strategy) segment(ctx context.Context, l *lease.Lease, segments int, part *strategy.Part) error {
	start, err := strategy.ReadKeyText(l.Checkpoint())
	if err != nil {
		start = nil
	}
	return x.Segment(ctx, strategy.NumberOf(l, scanPrefix), segments, start, func(items []map[string]types.AttributeValue, read int, next map[string]types.AttributeValue) error {
		if err := x.items(ctx, items); err != nil {
			return err
		}
		part.Add(read)
		if next == nil {
			part.End()
			return x.save(ctx, l, lease.Done)
		}
		return x.save(ctx, l, strategy.KeyText(next))
	})
}

// save writes a checkpoint, with retries.
func (x *Strategy) save(ctx context.Context, l *lease.Lease, checkpoint string) error {
	return x.call(ctx, "PutItem", func() error { return l.Save(ctx, checkpoint) })
}

// items makes the schedules of the items of a page. It returns when the Scheduler has them, and the
// items that guard removes itself have ended. A dry run does not wait for those.
func (x *Strategy) items(ctx context.Context, items []map[string]types.AttributeValue) error {
	ends := make(chan struct{}, len(items))
	err := strategy.Parallel(ctx, len(items), x.Concurrency, func(ctx context.Context, i int) error {
		end := func() { ends <- struct{}{} }
		if e, has := x.EntryOf(items[i]); has {
			return x.found(ctx, e, end)
		}
		end()
		return nil
	})
	if err != nil {
		return err
	}
	if x.DryRun { // the waiting deadlines may be years away
		return nil
	}
	for range items {
		select {
		case <-ends:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// found makes the schedule of an item that was read, or arms the item. It calls end when nothing
// remains to be done.
func (x *Strategy) found(ctx context.Context, e armed.Entry, end func()) error {
	if !x.soon(e) {
		err := x.reconcile(ctx, e)
		if err == nil {
			end()
		}
		if !x.tooLate(err, e) {
			return err
		}
	}
	e.Armer = x.attempt(e, end)
	_, err := x.ArmWithRoom(ctx, e, x.Arm)
	return err
}

// soon reports whether guard removes the item itself.
func (s *Strategy) soon(e armed.Entry) bool { return s.DryRun || e.At <= s.Now()+nearMs }

// tooLate reports whether a schedule was refused because its calls were delayed, so that it would be
// in the past: guard removes the item itself then. Whether Amazon refuses such a schedule is not
// documented.
func (s *Strategy) tooLate(err error, e armed.Entry) bool {
	p, ok := errors.AsType[*table.Problem](err)
	return ok && p.Code == table.Misconfigured && s.soon(e)
}

// handle updates the schedules with a page of records. A problem ends guard, since the consumer
// would retry for ever.
func (x *Strategy) handle(ctx context.Context, label string, records []consume.Record) error {
	err := x.Follow(ctx, Records{
		Stream: label, Len: len(records), Read: func(i int) (News, error) { return x.newsOf(&records[i].Record) },
		Done: func(i int) { records[i].Done() }, Held: func(i int) bool { return records[i].Held() },
	})
	if p, ok := errors.AsType[*table.Problem](err); ok {
		x.Fail(p)
	}
	return err
}

// Records are consecutive records of one shard.
type Records struct {
	Stream string // its label
	Len    int
	Read   func(i int) (News, error)
	// Done is called, perhaps after Follow has returned, when the Scheduler has the schedule of a
	// record, or the item was removed.
	Done func(i int)
	// Held reports whether this worker surely has the lease of a record's shard. If not, another
	// one may have handled later records. Default: it has.
	Held func(i int) bool
}

// Follow updates the schedules with records. Of several records of one item only their sum counts.
func (x *Strategy) Follow(ctx context.Context, r Records) error {
	changes, err := x.changes(r)
	if err != nil {
		return err
	}
	return strategy.Parallel(ctx, len(changes), x.Concurrency, func(ctx context.Context, i int) error {
		return x.follow(ctx, changes[i], func() {
			for _, n := range changes[i].records {
				r.Done(n)
			}
		})
	})
}

// News is the content of a record. Its images have the attributes of a deadline only.
type News struct {
	Sequence string
	Insert   bool
	Remove   bool
	// the endpoint's own TTL has removed the item
	ByService bool
	At        time.Time // when the record was written: at Amazon in whole seconds
	Keys      map[string]types.AttributeValue
	HasOld    bool // there is an old image
	Old, New  map[string]types.AttributeValue
}

// newsOf reads a record.
func (x *Strategy) newsOf(r *streamtypes.Record) (n News, err error) {
	d := r.Dynamodb
	n = News{Sequence: aws.ToString(d.SequenceNumber), Insert: r.EventName == streamtypes.OperationTypeInsert, HasOld: len(d.OldImage) > 0,
		Remove: r.EventName == streamtypes.OperationTypeRemove, ByService: r.UserIdentity != nil, At: aws.ToTime(d.ApproximateCreationDateTime)}
	if n.Keys, err = attributevalue.FromDynamoDBStreamsMap(d.Keys); err == nil {
		if n.Old, err = attributevalue.FromDynamoDBStreamsMap(table.Pick(x.Table, d.OldImage)); err == nil {
			n.New, err = attributevalue.FromDynamoDBStreamsMap(table.Pick(x.Table, d.NewImage))
		}
	}
	return n, err
}

// changes gathers records by item, in the order in which the items first occur.
func (s *Strategy) changes(from Records) (all []*change, err error) {
	byKey := map[armed.Key]*change{}
	last := map[*change]News{}
	for i := range from.Len {
		r, err := from.Read(i)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.Sequence, err)
		}
		k, err := s.Table.KeyOf(r.Keys)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.Sequence, err)
		}
		c := byKey[k]
		if c == nil {
			// a stream without old images does not show whether there was a deadline
			c = &change{key: k, same: true, had: s.dated(r.Old) || !r.Insert && !r.HasOld}
			byKey[k], all = c, append(all, c)
		} else if s.dated(last[c].New) { // there may be a schedule, if that record was handled before
			c.had = true
		}
		if one, late, is := s.firedFor(k, r); is {
			c.fired = append(c.fired, fired{one, late})
		}
		last[c] = r
		c.records = append(c.records, i)
		c.same = c.same && s.unchanged(r)
	}
	for _, c := range all {
		c.origin = origin{from.Stream, last[c].Sequence}
		c.held = func() bool { return from.Held == nil || from.Held(c.records[0]) }
		c.e, c.has = s.EntryOf(last[c].New)
		c.same = c.same && c.has
	}
	return all, nil
}

// dated reports whether an image has a deadline.
func (s *Strategy) dated(image map[string]types.AttributeValue) bool {
	_, _, err := table.Deadline(image[s.Table.Attribute])
	return err == nil
}

// unchanged reports whether a record leaves the item's deadline as it was. For several records
// together that proves nothing: the first of them may have been handled before, and be delivered
// again with the others.
func (s *Strategy) unchanged(r News) bool {
	before, _, err := table.Deadline(r.Old[s.Table.Attribute])
	after, _, none := table.Deadline(r.New[s.Table.Attribute])
	if err != nil || none != nil || before != after {
		return false
	}
	if s.Table.Version == "" {
		return true
	}
	versionBefore, _ := table.VersionOf(r.Old[s.Table.Version])
	versionAfter, _ := table.VersionOf(r.New[s.Table.Version])
	return versionBefore == versionAfter
}

// follow updates an item's schedule. It calls done when nothing remains to be done.
func (s *Strategy) follow(ctx context.Context, c *change, done func()) error {
	for _, f := range c.fired {
		if s.removals.see(f.removal, f.late) {
			s.Removed(f.key, f.late)
		}
	}
	var err error
	ended, end := false, done
	done = func() {
		invariant.CheckUnless(ended, []invariant.Fault{invariant.DoneEarly}, "records of item %q are done before its schedule is", c.key)
		end()
	}
	if invariant.Injected(invariant.DoneEarly) {
		done()
		end = func() {}
	}
	arm := func() error {
		s.note(c)
		c.e.Armer = s.attempt(c.e, func() {
			s.forget(c)
			ended = true
			done()
		})
		_, err := s.ArmWithRoom(ctx, c.e, s.Arm)
		return err
	}
	switch {
	case c.same, s.outdated(c):
	case c.has && s.soon(c.e):
		return arm()
	case c.has:
		s.Disarm(c.key)
		err = s.leased(ctx, c, func() error { return s.put(ctx, c.e, c.origin) })
		if s.tooLate(err, c.e) {
			return arm()
		}
	default:
		s.Disarm(c.key)
		if c.had && !s.DryRun {
			err = s.leased(ctx, c, func() error { return s.remove(ctx, c.key, c.origin) })
		}
	}
	if err == nil {
		ended = true
		done()
	}
	return err
}

// leased changes an item's schedule. If this worker has, or may have, lost its lease by then, another
// one may have handled later records of the item, and this change may have undone what that one has
// done: the Scheduler has no conditional writes. The schedule is then made for the deadline that the
// item has now.
func (s *Strategy) leased(ctx context.Context, c *change, make func() error) error {
	err := make()
	if c.held() {
		return err
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreLimit) // the loss ends ctx
	defer cancel()
	e, has, failure := s.current(after, c.key)
	if has && failure == nil {
		failure = s.found(after, e, func() {})
	}
	if failure != nil {
		s.Log.Error("a lease was lost while a schedule was changed, and the schedule could not be checked: it may be for an earlier deadline", "table", s.Table.Name, "item", s.Table.KeyJSON(c.key), "error", failure)
	}
	return err
}

// outdated reports whether the item is armed because of a later record. An older record that comes
// again must not disarm it.
func (s *Strategy) outdated(c *change) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, found := s.mu.byKey[c.key]
	return found && last.origin.stream == c.origin.stream && last.origin.newer(c.origin)
}

func (s *Strategy) note(c *change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.byKey[c.key] = c
}

// forget removes a change whose entry has ended.
func (s *Strategy) forget(c *change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.byKey[c.key] == c {
		delete(s.mu.byKey, c.key)
	}
}
