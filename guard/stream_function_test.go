package guard

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go"
)

// event returns records in the form in which Lambda passes them to functions.
func (w *world) event(records ...streamtypes.Record) (e events.DynamoDBEvent) {
	w.t.Helper()
	d, err := w.DynamoDB().DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: aws.String(worldTable)})
	must(w.t, err)
	image := func(of map[string]streamtypes.AttributeValue) (fields map[string]events.DynamoDBAttributeValue) {
		if len(of) == 0 {
			return nil
		}
		plain, err := attributevalue.FromDynamoDBStreamsMap(of)
		must(w.t, err)
		text, err := attributevalue.MarshalMapJSON(plain)
		must(w.t, err)
		must(w.t, json.Unmarshal(text, &fields))
		return fields
	}
	for _, r := range records {
		e.Records = append(e.Records, events.DynamoDBEventRecord{
			EventName: string(r.EventName), EventSourceArn: *d.Table.LatestStreamArn,
			Change: events.DynamoDBStreamRecord{
				Keys: image(r.Dynamodb.Keys), OldImage: image(r.Dynamodb.OldImage), NewImage: image(r.Dynamodb.NewImage), SequenceNumber: *r.Dynamodb.SequenceNumber,
			},
		})
	}
	return e
}

// call calls the function with records, and returns the index of the first unhandled one; -1 if
// there is none.
func (w *world) call(f *Functions, records ...streamtypes.Record) int {
	w.t.Helper()
	answer, err := f.StreamRecords(context.Background(), w.event(records...))
	must(w.t, err)
	if len(answer.BatchItemFailures) == 0 {
		return -1
	}
	for i, r := range records {
		if *r.Dynamodb.SequenceNumber == answer.BatchItemFailures[0].ItemIdentifier {
			return i
		}
	}
	w.t.Fatalf("the answer names a record %s that there is not", answer.BatchItemFailures[0].ItemIdentifier)
	return 0
}

func (w *world) wantSchedules(expressions ...string) {
	w.t.Helper()
	var have []string
	for _, s := range w.schedules() {
		have = append(have, *s.ScheduleExpression)
	}
	if strings.Join(have, " ") != strings.Join(expressions, " ") {
		w.t.Errorf("the schedules are %v, not %v", have, expressions)
	}
}

// TestStreamRecords: an item's schedule follows the deadline in its records.
func TestStreamRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := NewFunctions(w.scheduling())
	seen := 0
	handle := func() {
		t.Helper()
		all := w.records()
		if n := w.call(f, all[seen:]...); n != -1 {
			t.Errorf("record %d was not handled", n)
		}
		seen = len(all)
	}
	w.put("a", w.in(3600))
	handle()
	w.wantSchedules(w.at(3600))
	w.renew("a", w.in(7200))
	handle()
	w.wantSchedules(w.at(7200))
	w.put("a", "")
	handle()
	w.wantSchedules()
	w.renew("a", w.in(5000))
	handle()
	w.wantSchedules(w.at(5000))
	w.remove("a")
	handle()
	w.wantSchedules()
	w.put("gone", w.in(-100))
	handle()
	if w.has("gone") {
		t.Error("an expired item is there")
	}
	w.put("b", w.in(100))
	w.renew("b", w.in(200))
	w.renew("b", w.in(300))
	handle()
	w.wantSchedules(w.at(300))
	w.advance(300 * time.Second)
	if w.has("b") {
		t.Error("the item is there")
	}
}

// TestFlawC9: a redelivered record has no second effect.
func TestFlawC9(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := NewFunctions(w.scheduling())
	w.put("a", w.in(3600))
	w.put("b", w.in(-3600))
	for range 3 {
		if n := w.call(f, w.records()[:2]...); n != -1 {
			t.Errorf("record %d was not handled", n)
		}
		w.wantSchedules(w.at(3600))
	}
}

// TestFlawC12: an older record that comes again undoes nothing, and one that comes after the item's
// end does no harm.
func TestFlawC12(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := NewFunctions(w.scheduling())
	w.put("a", w.in(3600))
	w.renew("a", w.in(7200))
	w.put("a", "")
	w.renew("a", w.in(5000))
	all := w.records()
	w.call(f, all...)
	w.wantSchedules(w.at(5000))
	for i := range all {
		w.call(f, all[:i+1]...)
		w.call(f, all[i])
		w.wantSchedules(w.at(5000))
	}
	w.advance(4000 * time.Second)
	w.call(f, all[0]) // its deadline has passed
	if !w.has("a") {
		t.Error("the item went early")
	}
	w.advance(1000 * time.Second)
	if w.has("a") {
		t.Error("the item is there")
	}
	w.put("a", "") // another life
	w.call(f, all...)
	w.advance(4000 * time.Second)
	if !w.has("a") {
		t.Error("the item was deleted by a record of an earlier life")
	}
}

// TestStreamRecordsPartly: when the time is over, the response names the first unhandled record.
func TestStreamRecordsPartly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := w.scheduling()
		o.Scheduler = w.tappedScheduler(func(_ string, input any) error {
			if in, ok := input.(*scheduler.CreateScheduleInput); ok && strings.Contains(*in.Target.Input, "awkward") {
				return throttled
			}
			return nil
		})
		w.put("a", w.in(100))
		w.put("awkward", w.in(200))
		w.put("b", w.in(300))
		// a twentieth of it is reserved for the end
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		all := w.records()
		answer, err := StreamRecords(ctx, o, w.event(all...))
		must(t, err)
		var awkward string
		for _, r := range all {
			if k, _ := r.Dynamodb.Keys["pk"].(*streamtypes.AttributeValueMemberS); k.Value == "awkward" {
				awkward = *r.Dynamodb.SequenceNumber
			}
		}
		if len(answer.BatchItemFailures) != 1 || answer.BatchItemFailures[0].ItemIdentifier != awkward {
			t.Errorf("the answer is %+v, and record %s was not handled", answer, awkward)
		}
		if ctx.Err() != nil {
			t.Error("nothing of the time was left")
		}
		if n := len(w.schedules()); n != 2 {
			t.Errorf("there are %d schedules", n)
		}
	})
}

// TestStreamRecordsRefused: a permanent failure is an error, so the batch comes again.
func TestStreamRecordsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.scheduling()
	w.put("a", w.in(100))
	event := w.event(w.records()...)

	o.Scheduler = w.tappedScheduler(func(string, any) error { return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"} })
	var p *Problem
	if _, err := StreamRecords(t.Context(), o, event); !errors.As(err, &p) || p.Code != AccessDenied {
		t.Errorf("without permission: %v", err)
	}
	o = w.scheduling()
	event.Records[0].EventSourceArn = strings.Replace(event.Records[0].EventSourceArn, "/items/", "/others/", 1)
	if _, err := StreamRecords(t.Context(), o, event); err == nil || !strings.Contains(err.Error(), "others") {
		t.Errorf("another table's record: %v", err)
	}
	event.Records[0].EventSourceArn = "x"
	if _, err := StreamRecords(t.Context(), o, event); err == nil {
		t.Error("no error for an event of nothing")
	}
	if answer, err := StreamRecords(t.Context(), o, events.DynamoDBEvent{}); err != nil || len(answer.BatchItemFailures) != 0 {
		t.Errorf("an empty batch: %v, %v", answer, err)
	}
	o.Scheduler = nil
	if _, err := StreamRecords(t.Context(), o, event); err == nil {
		t.Error("no error without a Scheduler")
	}
}

// thereAndBack makes a schedule, and calls test with each change that takes the item's deadline away
// and with one that brings it back. Then the schedule has to be there.
func thereAndBack(t *testing.T, test func(w *world, f *Functions, away, back func())) {
	for name, away := range map[string]func(w *world){
		"another deadline": func(w *world) { w.put("a", w.in(7200)) },
		"no deadline":      func(w *world) { w.put("a", "") },
		"deleted":          func(w *world) { w.remove("a") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			f := NewFunctions(w.scheduling())
			back := func() { w.put("a", w.in(3600)) }
			back()
			w.call(f, w.records()...)
			test(w, f, func() { away(w) }, back)
			w.wantSchedules(w.at(3600))
		})
	}
}

// TestStreamRecordsChangedBack: as after a crash, a handled record comes again together with the
// record that reverts it. Together they change nothing, but each alone does.
func TestStreamRecordsChangedBack(t *testing.T) {
	t.Parallel()
	thereAndBack(t, func(w *world, f *Functions, away, back func()) {
		away()
		w.call(f, w.records()[1])
		back()
		w.call(f, w.records()[1:]...)
	})
}

// TestStreamRecordsOfSlowWorker: a worker that was paused handles a record when another one has
// handled that and the record that reverts it.
func TestStreamRecordsOfSlowWorker(t *testing.T) {
	t.Parallel()
	thereAndBack(t, func(w *world, f *Functions, away, back func()) {
		away()
		back()
		w.call(f, w.records()[1:]...)
		w.call(f, w.records()[1])
	})
}

// TestStreamRecordsBeforeScan: a scan has brought a schedule in line, and then a slow worker handles
// the record of the schedule that was there before.
func TestStreamRecordsBeforeScan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := NewFunctions(w.scheduling())
	w.put("a", w.in(7200))
	w.call(f, w.records()...)
	w.put("a", w.in(3600))
	g := w.start(w.scheduling())
	g.awaitSchedules(w, w.at(3600))
	must(t, g.stop())
	w.call(f, w.records()[0])
	w.wantSchedules(w.at(3600))
}
