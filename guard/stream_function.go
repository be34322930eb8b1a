package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/schedule"
	"github.com/mayflydb/mayfly/guard/internal/table"
)

// StreamRecords is the schedule strategy as a function on the table's stream: it updates the
// schedules of the items with a batch of records, and removes expired items. Options must have
// Scheduler and Role. If there is no time for all records, the response names the first unfinished
// one, so that Lambda, with ReportBatchItemFailures, continues there. An error means that no record
// of the batch counts as handled. A repeated or late record does no harm.
func StreamRecords(ctx context.Context, o Options, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return NewFunctions(o).StreamRecords(ctx, event)
}

// StreamRecords is the function of that name.
func (f *Functions) StreamRecords(ctx context.Context, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	switch {
	case f.o.Scheduler == nil:
		return events.DynamoDBEventResponse{}, errors.New("client of Scheduler is missing")
	case f.o.Role == "":
		return events.DynamoDBEventResponse{}, errors.New("option Role is missing; set the ARN of the role that the schedules assume")
	case f.o.limited():
		return events.DynamoDBEventResponse{}, errScheduleLimits
	case f.o.Undo != nil:
		return events.DynamoDBEventResponse{}, errors.New("option Undo does not work here: the Scheduler deletes items and writes no journal")
	case len(event.Records) == 0:
		return events.DynamoDBEventResponse{}, nil
	}
	if f.o.DryRun { // a dry run reports items when they are due, after the end of a call
		return events.DynamoDBEventResponse{}, nil
	}
	b := &batch{event.Records, make([]bool, len(event.Records)), make(chan struct{}), sync.Mutex{}, len(event.Records)}
	if err := f.call(ctx, Schedule, nil, b.run); err != nil {
		return events.DynamoDBEventResponse{}, err
	}
	return b.answer(), nil
}

// batch is a batch of records that a function was called with.
type batch struct {
	records []events.DynamoDBEventRecord
	done    []bool // guarded by mu, as left
	over    chan struct{}
	mu      sync.Mutex
	left    int // not done
}

func (b *batch) run(ctx context.Context, g *Guard) error {
	label := ""
	for i := range b.records {
		table, stream, ok := splitStreamARN(b.records[i].EventSourceArn)
		if !ok || table != g.table.Name {
			return fmt.Errorf("a record is from %q, not from a stream of table %s", b.records[i].EventSourceArn, g.table.Name)
		}
		label = stream
	}
	err := g.newSchedule().Follow(ctx, schedule.Records{
		Stream: label, Len: len(b.records), Read: func(i int) (schedule.News, error) { return newsOf(g.table, &b.records[i]) }, Done: b.tick,
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	select {
	case <-b.over:
	case <-ctx.Done():
	}
	return nil
}

// splitStreamARN takes arn:aws:dynamodb:<region>:<account>:table/<table>/stream/<label> apart.
func splitStreamARN(arn string) (table, label string, ok bool) {
	_, path, ok := strings.Cut(arn, ":table/")
	parts := strings.Split(path, "/")
	if !ok || len(parts) != 3 || parts[1] != "stream" {
		return "", "", false
	}
	return parts[0], parts[2], true
}

// newsOf reads a record as functions get it.
func newsOf(t *table.Table, r *events.DynamoDBEventRecord) (n schedule.News, err error) {
	d := &r.Change
	n = schedule.News{Sequence: d.SequenceNumber, Insert: r.EventName == string(events.DynamoDBOperationTypeInsert), HasOld: len(d.OldImage) > 0,
		Remove: r.EventName == string(events.DynamoDBOperationTypeRemove), ByService: r.UserIdentity != nil, At: d.ApproximateCreationDateTime.Time}
	if n.Keys, err = fromEvent(d.Keys); err == nil {
		if n.Old, err = fromEvent(table.Pick(t, d.OldImage)); err == nil {
			n.New, err = fromEvent(table.Pick(t, d.NewImage))
		}
	}
	return n, err
}

func fromEvent(attributes map[string]events.DynamoDBAttributeValue) (map[string]types.AttributeValue, error) {
	text, err := json.Marshal(attributes)
	if err != nil {
		return nil, err
	}
	return attributevalue.UnmarshalMapJSON(text)
}

// tick notes that a record is done.
func (b *batch) tick(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done[i] {
		return
	}
	b.done[i] = true
	if b.left--; b.left == 0 {
		close(b.over)
	}
}

// answer names the first record that is not done.
func (b *batch) answer() (r events.DynamoDBEventResponse) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, done := range b.done {
		if !done {
			r.BatchItemFailures = []events.DynamoDBBatchItemFailure{{ItemIdentifier: b.records[i].Change.SequenceNumber}}
			return r
		}
	}
	return r
}
