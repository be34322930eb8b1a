package guard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// The schedule strategy follows the table's stream and keeps one schedule per item at an
// EventBridge Scheduler (docs/spec/patterns.md (c)), which deletes the item at its deadline: see
// schedules. Guard itself removes only items that have expired, or are about to, when it finds
// them.
//
//	stream   each record that adds, changes or removes a deadline creates, updates or deletes the
//	         schedule; it is done only when the Scheduler has confirmed that
//	scan     creates the schedules of the items from before the stream, once, and again when records
//	         were lost. One that it creates while the item loses its deadline stays until it
//	         fires, and is refused then
//	dry run  deadlines wait in memory instead, and are reported
type scheduling struct {
	*schedules
	pages *asker
	lost  chan struct{} // has an element when records were lost
}

const (
	// a schedule that is due sooner could be refused as past by the time it is made
	nearMs         = 5_000
	schedulePrefix = "scan/"

	streamPause = 500 * time.Millisecond // between two checks for another stream
	streamLooks = 20                     // then a table that has none is a problem
)

func newSchedule(g *Guard) strategy {
	return &scheduling{schedules: newSchedules(g), pages: &asker{g, pace.NewBudget(g.o.MaxRCU)}, lost: make(chan struct{}, 1)}
}

// run follows the table's stream, and the next one if it is switched off and on again.
func (x *scheduling) run(ctx context.Context) error {
	if p := x.followable(x.g.table); p != nil {
		return p
	}
	if err := x.g.checkReading(ctx, x.g.table.stream); err != nil {
		return endOf(ctx, err)
	}
	for arn := x.g.table.stream; ; {
		err := x.stream(ctx, arn)
		if err == nil && ctx.Err() == nil {
			last := arn
			if arn, err = x.nextStream(ctx, last); err == nil {
				x.forgetScan(ctx, streamLabel(last)) // that one does not come back
			}
		}
		if err != nil || ctx.Err() != nil {
			return endOf(ctx, err)
		}
	}
}

// nextStream waits for the successor of a stream that has ended.
func (x *scheduling) nextStream(ctx context.Context, last string) (arn string, err error) {
	for looks := streamLooks; ; looks-- {
		var t *table
		err := x.pages.again(ctx, "DescribeTable", func() (_ int, _ *types.ConsumedCapacity, err error) {
			t, err = x.g.describe(ctx)
			return 0, nil, err
		})
		if p := (*Problem)(nil); errors.As(err, &p) {
			return "", x.g.gone(p)
		} else if err != nil {
			return "", err
		}
		if !t.same(x.g.table) {
			return "", &Problem{Code: NewTable, Message: fmt.Sprintf("table %s was deleted and created again", x.g.o.Table), Next: "start guard again"}
		}
		p := x.followable(t)
		switch {
		case p == nil && t.stream != last:
			return t.stream, nil
		case p != nil && looks <= 0:
			return "", p
		}
		clock.Pause(min(streamPause, x.g.checkEach), ctx.Done())
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
}

// followable returns the problem with a table's stream, which must have new images; else nil.
func (x *scheduling) followable(t *table) *Problem {
	const next = "enable a stream with NEW_AND_OLD_IMAGES, or choose the strategy index or scan"
	switch {
	case t.stream == "":
		return &Problem{Code: NoStream, Message: fmt.Sprintf("table %s has no stream", x.g.o.Table), Next: next}
	case t.view != types.StreamViewTypeNewAndOldImages && t.view != types.StreamViewTypeNewImage:
		return &Problem{Code: NoStream, Message: fmt.Sprintf("the stream of table %s has the view type %s, which does not contain deadlines", x.g.o.Table, t.view), Next: next}
	}
	return nil
}

// stream follows one stream. It notes the position in the stream before the scan, so that one of
// the two sees each write.
func (x *scheduling) stream(ctx context.Context, arn string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &consume.Consumer{
		Name: consumerName(x.g.table, Schedule), StreamARN: arn, Start: consume.Latest, DB: x.g.db, Streams: x.g.streams, Leases: x.g.leaseOptions(), Logger: x.g.log, Settle: settled,
		Now: func() time.Time { return time.UnixMilli(x.g.now()) },
		Handle: func(ctx context.Context, _ string, records []consume.Record) error {
			return x.handle(ctx, streamLabel(arn), records)
		},
		Lost: func(shard string) {
			x.g.log.Warn("stream records were lost, as they were not read within a day or the checkpoint was deleted; the table is scanned again", "table", x.g.o.Table, "shard", shard)
			x.forgetScan(ctx, streamLabel(arn))
			select {
			case x.lost <- struct{}{}:
			default:
			}
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	err := x.begun(ctx, c)
	for again := false; err == nil; again = true {
		if err = x.scanTable(ctx, streamLabel(arn), again); err != nil {
			break
		}
		select {
		case <-x.lost:
			continue
		case err = <-ended:
			return err
		}
	}
	cancel()
	<-ended
	return err
}

// streamLabel returns the part of the ARN in which a table's streams differ.
func streamLabel(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// begun waits until a consumer has noted its first position.
func (x *scheduling) begun(ctx context.Context, c *consume.Consumer) error {
	for pauses := (retry.Policy{First: begunFirst, Most: schedulePauses}).Start(); ; pauses.Wait(ctx) {
		is := false
		err := x.ask(ctx, "Query", func() (err error) {
			is, err = c.Begun(ctx)
			return err
		})
		if is || err != nil {
			return err
		}
	}
}

// scanName returns the consumer for the scan of a stream. Any worker continues the scan until all
// its leases are done.
func scanName(t *table, label string) string { return consumerName(t, Schedule) + "/scan/" + label }

// forgetScan makes the workers repeat the scan. The consumer of the stream continues only after
// that, so a crash does not lose the request: either the leases are missing, or the loss is found
// again. A worker in the middle of the scan loses its lease, and begins anew.
func (x *scheduling) forgetScan(ctx context.Context, label string) {
	err := x.ask(ctx, "DeleteItem", func() error { return lease.Clear(ctx, x.g.db, scanName(x.g.table, label)) })
	var p *Problem
	if errors.As(err, &p) && ctx.Err() == nil {
		x.g.fail(p)
	}
}

// scanTable creates the schedules of the existing items, together with the other workers, unless
// that has been done. again distinguishes a repeated scan in the progress.
func (x *scheduling) scanTable(ctx context.Context, label string, again bool) error {
	name := scanName(x.g.table, label)
	var names []string
	for i := range min(x.g.o.Segments, leasesMost) {
		names = append(names, schedulePrefix+strconv.Itoa(i))
	}
	all := &track{g: x.g, doing: FirstScan, until: overIsCalled}
	if again {
		all.doing = WholeScan
	}
	err := lease.Hold(ctx, lease.New(x.g.db, name, x.g.leaseOptions()), names, func(ctx context.Context, l *lease.Lease) error {
		part := all.part(0, len(names))
		defer part.leave()
		return endOf(ctx, x.segment(ctx, l, len(names), part))
	})
	if err == nil && ctx.Err() == nil {
		all.over()
	}
	return err
}

// segment scans a part of the table. All items before the checkpoint have their schedule, or are
// gone.
func (x *scheduling) segment(ctx context.Context, l *lease.Lease, of int, part *trackPart) error {
	start, err := readKeyText(l.Checkpoint())
	if err != nil {
		start = nil
	}
	in := &dynamodb.ScanInput{
		TableName: &x.g.o.Table, ConsistentRead: aws.Bool(true), Segment: aws.Int32(int32(numberOf(l, schedulePrefix))), TotalSegments: aws.Int32(int32(of)),
		ExclusiveStartKey: start, ExpressionAttributeNames: map[string]string{},
	}
	x.g.project(&in.ProjectionExpression, in.ExpressionAttributeNames)
	for {
		items, read, err := x.pages.scan(ctx, in)
		if err != nil {
			return err
		}
		if err := x.items(ctx, items); err != nil {
			return err
		}
		part.add(read)
		if in.ExclusiveStartKey == nil {
			part.end()
			return x.save(ctx, l, lease.Done)
		}
		if err := x.save(ctx, l, keyText(in.ExclusiveStartKey)); err != nil {
			return err
		}
	}
}

// save writes a checkpoint, with retries.
func (x *scheduling) save(ctx context.Context, l *lease.Lease, checkpoint string) error {
	lost := false
	err := x.ask(ctx, "PutItem", func() error {
		err := l.Save(ctx, checkpoint)
		if lost = errors.Is(err, lease.ErrLost); lost {
			return nil
		}
		return err
	})
	if lost {
		return lease.ErrLost
	}
	return err
}

// items makes the schedules of the items of a page.
func (x *scheduling) items(ctx context.Context, items []map[string]types.AttributeValue) error {
	ends := make(chan struct{}, len(items))
	err := x.g.sideBySide(ctx, len(items), func(i int) error {
		e, has := x.g.entryOf(items[i])
		if has && !x.soon(e) {
			if err := x.reconcile(ctx, e); err != nil {
				return err
			}
		}
		if has && x.soon(e) {
			e.Armer = armed.Func(func(armed.Outcome) { ends <- struct{}{} })
			_, err := armWithRoom(ctx, x.g, e, x.g.arm)
			return err
		}
		ends <- struct{}{}
		return nil
	})
	if err != nil {
		return err
	}
	if x.g.o.DryRun { // the waiting deadlines may be years away
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

// soon reports whether guard removes the item itself.
func (s *schedules) soon(e armed.Entry) bool { return s.g.o.DryRun || e.At <= s.g.now()+nearMs }

// handle updates the schedules with a page of records. Of several records of one item only their
// sum counts. A record is done when the Scheduler has its schedule, or the item was removed.
func (x *scheduling) handle(ctx context.Context, label string, records []consume.Record) error {
	changes, err := x.changes(label, len(records), func(i int) (news, error) { return x.g.newsOf(&records[i].Record) })
	if err == nil {
		err = x.g.sideBySide(ctx, len(changes), func(i int) error {
			c := changes[i]
			return x.follow(ctx, c, func() {
				for _, n := range c.records {
					records[n].Done()
				}
			})
		})
	}
	var p *Problem
	if errors.As(err, &p) {
		x.g.fail(p)
	}
	return err
}

// news is the content of a record. Its images have the attributes of a deadline only.
type news struct {
	sequence string
	insert   bool
	keys     map[string]types.AttributeValue
	hasOld   bool // there is an old image
	old, new map[string]types.AttributeValue
}

// newsOf reads a record.
func (g *Guard) newsOf(r *streamtypes.Record) (n news, err error) {
	d := r.Dynamodb
	n = news{sequence: aws.ToString(d.SequenceNumber), insert: r.EventName == streamtypes.OperationTypeInsert, hasOld: len(d.OldImage) > 0}
	if n.keys, err = attributevalue.FromDynamoDBStreamsMap(d.Keys); err == nil {
		if n.old, err = attributevalue.FromDynamoDBStreamsMap(fieldsOf(g, d.OldImage)); err == nil {
			n.new, err = attributevalue.FromDynamoDBStreamsMap(fieldsOf(g, d.NewImage))
		}
	}
	return n, err
}

// fieldsOf are the attributes of an image that a deadline is made of.
func fieldsOf[V any](g *Guard, image map[string]V) map[string]V {
	fields := map[string]V{}
	for _, name := range append(g.table.names(), g.o.Attribute, g.o.Version) {
		if v, has := image[name]; has {
			fields[name] = v
		}
	}
	return fields
}

// changes gathers records by item, in the order in which the items first occur.
func (s *schedules) changes(label string, n int, read func(i int) (news, error)) (all []*change, err error) {
	byKey := map[key]*change{}
	var first, last []news // by change
	// a record before the last had a deadline, so there may be a schedule if it was handled before
	var between []bool
	place := map[key]int{}
	for i := range n {
		r, err := read(i)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.sequence, err)
		}
		k, err := s.g.keyOf(r.keys)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.sequence, err)
		}
		if byKey[k] == nil {
			byKey[k] = &change{key: k, same: true}
			place[k] = len(all)
			all, first, last, between = append(all, byKey[k]), append(first, r), append(last, r), append(between, false)
		} else if _, _, err := deadline(last[place[k]].new[s.g.o.Attribute]); err == nil {
			between[place[k]] = true
		}
		last[place[k]] = r
		byKey[k].records = append(byKey[k].records, i)
		byKey[k].same = byKey[k].same && s.unchanged(r)
	}
	for i, c := range all {
		c.origin = origin{label, last[i].sequence}
		c.e, c.has = s.g.entryOf(last[i].new)
		c.same = c.same && c.has
		c.had = between[i] || !first[i].insert && !first[i].hasOld // there are no old images
		if _, _, err := deadline(first[i].old[s.g.o.Attribute]); err == nil {
			c.had = true
		}
	}
	return all, nil
}

// unchanged reports whether a record leaves the item's deadline as it was. For several records
// together that proves nothing: the first of them may have been handled before, and be delivered
// again with the others.
func (s *schedules) unchanged(r news) bool {
	before, _, err := deadline(r.old[s.g.o.Attribute])
	after, _, none := deadline(r.new[s.g.o.Attribute])
	if err != nil || none != nil || before != after {
		return false
	}
	if s.g.o.Version == "" {
		return true
	}
	versionBefore, _ := versionOf(r.old[s.g.o.Version])
	versionAfter, _ := versionOf(r.new[s.g.o.Version])
	return versionBefore == versionAfter
}

// follow updates an item's schedule. It calls done when nothing remains to be done.
func (s *schedules) follow(ctx context.Context, c *change, done func()) error {
	var err error
	if invariant.Injected(invariant.DoneEarly) {
		done()
		done = func() {}
	}
	switch {
	case c.same, s.outdated(c):
	case c.has && s.soon(c.e):
		s.note(c)
		c.e.Armer = armed.Func(func(armed.Outcome) {
			s.forget(c)
			done()
		})
		_, err := armWithRoom(ctx, s.g, c.e, s.g.arm)
		return err
	case c.has:
		s.g.disarm(c.key)
		err = s.put(ctx, c.e, c.origin)
	default:
		s.g.disarm(c.key)
		if c.had && !s.g.o.DryRun {
			err = s.remove(ctx, c.key, c.origin)
		}
	}
	if err == nil {
		done()
	}
	return err
}

// outdated reports whether the item is armed because of a later record. An older record that comes
// again must not disarm it.
func (s *schedules) outdated(c *change) bool {
	s.armed.Lock()
	defer s.armed.Unlock()
	last, found := s.armed.byKey[c.key]
	return found && last.origin.stream == c.origin.stream && last.origin.newer(c.origin)
}

func (s *schedules) note(c *change) {
	s.armed.Lock()
	defer s.armed.Unlock()
	s.armed.byKey[c.key] = c
}

// forget removes a change whose entry has ended.
func (s *schedules) forget(c *change) {
	s.armed.Lock()
	defer s.armed.Unlock()
	if s.armed.byKey[c.key] == c {
		delete(s.armed.byKey, c.key)
	}
}
