package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// canned answers every request with the same bytes, and stores the request.
type canned struct {
	status int
	body   string
	calls  int
	seen   http.Header
	asked  string // method and URL
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	c.calls++
	c.seen, c.asked = r.Header, r.Method+" "+r.URL.String()
	return &http.Response{
		StatusCode: c.status,
		Header:     http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"REQUEST"}},
		Body:       io.NopCloser(strings.NewReader(c.body)),
		Request:    r,
	}, r.Context().Err()
}

// A call sends the operation and the body, and nothing that only a network needs.
func TestInProcessCallIsBare(t *testing.T) {
	over := &canned{status: 200, body: `{}`}
	db, streams, _ := InProcess(over, "us-east-1")
	if _, err := db.ListTables(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want := `map[Content-Type:[application/x-amz-json-1.0] X-Amz-Target:[DynamoDB_20120810.ListTables]]`
	if got := fmt.Sprint(over.seen); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := streams.ListStreams(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want = strings.ReplaceAll(want, "DynamoDB_20120810.ListTables", "DynamoDBStreams_20120810.ListStreams")
	if got := fmt.Sprint(over.seen); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A route needs no endpoint: the scheduler's client sends method, path, query and body only.
func TestInProcessSchedulerCallIsBare(t *testing.T) {
	over := &canned{status: 200, body: `{"Name":"a.b"}`}
	_, _, c := InProcess(over, "us-east-1")
	if got, err := c.GetSchedule(t.Context(), &scheduler.GetScheduleInput{Name: aws.String("a.b"), GroupName: aws.String("g")}); err != nil || *got.Name != "a.b" {
		t.Fatal(got, err)
	}
	if got := over.asked + " " + fmt.Sprint(over.seen); got != "GET /schedules/a.b?groupName=g map[]" {
		t.Error(got)
	}
	_, err := c.TagResource(t.Context(), &scheduler.TagResourceInput{
		ResourceArn: aws.String("arn:aws:scheduler:us-east-1:000000000000:schedule-group/g"), Tags: []schedulertypes.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "POST /tags/arn%3Aaws%3Ascheduler%3Aus-east-1%3A000000000000%3Aschedule-group%2Fg map[Content-Type:[application/json]]"
	if got := over.asked + " " + fmt.Sprint(over.seen); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Every operation's stack has the same middlewares to remove. A new SDK with other names fails
// here.
func TestNoNetworkingIsLeft(t *testing.T) {
	db, streams, _ := InProcess(&canned{status: 200, body: `{}`}, "us-east-1")
	var stack string
	note := func(s *middleware.Stack) error { stack = strings.Join(strings.Fields(s.String()), " "); return nil }
	_, err := db.DescribeLimits(t.Context(), nil, func(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, note) })
	if err != nil {
		t.Fatal(err)
	}
	const finalize = "Finalize stack step InterceptBeforeRetryLoop InterceptAttempt Deserialize"
	if !strings.Contains(stack, finalize) {
		t.Errorf("dynamodb: %s", stack)
	}
	_, err = streams.ListStreams(t.Context(), nil, func(o *dynamodbstreams.Options) { o.APIOptions = append(o.APIOptions, note) })
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stack, finalize) {
		t.Errorf("dynamodbstreams: %s", stack)
	}
	_, _, c := InProcess(&canned{status: 200, body: `{}`}, "us-east-1")
	_, err = c.ListSchedules(t.Context(), nil, func(o *scheduler.Options) { o.APIOptions = append(o.APIOptions, note) })
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stack, finalize) {
		t.Errorf("scheduler: %s", stack)
	}
}

func TestInProcessErrorsAreTyped(t *testing.T) {
	db, _, _ := InProcess(&canned{
		status: 400,
		body:   `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"}`,
	}, "us-east-1")
	_, err := db.DescribeLimits(t.Context(), nil)
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) || failed.ErrorMessage() != "The conditional request failed" {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "REQUEST") {
		t.Errorf("the request id is missing: %v", err)
	}
}

// A fault is returned without a retry: the caller, in the same process, decides about that.
func TestInProcessDoesNotRetry(t *testing.T) {
	over := &canned{status: 500, body: `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}`}
	db, _, _ := InProcess(over, "us-east-1")
	if _, err := db.ListTables(t.Context(), nil); err == nil || over.calls != 1 {
		t.Errorf("%d calls, %v", over.calls, err)
	}
}

func TestInProcessStopsWhenCancelled(t *testing.T) {
	db, _, _ := InProcess(&canned{status: 200, body: `{}`}, "us-east-1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.ListTables(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Per-call options work: the headers in the pages travel as headers.
func TestPerCallHeader(t *testing.T) {
	over := &canned{status: 200, body: `{"Records":[]}`}
	db, streams, _ := InProcess(over, "us-east-1")
	wait := func(o *dynamodbstreams.Options) {
		o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("X-Mayfly-Wait-Ms", "250"))
	}
	_, err := streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: aws.String("x")}, wait)
	if err != nil || over.seen.Get("X-Mayfly-Wait-Ms") != "250" {
		t.Errorf("got %v, %v", over.seen, err)
	}
	onlyExpired := func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("X-Mayfly-Expired", "only"))
	}
	_, err = db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("sessions")}, onlyExpired)
	if err != nil || over.seen.Get("X-Mayfly-Expired") != "only" {
		t.Errorf("got %v, %v", over.seen, err)
	}
}

// BenchmarkSDKAlone measures the SDK itself; the rest of an in-process call is the database.
func BenchmarkSDKAlone(b *testing.B) {
	db, _, _ := InProcess(&canned{status: 200, body: `{"Item":{"pk":{"S":"a"},"n":{"N":"1"}}}`}, "us-east-1")
	in := &dynamodb.GetItemInput{
		TableName: aws.String("t"),
		Key:       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := db.GetItem(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
