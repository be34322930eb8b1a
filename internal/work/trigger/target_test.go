package trigger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/mayflydb/mayfly/internal/sink/aws"
	"github.com/mayflydb/mayfly/internal/sink/aws/lambdatest"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

// handlers are the Lambda functions that this test's program can run as.
var handlers = map[string]any{
	// count names the record with the value 2 as failed, except as the first record of a second
	// try.
	"count": func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
		for i, r := range e.Records {
			if r.Change.NewImage["v"].Number() == "2" && i > 0 {
				return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{{ItemIdentifier: r.Change.SequenceNumber}}}, nil
			}
		}
		return events.DynamoDBEventResponse{}, nil
	},
	"fail": func(_ context.Context, e events.DynamoDBEvent) error {
		if values(e) == "1" {
			return errors.New("I do not like 1")
		}
		return nil
	},
}

// A real Lambda function, a program of its own behind the Invoke API, receives the events of its
// type; its errors and its answers count.
func TestLambda(t *testing.T) {
	runtime, err := lambdatest.Start(map[string]lambdatest.Function{"count": lambdatest.Self("count"), "fail": lambdatest.Self("fail")})
	must(t, err)
	t.Cleanup(func() { must(t, runtime.Close()) })
	w := newWorld(t)
	w.table("things")
	functions, err := aws.New(t.Context(), aws.Config{Endpoint: runtime.URL(), Region: "us-east-1", AccessKey: "k", SecretKey: "s"})
	must(t, err)
	t.Cleanup(func() { must(t, functions.Close()) })
	const count, fail, dead = "arn:aws:lambda:us-east-1:000000000000:function:count", "arn:aws:lambda:us-east-1:000000000000:function:fail", "arn:aws:sqs:us-east-1:000000000000:dead"
	w.to(count, functions, target.Limits{})
	w.to(fail, functions, target.Limits{})
	notes := make(chan target.Delivery, 10)
	w.to(dead, noted{to: notes}, target.Limits{})
	for v := range 4 {
		w.put("things", "a", v, v)
	}
	runtime.Throttle("fail", 2)
	w.run(
		trigger.Spec{Name: "count", Table: "things", Target: count, Partial: true},
		trigger.Spec{Name: "fail", Table: "things", Target: fail, Bisect: true, Batch: 2, Retries: new(1), OnFailure: dead},
	)
	counted, err := runtime.Finished(t.Context(), "count", 2)
	must(t, err)
	if got := [2]int{strings.Count(string(counted[0].Event), "eventID"), strings.Count(string(counted[1].Event), "eventID")}; got != [2]int{4, 2} {
		t.Errorf("batches of %d records", got)
	}
	select {
	// the batch "0 1" passes, since the function refuses only a batch of 1 alone
	case note := <-notes:
		t.Errorf("abandoned: %s", note.Body)
	default:
	}
	w.put("things", "b", 0, 1)
	note := <-notes
	for _, want := range []string{`"functionError":"Unhandled"`, `"approximateInvokeCount":2`, `"batchSize":1`, `"condition":"RetryAttemptsExhausted"`} {
		if !strings.Contains(string(note.Body), want) {
			t.Errorf("%s does not say %s", note.Body, want)
		}
	}
	await(t, "there is a dead letter", func() bool { return len(w.letters()) > 0 })
	if letters := w.letters(); len(letters) != 1 || !strings.Contains(letters[0].Message, "I do not like 1") {
		t.Errorf("dead letters %+v", letters)
	}
}

// A target that hangs or panics delays its own trigger only, as long as its retries allow, and its
// records become dead letters with the reason.
func TestBadTargets(t *testing.T) {
	w := newWorld(t)
	w.table("things")
	good := &function{}
	w.to("good", good, target.Limits{})
	w.to("hangs", target.Func(func(ctx context.Context, _ target.Delivery) error { <-ctx.Done(); return ctx.Err() }), target.Limits{Timeout: 10 * time.Millisecond})
	w.to("panics", target.Func(func(context.Context, target.Delivery) error { panic("oops") }), target.Limits{})
	w.to("refuses", target.Func(func(context.Context, target.Delivery) error { return target.Permanent("Bad", "never") }), target.Limits{})
	w.put("things", "a", 0, 0)
	w.run(
		trigger.Spec{Name: "good", Table: "things", Target: "good"},
		trigger.Spec{Name: "hangs", Table: "things", Target: "hangs", Retries: new(1)},
		trigger.Spec{Name: "panics", Table: "things", Target: "panics", Retries: new(1)},
		trigger.Spec{Name: "refuses", Table: "things", Target: "refuses", Retries: new(100)},
		trigger.Spec{Name: "nowhere", Table: "things", Target: "nowhere", Retries: new(1)},
	)
	good.got(t, "0")
	await(t, "there are dead letters", func() bool { return len(w.letters()) == 3 }, func() any { return w.letters() })
	var got []string
	for _, l := range w.letters() {
		got = append(got, fmt.Sprint(l.Group, " ", l.Code, " ", l.Attempts))
	}
	slices.Sort(got)
	if s := fmt.Sprint(got); s != "[trigger:hangs TargetTimeout 2 trigger:panics TargetPanicked 2 trigger:refuses Bad 1]" {
		t.Errorf("dead letters %s", s)
	}
	late := &function{} // the trigger waits for a missing target
	w.to("nowhere", late, target.Limits{})
	late.got(t, "0")
}

// Without order, a poisoned record becomes a dead letter with the reason, and blocks no other.
func TestPoison(t *testing.T) {
	for _, per := range []string{"batch", "record"} {
		t.Run(per, func(t *testing.T) {
			w := newWorld(t)
			w.table("things")
			var mu sync.Mutex
			taken := map[string]int{}
			w.to("picky", target.Func(func(_ context.Context, d target.Delivery) error {
				if strings.Contains(string(d.Body), `"v":{"N":"3"}`) {
					return &target.Error{Code: "Poison", Message: "not 3"}
				}
				mu.Lock()
				defer mu.Unlock()
				for v := range 10 {
					taken[fmt.Sprint(v)] += strings.Count(string(d.Body), fmt.Sprintf(`"v":{"N":"%d"}`, v))
				}
				return nil
			}), target.Limits{})
			for v := range 10 {
				w.put("things", "a", v, v)
			}
			w.run(trigger.Spec{Name: "poison", Table: "things", Target: "picky", Order: "none", Per: per, Retries: new(2)})
			await(t, "all but one are taken, and that is dead", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(taken) == 10 && taken["9"] > 0 && len(w.letters()) == 1
			}, func() any { return taken })
			if l := w.letters()[0]; l.Code != "Poison" || l.Message != "not 3" || l.Attempts != 3 || taken["3"] != 0 {
				t.Errorf("dead letter %+v", l)
			}
		})
	}
}

// A delivery per record has the record's id, its key and its subject.
func TestPerRecord(t *testing.T) {
	w := newWorld(t)
	w.table("things")
	var mu sync.Mutex
	var got []target.Delivery
	calls := 0
	w.to("each", batchFunc(func(deliveries []target.Delivery) []error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 1 {
			return []error{errors.New("not yet"), nil}
		}
		got = append(got, deliveries...)
		return make([]error, len(deliveries))
	}), target.Limits{Batch: 10})
	for v := range 3 {
		w.put("things", "a", 0, v)
	}
	w.put("things", "b", 0, 3)
	w.run(trigger.Spec{Name: "each", Table: "things", Target: "each", Per: "record", Batch: 100, Window: 0})
	await(t, "all have come", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) == 3 // the first call accepted "b"
	}, func() any { return len(got) })
	for i, d := range got {
		want := fmt.Sprintf(`"v":{"N":"%d"}`, i)
		if !strings.Contains(string(d.Body), want) || !strings.HasPrefix(string(d.Body), `{"Records":[{"eventID":"`+d.ID+`"`) || d.Subject != `{"k":{"S":"a"},"n":{"N":"0"}}` ||
			d.Key != got[0].Key || d.Key == "" || d.Attempt != 1+max(0, 1-i) || d.ContentType != "application/json" {
			t.Errorf("delivery %d: %+v %s", i, d, d.Body)
		}
	}
}

// A record that was held back because an earlier one failed has used up no attempt.
func TestHeldBackDoesNotCount(t *testing.T) {
	w := newWorld(t)
	w.table("things")
	got := make(chan target.Delivery, 1)
	calls := 0
	w.to("each", batchFunc(func(deliveries []target.Delivery) []error {
		if calls++; calls == 1 {
			return []error{errors.New("never")}
		}
		got <- deliveries[0]
		return make([]error, len(deliveries))
	}), target.Limits{Batch: 1})
	w.put("things", "a", 0, 0)
	w.put("things", "b", 0, 1)
	w.run(trigger.Spec{Name: "each", Table: "things", Target: "each", Per: "record", Batch: 100, Retries: new(0)})
	await(t, "there is a dead letter and a delivery", func() bool { return len(got) == 1 && w.count("mayfly.deadletters") == 1 })
	if d := <-got; d.Attempt != 1 {
		t.Errorf("the first attempt has the number %d", d.Attempt)
	}
}

// batchFunc is a target that receives several deliveries at once.
type batchFunc func([]target.Delivery) []error

func (f batchFunc) Deliver(_ context.Context, deliveries []target.Delivery) []error {
	return f(deliveries)
}
