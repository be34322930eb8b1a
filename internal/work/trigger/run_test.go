package trigger_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

const arnFunction = "arn:aws:lambda:us-east-1:000000000000:function:f"

// declared returns a trigger on table t for the function.
func declared(change func(*trigger.Spec)) trigger.Spec {
	s := trigger.Spec{Name: "test", Table: "things", Target: arnFunction}
	if change != nil {
		change(&s)
	}
	return s
}

// The records of a table come in batches, in their order.
func TestBatches(t *testing.T) {
	w := newWorld(t)
	w.table("things")
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	for i := range 7 {
		w.put("things", "a", i, i)
	}
	w.run(declared(func(s *trigger.Spec) { s.Batch = 3 }))
	f.got(t, "0 1 2", "3 4 5", "6")
	w.put("things", "a", 7, 7)
	f.got(t, "0 1 2", "3 4 5", "6", "7")
}

// Successful records do not come again after a restart.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	w.table("things")
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	stop := w.run(declared(nil))
	w.put("things", "a", 0, 0)
	f.got(t, "0")
	stop()
	w.put("things", "a", 1, 1)
	w.run(declared(nil))
	f.got(t, "0", "1")
}

// A trigger with the start LATEST delivers all records of a table that is created later, and skips
// none after a restart.
func TestTableComesAfterLatest(t *testing.T) {
	w := newWorld(t)
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	o := w.DynamoDB().Options()
	looks := new(atomic.Int64)
	o.HTTPClient = testkit.Refusals{Next: o.HTTPClient.Do, Code: func(operation string, body []byte) string {
		if operation == "DescribeTable" && bytes.Contains(body, []byte(`"things"`)) && looks.Add(1) == 1 {
			return "AccessDeniedException"
		}
		return ""
	}}
	w.options.DB = dynamodb.New(o)
	start := func() (stop func()) { return w.run(declared(func(s *trigger.Spec) { s.Start = "LATEST" })) }
	stop := start()
	await(t, "the trigger has looked for the table twice", func() bool { return looks.Load() > 1 })
	w.table("things")
	w.put("things", "a", 0, 0)
	f.got(t, "0")
	stop()
	w.put("things", "a", 1, 1)
	start()
	f.got(t, "0", "1")
	rows, err := lease.New(w.DynamoDB(), "trigger.test", lease.Options{Exclusive: true}).Rows(t.Context())
	must(t, err)
	if rows["start"].Term == 0 { // else the next run would skip the shards that have begun meanwhile
		t.Errorf("the first run has not stored that it was the first: %v", rows)
	}
}

// A trigger waits for a table that is created later.
func TestTableComesLater(t *testing.T) {
	w := newWorld(t)
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	w.run(declared(nil))
	w.table("things")
	w.put("things", "a", 0, 0)
	f.got(t, "0")
}

// The window gathers records by the database's clock, and a full batch does not wait for its end.
func TestWindow(t *testing.T) {
	w := newWorld(t)
	w.Clock().Freeze()
	w.table("things")
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	w.run(declared(func(s *trigger.Spec) { s.Batch, s.Window = 3, 10*time.Second }))
	w.put("things", "a", 0, 0)
	w.put("things", "a", 1, 1)
	w.put("things", "a", 2, 2)
	f.got(t, "0 1 2")
	until := w.Clock().Now().Add(10 * time.Second)
	w.put("things", "a", 3, 3)
	await(t, "the trigger rests until the window's end", func() bool { return w.resting().Equal(until) }, func() any { return w.resting() })
	w.advance(9999 * time.Millisecond)
	time.Sleep(10 * time.Millisecond) // time for an unwanted call
	if got := f.batches(); len(got) != 1 || !w.resting().Equal(until) {
		t.Fatalf("too early: %q, resting until %v", got, w.resting())
	}
	w.advance(time.Millisecond)
	f.got(t, "0 1 2", "3")
	await(t, "the trigger rests no longer", func() bool { return w.resting().IsZero() })
}

func (w *world) advance(by time.Duration) {
	w.t.Helper()
	_, err := w.Clock().Advance(w.t.Context(), by)
	must(w.t, err)
}

// A batch has at most 6 MB. It is complete when the next record does not fit: it is delivered
// before the end of its window, with all records that fit.
func TestPayload(t *testing.T) {
	w := newWorld(t)
	w.Clock().Freeze()
	w.table("things")
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	const records, most, fit = 50, 6 << 20, 20 // of 300 KB
	for i := range records {
		w.putLarge("things", i)
	}
	w.run(declared(func(s *trigger.Spec) { s.Window = 10 * time.Second }))
	await(t, "all records have come but those that do not fill a batch", func() bool { return len(f.records()) >= 2*fit })
	until := w.Clock().Now().Add(10 * time.Second)
	await(t, "the trigger rests until the window's end", func() bool { return w.resting().Equal(until) }, func() any { return w.resting() })
	if n := len(f.records()); n != 2*fit {
		t.Errorf("%d records came before the window's end, want %d", n, 2*fit)
	}
	w.advance(10 * time.Second)
	await(t, "all records have come", func() bool { return len(f.records()) >= records })
	for i, r := range f.records() {
		if r.Change.Keys["n"].Number() != fmt.Sprint(i) {
			t.Fatalf("record %d is %s", i, r.Change.Keys["n"].Number())
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, size := range f.mu.sizes {
		want := min(fit, records-fit*i)
		if n := len(f.mu.events[i].Records); n != want || size > most || n == fit && size+size/fit <= most {
			t.Errorf("batch %d has %d records in %d bytes, want %d", i, n, size, want)
		}
	}
}

// The filter excludes records that do not match. An expiry differs from a deletion.
func TestFilter(t *testing.T) {
	w := newWorld(t)
	w.Clock().Freeze()
	w.table("things")
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	w.run(declared(func(s *trigger.Spec) {
		s.Filter = []string{`{"eventName": ["REMOVE"], "userIdentity": {"type": ["Service"]}}`, `{"dynamodb": {"NewImage": {"v": {"N": ["7"]}}}}`}
	}))
	w.put("things", "a", 0, 0)
	w.put("things", "a", 1, 7)
	f.got(t, "7")
	w.putUntil("things", "a", 2, 2, w.Clock().Now().Add(time.Minute))
	w.delete("things", "a", 0)
	w.advance(2 * time.Minute)
	f.got(t, "7", "!2")
	r := f.records()[1]
	if r.UserIdentity == nil || r.UserIdentity.PrincipalID != "dynamodb.amazonaws.com" || r.UserIdentity.Type != "Service" {
		t.Errorf("the expiry's identity is %+v", r.UserIdentity)
	}
}

// A failing function receives the batch again, and the following records wait.
func TestRetryInPlace(t *testing.T) {
	w := newWorld(t)
	w.table("things")
	f := &function{answer: func(call int, _ events.DynamoDBEvent) (any, error) {
		if call <= 3 {
			return nil, failed("not yet")
		}
		return nil, nil
	}}
	w.to(arnFunction, f, target.Limits{})
	for i := range 4 {
		w.put("things", "a", i, i)
	}
	w.run(declared(func(s *trigger.Spec) { s.Batch = 2 }))
	f.got(t, "0 1", "0 1", "0 1", "0 1", "2 3")
	if f.mu.ids[0] != f.mu.ids[3] || f.mu.ids[0] == f.mu.ids[4] {
		t.Errorf("ids %q", f.mu.ids)
	}
}

// After the last attempt the batch becomes a dead letter, and the lane continues.
func TestRetriesExhausted(t *testing.T) {
	w := newWorld(t)
	w.table("things")
	f := &function{answer: func(_ int, e events.DynamoDBEvent) (any, error) {
		if values(e) == "0 1" {
			return nil, failed("poison")
		}
		return nil, nil
	}}
	w.to(arnFunction, f, target.Limits{})
	for i := range 4 {
		w.put("things", "a", i, i)
	}
	w.run(declared(func(s *trigger.Spec) { s.Batch, s.Retries = 2, new(1) }))
	f.got(t, "0 1", "0 1", "2 3")
	await(t, "there is a dead letter", func() bool { return w.count("mayfly.deadletters") == 1 })
}

// Bisecting finds the poisoned record: only that one is abandoned.
func TestBisect(t *testing.T) {
	w := newWorld(t)
	w.table("things")
	f := &function{answer: func(_ int, e events.DynamoDBEvent) (any, error) {
		for _, r := range e.Records {
			if r.Change.NewImage["v"].Number() == "2" {
				return nil, failed("poison")
			}
		}
		return nil, nil
	}}
	w.to(arnFunction, f, target.Limits{})
	for i := range 5 {
		w.put("things", "a", i, i)
	}
	w.run(declared(func(s *trigger.Spec) { s.Batch, s.Retries, s.Bisect = 5, new(1), true }))
	f.got(t, "0 1 2 3 4", "0 1", "2 3 4", "2", "2", "3 4")
	await(t, "there is a dead letter", func() bool { return w.count("mayfly.deadletters") == 1 })
}

// An answer that names a record makes it the first of the next attempt.
func TestPartial(t *testing.T) {
	w := newWorld(t)
	w.table("things")
	f := &function{answer: func(call int, e events.DynamoDBEvent) (any, error) {
		if call > 2 {
			return nil, nil
		}
		return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{
			{ItemIdentifier: e.Records[3].Change.SequenceNumber}, {ItemIdentifier: e.Records[1].Change.SequenceNumber},
		}}, nil
	}}
	w.to(arnFunction, f, target.Limits{})
	for i := range 6 {
		w.put("things", "a", i, i)
	}
	w.run(declared(func(s *trigger.Spec) { s.Partial = true }))
	f.got(t, "0 1 2 3 4 5", "1 2 3 4 5", "2 3 4 5")
}

// The record at which a batch stopped has all its attempts, however many the records before it
// used.
func TestProgressForgetsFailures(t *testing.T) {
	w := newWorld(t)
	w.table("things")
	f := &function{answer: func(call int, e events.DynamoDBEvent) (any, error) {
		switch call {
		case 1:
			return nil, failed("not yet")
		case 2:
			return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{
				{ItemIdentifier: e.Records[1].Change.SequenceNumber},
			}}, nil
		}
		return nil, nil
	}}
	w.to(arnFunction, f, target.Limits{})
	for i := range 3 {
		w.put("things", "a", i, i)
	}
	w.run(declared(func(s *trigger.Spec) { s.Batch, s.Partial, s.Retries = 2, true, new(1) }))
	f.got(t, "0 1", "0 1", "1", "2")
}

// Records that are too old are abandoned, and younger ones of their batch are not.
func TestAge(t *testing.T) {
	w := newWorld(t)
	w.Clock().Freeze()
	w.table("things")
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	w.put("things", "a", 0, 0)
	w.put("things", "a", 1, 1)
	w.advance(2 * time.Minute)
	w.put("things", "a", 2, 2)
	w.run(declared(func(s *trigger.Spec) { s.Age = time.Minute }))
	f.got(t, "2")
	await(t, "there is a dead letter", func() bool { return w.count("mayfly.deadletters") == 1 })
}
