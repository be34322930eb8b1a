package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/target"
)

const queueARN = "arn:aws:sqs:us-east-1:1:q"

// many makes deliveries to one ARN, with the bodies 0, 1, …
func many(arn string, n int) []target.Delivery {
	all := make([]target.Delivery, n)
	for i := range all {
		all[i] = target.Delivery{ID: fmt.Sprintf("id-%d", i), TargetARN: arn, Body: []byte(strconv.Itoa(i))}
	}
	return all
}

// bodies returns the bodies of the deliveries in a call.
func bodies(r request) (all []string) {
	switch r.operation {
	case "SendMessage":
		return []string{r.json["MessageBody"].(string)}
	case "SendMessageBatch":
		for _, e := range list(r.json["Entries"]) {
			all = append(all, e["MessageBody"].(string))
		}
	case "Publish":
		return []string{r.form.Get("Message")}
	case "PublishBatch":
		for i := 1; r.form.Has(fmt.Sprintf("PublishBatchRequestEntries.member.%d.Id", i)); i++ {
			all = append(all, r.form.Get(fmt.Sprintf("PublishBatchRequestEntries.member.%d.Message", i)))
		}
	case "PutRecords":
		for _, e := range list(r.json["Records"]) {
			all = append(all, e["Data"].(string))
		}
	case "PutRecord":
		return []string{r.json["Data"].(string)}
	case "PutEvents":
		for _, e := range list(r.json["Entries"]) {
			all = append(all, e["Detail"].(string))
		}
	case "PutRecordBatch":
		for _, e := range list(r.json["Records"]) {
			all = append(all, e["Data"].(string))
		}
	}
	return all
}

// Deliveries to one ARN share calls, as many as the service takes, in order.
func TestBatchesByCount(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	for _, c := range []struct {
		arn  string
		n    int
		want string
	}{
		{queueARN, 23, "SendMessageBatch 10, SendMessageBatch 10, SendMessageBatch 3"},
		{queueARN, 11, "SendMessageBatch 10, SendMessage 1"},
		{"arn:aws:sns:us-east-1:1:t", 11, "PublishBatch 10, Publish 1"},
		{"arn:aws:kinesis:us-east-1:1:stream/s", 501, "PutRecords 500, PutRecord 1"},
		{"arn:aws:events:us-east-1:1:event-bus/b", 12, "PutEvents 10, PutEvents 2"},
		{"arn:aws:firehose:us-east-1:1:deliverystream/d", 500, "PutRecordBatch 500"},
		{"arn:aws:states:us-east-1:1:stateMachine:m", 2, "StartExecution 0, StartExecution 0"},
	} {
		deliveries := many(c.arn, c.n)
		if strings.Contains(c.arn, "events") {
			for i := range deliveries {
				deliveries[i].Body = []byte(`{"n":` + strconv.Itoa(i) + `}`)
			}
		}
		if err := errors.Join(s.Deliver(t.Context(), deliveries)...); err != nil {
			t.Errorf("%s: %v", c.arn, err)
		}
		var calls, got []string
		for _, r := range e.seen() {
			calls = append(calls, fmt.Sprintf("%s %d", r.operation, len(bodies(r))))
			got = append(got, bodies(r)...)
		}
		if strings.Join(calls, ", ") != c.want {
			t.Errorf("%s: %s, want %s", c.arn, strings.Join(calls, ", "), c.want)
		}
		if strings.Contains(c.arn, "sqs") && strings.Join(got, " ") != strings.Join(bodiesOf(deliveries), " ") {
			t.Errorf("%s: order %v", c.arn, got)
		}
	}
}

func bodiesOf(deliveries []target.Delivery) (all []string) {
	for _, d := range deliveries {
		all = append(all, string(d.Body))
	}
	return all
}

// A call is no larger than the service takes; one that is larger by itself goes alone, so that only
// it is refused.
func TestBatchesBySize(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	deliveries := many(queueARN, 6)
	for i, size := range []int{100 << 10, 100 << 10, 100 << 10, 300 << 10, 10, 256<<10 - 10} {
		deliveries[i].Body = []byte(strings.Repeat("x", size))
	}
	if err := errors.Join(s.Deliver(t.Context(), deliveries)...); err != nil {
		t.Fatal(err)
	}
	var sizes []string
	for _, r := range e.seen() {
		sizes = append(sizes, strconv.Itoa(len(bodies(r))))
	}
	if strings.Join(sizes, " ") != "2 1 1 2" {
		t.Errorf("calls of %v", sizes)
	}
}

// Deliveries for several ARNs each reach their own, and the results keep their order.
func TestMixedTargets(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	e.answers(func(r request) *answer {
		if r.service == "sns" {
			return refusal(r, 404, "NotFound", "Topic does not exist")
		}
		return nil
	})
	arns := []string{queueARN, "arn:aws:sns:us-east-1:1:t", "arn:aws:ecs:us-east-1:1:cluster/c", queueARN, "arn:aws:kinesis:us-east-1:1:stream/s"}
	deliveries := many("", len(arns))
	for i := range arns {
		deliveries[i].TargetARN = arns[i]
	}
	results := s.Deliver(t.Context(), deliveries)
	for i, want := range []string{"", "NotFound", codeUnsupported, "", ""} {
		got := ""
		if err := target.AsError(results[i]); err != nil {
			got = err.Code
		}
		if got != want {
			t.Errorf("%s: %v", arns[i], results[i])
		}
	}
	if seen := e.seen(); len(seen) != 3 || len(bodies(seen[0])) != 2 {
		t.Errorf("%d calls", len(seen))
	}
}

// In a partly successful batch each delivery has the service's result for it, in any order of the
// answer.
func TestPartialFailures(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	for _, c := range []struct {
		arn    string
		answer any
		want   []string // code, and a mark: ! permanent, ~ throttled
	}{
		{
			queueARN,
			map[string]any{
				"Failed": []any{
					map[string]any{"Id": "3", "Code": "InternalError", "Message": "later", "SenderFault": false},
					map[string]any{"Id": "1", "Code": "InvalidMessageContents", "Message": "bad", "SenderFault": true},
					map[string]any{"Id": "4", "Code": "ThrottlingException", "Message": "slow", "SenderFault": true},
					map[string]any{"Id": "0", "Code": "Again", "SenderFault": true},
					map[string]any{"Id": "77", "Code": "Strange", "SenderFault": true},
				},
				"Successful": []any{map[string]any{"Id": "0", "MessageId": "m", "MD5OfMessageBody": md5Of("0")}},
			},
			[]string{"", "InvalidMessageContents!", codeMalformed, "InternalError", "ThrottlingException~"},
		},
		{
			"arn:aws:kinesis:us-east-1:1:stream/s",
			map[string]any{"FailedRecordCount": 2, "Records": []any{
				map[string]any{"SequenceNumber": "1", "ShardId": "s"},
				map[string]any{"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "slow"},
				map[string]any{"ErrorCode": "InternalFailure", "ErrorMessage": "oops"},
				map[string]any{"SequenceNumber": "1", "ShardId": "s"},
			}},
			[]string{"", "ProvisionedThroughputExceededException~", "InternalFailure", "", codeMalformed},
		},
		{
			"arn:aws:firehose:us-east-1:1:deliverystream/d",
			map[string]any{"FailedPutCount": 1, "RequestResponses": []any{
				map[string]any{"RecordId": "r"}, map[string]any{"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "slow"},
				map[string]any{"RecordId": "r"}, map[string]any{"RecordId": "r"}, map[string]any{"RecordId": "r"},
			}},
			[]string{"", "ServiceUnavailableException", "", "", ""},
		},
		{
			"arn:aws:events:us-east-1:1:event-bus/b",
			map[string]any{"FailedEntryCount": 3, "Entries": []any{
				map[string]any{"EventId": "e"}, map[string]any{"ErrorCode": "MalformedDetail", "ErrorMessage": "bad"}, map[string]any{"ErrorCode": "InternalFailure"},
				map[string]any{"ErrorCode": "ThrottlingException"}, map[string]any{"EventId": "e"},
			}},
			[]string{"", "MalformedDetail!", "InternalFailure", "ThrottlingException~", ""},
		},
	} {
		e.answers(func(request) *answer { return reply(c.answer) })
		deliveries := many(c.arn, 5)
		if strings.Contains(c.arn, "events") {
			for i := range deliveries {
				deliveries[i].Body = []byte(`{}`)
			}
		}
		for i, result := range s.Deliver(t.Context(), deliveries) {
			got := ""
			if err := target.AsError(result); err != nil {
				got = err.Code
				if err.Permanent {
					got += "!"
				}
				if err.Throttled {
					got += "~"
				}
			}
			if got != c.want[i] {
				t.Errorf("%s, delivery %d: %q (%v), want %q", c.arn, i, got, result, c.want[i])
			}
		}
	}
}

// A delivery that the service does not take does not take its neighbours with it: the batch is
// halved until it is alone.
func TestPoisonedBatch(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	e.answers(func(r request) *answer {
		if slices.Contains(bodies(r), "3") {
			return refusal(r, 400, "ValidationError", "Invalid characters found")
		}
		return nil
	})
	for i, err := range s.Deliver(t.Context(), many(queueARN, 10)) {
		if got := target.AsError(err); i == 3 && (got == nil || got.Code != "ValidationError" || !got.Permanent) || i != 3 && err != nil {
			t.Errorf("delivery %d: %v", i, err)
		}
	}
	arrived := map[string]int{}
	for _, r := range e.seen() {
		if got := bodies(r); !strings.Contains(" "+strings.Join(got, " ")+" ", " 3 ") {
			for _, body := range got {
				arrived[body]++
			}
		}
	}
	if len(arrived) != 9 || arrived["0"] != 1 {
		t.Errorf("arrived: %v", arrived)
	}
	// A failure of all entries is not split further.
	e.answers(func(r request) *answer {
		return refusal(r, 400, "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
	})
	for i, err := range s.Deliver(t.Context(), many(queueARN, 10)) {
		if got := target.AsError(err); got == nil || !got.Permanent || got.Code != "AWS.SimpleQueueService.NonExistentQueue" {
			t.Errorf("delivery %d: %v", i, err)
		}
	}
	if n := len(e.seen()); n != 1 {
		t.Errorf("%d calls of a queue that is not there", n)
	}
}

// If the target keeps an order, no delivery passes a failed one of its key, for any answers of the
// service; all others continue.
func TestOrderOfKeys(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "c"}), 1, 30).Draw(t, "keys")
		fails := rapid.SliceOfN(rapid.Bool(), len(keys), len(keys)).Draw(t, "fails")
		e.answers(func(r request) *answer {
			if r.operation == "PutRecord" {
				if fails[numberIn(r.json["PartitionKey"])] {
					return refusal(r, 500, "InternalFailure", "oops")
				}
				return nil
			}
			var records []any
			failed := 0
			for _, part := range list(r.json["Records"]) {
				if fails[numberIn(part["PartitionKey"])] {
					failed++
					records = append(records, map[string]any{"ErrorCode": "InternalFailure", "ErrorMessage": "oops"})
				} else {
					records = append(records, map[string]any{"SequenceNumber": "1", "ShardId": "s"})
				}
			}
			return reply(map[string]any{"FailedRecordCount": failed, "Records": records})
		})
		deliveries := many("arn:aws:kinesis:us-east-1:1:stream/s", len(keys))
		for i, key := range keys {
			deliveries[i].Key = key
			deliveries[i].Parameters = []byte(`{"KinesisParameters":{"PartitionKey":"` + strconv.Itoa(i) + `"}}`)
		}
		results := s.Deliver(context.Background(), deliveries)
		var arrived []int
		for _, r := range e.seen() {
			if r.operation == "PutRecord" {
				if i := numberIn(r.json["PartitionKey"]); !fails[i] {
					arrived = append(arrived, i)
				}
				continue
			}
			inCall := map[string]bool{}
			for _, part := range list(r.json["Records"]) {
				i := numberIn(part["PartitionKey"])
				if keys[i] != "" && inCall[keys[i]] {
					t.Fatalf("two deliveries of %q in a call", keys[i])
				}
				inCall[keys[i]] = true
				if !fails[i] {
					arrived = append(arrived, i)
				}
			}
		}
		has := map[int]bool{}
		for at, i := range arrived {
			has[i] = true
			if at > 0 && arrived[at-1] >= i {
				t.Fatalf("arrived: %v", arrived)
			}
		}
		failed := map[string]bool{}
		for i, key := range keys {
			if (results[i] == nil) != has[i] {
				t.Fatalf("delivery %d: %v, arrived %v", i, results[i], arrived)
			}
			if key != "" && failed[key] && results[i] == nil {
				t.Fatalf("delivery %d passed one that failed before it, of key %q", i, key)
			}
			failed[key] = failed[key] || results[i] != nil
		}
	})
}

// Deliveries with a call each go concurrently, and those of one key one after another.
func TestCallsSideBySide(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	var mu sync.Mutex
	var order []string
	all := make(chan struct{})
	e.answers(func(r request) *answer {
		mu.Lock()
		order = append(order, string(r.body))
		if len(order) == atOnce {
			close(all)
		}
		mu.Unlock()
		if string(r.body) != "2" { // the second of its key: it comes when the first has gone
			<-all
		}
		return nil
	})
	deliveries := many("arn:aws:lambda:us-east-1:1:function:f", atOnce+1)
	deliveries[0].Key, deliveries[2].Key = "k", "k"
	if err := errors.Join(s.Deliver(t.Context(), deliveries)...); err != nil {
		t.Fatal(err)
	}
	if len(order) != atOnce+1 || order[atOnce] != "2" {
		t.Errorf("%v", order)
	}
}

// A call that panics is a failed attempt.
func TestPanic(t *testing.T) {
	results := make([]error, 2)
	singly(func(_ context.Context, d *target.Delivery) error {
		if d.ID == "id-1" {
			panic("oops")
		}
		return nil
	})(t.Context(), many(queueARN, 2), []int{0, 1}, results)
	if e := target.AsError(results[1]); results[0] != nil || e == nil || e.Message != "oops" || e.Permanent {
		t.Errorf("%v", results)
	}
}

func numberIn(text any) int {
	n, err := strconv.Atoi(text.(string))
	if err != nil {
		panic(err)
	}
	return n
}

// Unsent deliveries at the time limit have failed, and are not sent.
func TestTimeIsUp(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	ctx, cancel := context.WithCancel(t.Context())
	e.answers(func(request) *answer { cancel(); return nil })
	results := s.Deliver(ctx, many(queueARN, 25))
	if !errors.Is(results[24], context.Canceled) || len(e.seen()) != 1 {
		t.Errorf("%v", results[24])
	}
}
