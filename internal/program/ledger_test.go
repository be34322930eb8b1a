package program

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// ledger is a writer's knowledge of one key.
type ledger struct {
	pk, owner    string
	acknowledged []change
	underWay     *change // neither acknowledged nor refused when the server died
}

// change is one write to a key.
type change struct {
	version  int // rising; 0 for a deletion
	deadline time.Time
	deleted  bool
	together bool // with another key, in a transaction
	answered time.Time
}

// event is one stream record of a key, reduced to the members of the ledgers.
type event struct {
	seq      *big.Int
	name     streamtypes.OperationType
	service  bool
	version  int // of the new image, or of the old one for a removal
	old      int // of the old image; 0: none
	deadline time.Time
	owner    string
}

// found is the server's state of one key: its records in order, and the item.
type found struct {
	events []event
	item   map[string]types.AttributeValue // nil: none
	index  map[string]types.AttributeValue
}

// audit compares all ledgers with a server's data, and records the outcomes of changes in progress.
// It returns the number of those that have happened.
func audit(t *testing.T, s *served, stream string, writers []*writer) (late int) {
	t.Helper()
	api, streams := s.clients()
	before := s.now(t)
	keys := map[string]*found{}
	at := func(pk string) *found {
		if keys[pk] == nil {
			keys[pk] = new(found)
		}
		return keys[pk]
	}
	scanAll(t, api, nil, func(item map[string]types.AttributeValue) { at(text(item["pk"])).item = item })
	scanAll(t, api, aws.String("byOwner"), func(item map[string]types.AttributeValue) { at(text(item["pk"])).index = item })
	// The records are read last, so they explain everything that the scans have seen.
	for pk, events := range readEvents(t, streams, stream) {
		at(pk).events = events
	}
	after := s.now(t)
	// by version of a transaction under way: whether it happened
	together := map[int]map[bool]bool{}
	for _, w := range writers {
		clear(together)
		for _, l := range w.ledgers {
			f := at(l.pk)
			if happened, ok := l.settle(f.events); ok {
				if together[l.underWay.version] == nil {
					together[l.underWay.version] = map[bool]bool{}
				}
				if l.underWay.together {
					together[l.underWay.version][happened] = true
				}
				if happened {
					late++
					l.acknowledged = append(l.acknowledged, *l.underWay)
				}
				l.underWay = nil
			}
			for _, wrong := range l.compare(f, before, after, s.moved) {
				t.Errorf("%s: %s\nledger: %+v\nevents: %+v", l.pk, wrong, l.acknowledged, f.events)
			}
		}
		for version, answers := range together {
			if len(answers) > 1 {
				t.Errorf("%s: the transaction of version %d happened by half", w.owner, version)
			}
		}
	}
	return late
}

// settle reports from the stream whether the change in progress has happened; ok is false without
// one.
func (l *ledger) settle(events []event) (happened, ok bool) {
	if l.underWay == nil {
		return false, false
	}
	if !l.underWay.deleted {
		return slices.ContainsFunc(events, func(e event) bool {
			return e.name != streamtypes.OperationTypeRemove && e.version == l.underWay.version
		}), true
	}
	last := len(events) - 1
	return last >= 0 && events[last].name == streamtypes.OperationTypeRemove && !events[last].service &&
		!l.lastDeleted(), true
}

func (l *ledger) lastDeleted() bool {
	n := len(l.acknowledged)
	return n > 0 && l.acknowledged[n-1].deleted
}

// compare returns the differences between a ledger and the server's state. The records must be the
// acknowledged changes, in order and once, with removals by the service only of expired items. The
// item and its index entry must follow from the records. moved says that the server's clock is not that
// of the answers.
func (l *ledger) compare(f *found, before, after time.Time, moved bool) (wrong []string) {
	wrong, state := l.compareRecords(f, after, moved)
	return append(wrong, l.compareItems(f, state, before, after)...)
}

// compareRecords is the part of compare that concerns the records. state is the item as they leave
// it; nil: none.
func (l *ledger) compareRecords(f *found, after time.Time, moved bool) (wrong []string, state *event) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	remaining := f.events
	take := func() (e event) { e, remaining = remaining[0], remaining[1:]; return e }
	// expire takes the service's removal of the present state, where that is the next record. It was
	// there at an instant.
	expire := func(at time.Time) {
		if state == nil || len(remaining) == 0 || !remaining[0].service {
			return
		}
		e := take()
		if e.version != state.version {
			complain("the service removed version %d, and %d was there", e.version, state.version)
		}
		if state.deadline.IsZero() || at.Before(state.deadline) {
			complain("version %d was removed by the service before its deadline", state.version)
		}
		state = nil
	}
	for _, c := range l.acknowledged {
		at := after
		if !moved && !c.answered.IsZero() { // the next change was answered after the removal
			at = c.answered.Add(clockSkew)
		}
		expire(at)
		switch {
		case c.deleted && state == nil: // nothing was there: no record
		case len(remaining) == 0:
			complain("the record of an acknowledged change is lost: %+v", c)
			return wrong, state
		case c.deleted:
			if e := take(); e.name != streamtypes.OperationTypeRemove || e.service || e.version != state.version {
				complain("a deletion of version %d is recorded as %+v", state.version, e)
			}
			state = nil
		default:
			e := take()
			inserted := state == nil
			if e.version != c.version || !e.deadline.Equal(c.deadline) || e.owner != l.owner ||
				inserted != (e.name == streamtypes.OperationTypeInsert) || (!inserted && e.old != state.version) {
				complain("change %+v is recorded as %+v", c, e)
			}
			state = &e
		}
	}
	expire(after)
	if len(remaining) > 0 {
		complain("records of nothing that was asked for: %+v", remaining)
	}
	return wrong, state
}

// compareItems holds item and index entry against the state that the records lead to. The records
// were read after them, so either may still show what expired meanwhile, and neither may lack what
// had not.
func (l *ledger) compareItems(f *found, state *event, before, after time.Time) (wrong []string) {
	for name, item := range map[string]map[string]types.AttributeValue{"item": f.item, "index entry": f.index} {
		switch {
		case item == nil && state != nil && (state.deadline.IsZero() || state.deadline.After(after)):
			wrong = append(wrong, fmt.Sprintf("the %s of version %d is lost", name, state.version))
		case item == nil:
		case !deadlineOf(item).IsZero() && !deadlineOf(item).After(before):
			wrong = append(wrong, fmt.Sprintf("the %s of version %s was seen after its deadline", name, text(item["v"])))
		case state != nil && text(item["v"]) != strconv.Itoa(state.version):
			wrong = append(wrong, fmt.Sprintf("the %s has version %s, and the records lead to %d", name, text(item["v"]), state.version))
		case state == nil && deadlineOf(item).IsZero():
			wrong = append(wrong, fmt.Sprintf("the %s has version %s, and the records lead to none", name, text(item["v"])))
		}
	}
	return wrong
}

// awaitExpiries waits until everything due has its record, and audits once more.
func awaitExpiries(t *testing.T, s *served, stream string, writers []*writer) {
	t.Helper()
	_, streams := s.clients()
	now := s.now(t)
	due := map[string]int{} // the last version of each key that is to be removed by the service
	for _, w := range writers {
		for _, l := range w.ledgers {
			if n := len(l.acknowledged); n > 0 {
				if last := l.acknowledged[n-1]; !last.deadline.IsZero() && last.deadline.Before(now.Add(time.Minute)) {
					due[l.pk] = last.version
				}
			}
		}
	}
	for limit := time.Now().Add(30 * time.Second); ; {
		events, waiting := readEvents(t, streams, stream), 0
		for pk, version := range due {
			if n := len(events[pk]); n == 0 {
				waiting++
			} else if last := events[pk][n-1]; last.name != streamtypes.OperationTypeRemove || last.version != version {
				waiting++
			}
		}
		if waiting == 0 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("%d of %d items are due and have no record of their removal", waiting, len(due))
		}
		time.Sleep(100 * time.Millisecond)
	}
	audit(t, s, stream, writers)
}

func scanAll(t *testing.T, api *dynamodb.Client, index *string, visit func(map[string]types.AttributeValue)) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(api, &dynamodb.ScanInput{TableName: aws.String("events"), IndexName: index})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			visit(item)
		}
	}
}

// readEvents reads all records, and orders each key's by their sequence numbers.
func readEvents(t *testing.T, streams *dynamodbstreams.Client, arn string) map[string][]event {
	t.Helper()
	events := map[string][]event{}
	eachRecord(t, streams, arn, func(r streamtypes.Record) {
		pk := streamText(r.Dynamodb.Keys["pk"])
		events[pk] = append(events[pk], eventOf(r))
	})
	for _, list := range events {
		slices.SortFunc(list, func(a, b event) int { return a.seq.Cmp(b.seq) })
	}
	return events
}

// eachRecord reads all shards from their first record on.
func eachRecord(t *testing.T, streams *dynamodbstreams.Client, arn string, visit func(streamtypes.Record)) {
	t.Helper()
	var after *string
	for {
		page, err := streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn, ExclusiveStartShardId: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, shard := range page.StreamDescription.Shards {
			readShard(t, streams, arn, shard.ShardId, visit)
		}
		if after = page.StreamDescription.LastEvaluatedShardId; after == nil {
			return
		}
	}
}

// readShard reads a shard up to its end, or up to where there is no record at present.
func readShard(t *testing.T, streams *dynamodbstreams.Client, arn string, shard *string, visit func(streamtypes.Record)) {
	t.Helper()
	start, err := streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &arn, ShardId: shard, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	for iterator := start.ShardIterator; iterator != nil; {
		page, err := streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			visit(r)
		}
		if iterator = page.NextShardIterator; len(page.Records) == 0 {
			return
		}
	}
}

func eventOf(r streamtypes.Record) event {
	e := event{name: r.EventName, service: r.UserIdentity != nil, seq: new(big.Int)}
	e.seq.SetString(aws.ToString(r.Dynamodb.SequenceNumber), 10)
	image := r.Dynamodb.NewImage
	if image == nil {
		image = r.Dynamodb.OldImage
	}
	e.version, _ = strconv.Atoi(streamText(image["v"]))
	e.old, _ = strconv.Atoi(streamText(r.Dynamodb.OldImage["v"]))
	e.owner = streamText(image["owner"])
	e.deadline = instant(streamText(image["ttl"]))
	return e
}

func deadlineOf(item map[string]types.AttributeValue) time.Time { return instant(text(item["ttl"])) }

// instant reads a TTL value; zero for none.
func instant(seconds string) time.Time {
	f, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(f*1000 + 0.5))
}

func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

func streamText(v streamtypes.AttributeValue) string {
	switch v := v.(type) {
	case *streamtypes.AttributeValueMemberS:
		return v.Value
	case *streamtypes.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

// TestLedgerNotices: the audit of the kill test is only worth something if it notices each kind of
// loss.
func TestLedgerNotices(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	past, future := now.Add(-time.Minute), now.Add(time.Hour)
	l := &ledger{pk: "k", owner: "w", acknowledged: []change{{version: 1, deadline: past}, {version: 2, deadline: future}}}
	insert := event{name: streamtypes.OperationTypeInsert, version: 1, deadline: past, owner: "w"}
	expire := event{name: streamtypes.OperationTypeRemove, version: 1, old: 1, deadline: past, owner: "w", service: true}
	again := event{name: streamtypes.OperationTypeInsert, version: 2, deadline: future, owner: "w"}
	modify := event{name: streamtypes.OperationTypeModify, version: 2, old: 1, deadline: future, owner: "w"}
	item := l.item(l.acknowledged[1])
	changed := func(e event, change func(*event)) event { change(&e); return e }

	for name, f := range map[string]*found{
		"expired in between": {events: []event{insert, expire, again}, item: item, index: item},
		"renewed in time":    {events: []event{insert, modify}, item: item, index: item},
	} {
		if wrong := l.compare(f, now, now, false); len(wrong) > 0 {
			t.Errorf("%s: %v", name, wrong)
		}
	}
	for name, f := range map[string]*found{
		"item lost":          {events: []event{insert, modify}, index: item},
		"index entry lost":   {events: []event{insert, modify}, item: item},
		"old item":           {events: []event{insert, modify}, item: l.item(change{version: 1, deadline: future}), index: item},
		"record lost":        {events: []event{insert}, item: item, index: item},
		"first record lost":  {events: []event{modify}, item: item, index: item},
		"record twice":       {events: []event{insert, modify, modify}, item: item, index: item},
		"records swapped":    {events: []event{modify, insert}, item: item, index: item},
		"expiry lost":        {events: []event{insert, again}, item: item, index: item},
		"expiry twice":       {events: []event{insert, expire, expire, again}, item: item, index: item},
		"expiry early":       {events: []event{insert, modify, changed(expire, func(e *event) { e.version, e.deadline = 2, future })}},
		"expiry unmarked":    {events: []event{insert, changed(expire, func(e *event) { e.service = false }), again}, item: item, index: item},
		"deadline lost":      {events: []event{insert, changed(modify, func(e *event) { e.deadline = time.Time{} })}, item: item, index: item},
		"another's owner":    {events: []event{insert, changed(modify, func(e *event) { e.owner = "x" })}, item: item, index: item},
		"seen when expired":  {events: []event{insert, modify}, item: l.item(change{version: 2, deadline: past}), index: item},
		"nobody's record":    {events: []event{insert, modify, changed(modify, func(e *event) { e.version = 3 })}, item: item, index: item},
		"removed by nobody":  {events: []event{insert, modify, changed(expire, func(e *event) { e.version, e.service = 2, false })}},
		"old image is wrong": {events: []event{insert, changed(modify, func(e *event) { e.old = 7 })}, item: item, index: item},
	} {
		if wrong := l.compare(f, now, now, false); len(wrong) == 0 {
			t.Errorf("%s is not noticed", name)
		}
	}
	// A removal that the next change shows to have been too early is noticed, also after the deadline.
	l.acknowledged[1].answered = past.Add(-time.Second)
	f := &found{events: []event{insert, expire, again}, item: item, index: item}
	if wrong := l.compare(f, now, now, false); len(wrong) != 1 || !strings.Contains(wrong[0], "before its deadline") {
		t.Errorf("a removal before an answer before its deadline: %q", wrong)
	}
	if wrong := l.compare(f, now, now, true); len(wrong) > 0 {
		t.Errorf("by a clock that was moved: %q", wrong)
	}
	l.acknowledged[1].answered = past
	if wrong := l.compare(f, now, now, false); len(wrong) > 0 {
		t.Errorf("a removal at the deadline: %q", wrong)
	}
}
