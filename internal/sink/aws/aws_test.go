package aws

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// unset removes a variable from the environment until the test ends.
func unset(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "")
	if err := os.Unsetenv(name); err != nil {
		t.Fatal(err)
	}
}

// A delivery to a resource's ARN is the call that EventBridge Scheduler makes of it, signed for the
// service in the ARN's region.
func TestCalls(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name     string
		delivery target.Delivery
		service  string
		call     string
		body     string // JSON of the request, or its form
	}{
		{
			"queue", target.Delivery{TargetARN: "arn:aws:sqs:eu-west-1:123456789012:jobs", Body: []byte("hello"), Attributes: map[string]string{"ERROR_CODE": "X", "EMPTY": ""}},
			"sqs", "SendMessage",
			`{"QueueUrl":"` + e.URL + `/123456789012/jobs","MessageBody":"hello","MessageAttributes":{"ERROR_CODE":{"DataType":"String","StringValue":"X"}}}`,
		},
		{
			"FIFO queue", target.Delivery{
				ID: "d1", TargetARN: "arn:aws:sqs:eu-west-1:123456789012:jobs.fifo", Body: []byte("hello"), Key: "k", Parameters: []byte(`{"SqsParameters":{"MessageGroupId":"g"}}`),
			},
			"sqs", "SendMessage",
			`{"QueueUrl":"` + e.URL + `/123456789012/jobs.fifo","MessageBody":"hello","MessageAttributes":{},"MessageGroupId":"g","MessageDeduplicationId":"d1"}`,
		},
		{
			"FIFO queue, grouped by the key", target.Delivery{ID: "d1", TargetARN: "arn:aws:sqs:eu-west-1:123456789012:jobs.fifo", Body: []byte("hello"), Key: "k"},
			"sqs", "SendMessage",
			`{"QueueUrl":"` + e.URL + `/123456789012/jobs.fifo","MessageBody":"hello","MessageAttributes":{},"MessageGroupId":"k","MessageDeduplicationId":"d1"}`,
		},
		{
			"topic", target.Delivery{TargetARN: "arn:aws:sns:eu-west-1:123456789012:news", Body: []byte("hello"), Attributes: map[string]string{"a": "b"}},
			"sns", "Publish",
			`Action=Publish&Message=hello&MessageAttributes.entry.1.Name=a&MessageAttributes.entry.1.Value.DataType=String&MessageAttributes.entry.1.Value.StringValue=b` +
				`&TopicArn=arn%3Aaws%3Asns%3Aeu-west-1%3A123456789012%3Anews&Version=2010-03-31`,
		},
		{
			"FIFO topic", target.Delivery{ID: "d1", TargetARN: "arn:aws:sns:eu-west-1:123456789012:news.fifo", Body: []byte("hello"), Key: "k"},
			"sns", "Publish",
			`Action=Publish&Message=hello&MessageDeduplicationId=d1&MessageGroupId=k&TopicArn=arn%3Aaws%3Asns%3Aeu-west-1%3A123456789012%3Anews.fifo&Version=2010-03-31`,
		},
		{
			"stream", target.Delivery{TargetARN: "arn:aws:kinesis:eu-west-1:123456789012:stream/clicks", Body: []byte("hello"), Key: "k", Parameters: []byte(`{"KinesisParameters":{"PartitionKey":"p"}}`)},
			"kinesis", "PutRecord",
			`{"StreamARN":"arn:aws:kinesis:eu-west-1:123456789012:stream/clicks","StreamName":"clicks","Data":"aGVsbG8=","PartitionKey":"p"}`,
		},
		{
			"stream, parted by the id", target.Delivery{ID: "d1", TargetARN: "arn:aws:kinesis:eu-west-1:123456789012:stream/clicks"},
			"kinesis", "PutRecord",
			`{"StreamARN":"arn:aws:kinesis:eu-west-1:123456789012:stream/clicks","StreamName":"clicks","Data":"","PartitionKey":"d1"}`,
		},
		{
			"delivery stream", target.Delivery{TargetARN: "arn:aws:firehose:eu-west-1:123456789012:deliverystream/archive", Body: []byte("hello")},
			"firehose", "PutRecord", `{"DeliveryStreamName":"archive","Record":{"Data":"aGVsbG8="}}`,
		},
		{
			"event bus", target.Delivery{
				TargetARN: "arn:aws:events:eu-west-1:123456789012:event-bus/b", Body: []byte(` {"a":1}`), Time: at, Source: "arn:aws:scheduler:eu-west-1:123456789012:schedule/default/s",
				Parameters: []byte(`{"EventBridgeParameters":{"DetailType":"Order","Source":"shop"}}`),
			},
			"events", "PutEvents",
			`{"Entries":[{"EventBusName":"arn:aws:events:eu-west-1:123456789012:event-bus/b","Detail":" {\"a\":1}","DetailType":"Order","Source":"shop","Time":1893553445,` +
				`"Resources":["arn:aws:scheduler:eu-west-1:123456789012:schedule/default/s"]}]}`,
		},
		{
			"event bus, without parameters", target.Delivery{TargetARN: "arn:aws:events:eu-west-1:123456789012:event-bus/b", Body: []byte(`{}`), Type: "Scheduled Event"},
			"events", "PutEvents",
			`{"Entries":[{"EventBusName":"arn:aws:events:eu-west-1:123456789012:event-bus/b","Detail":"{}","DetailType":"Scheduled Event","Source":"mayfly"}]}`,
		},
		{
			"state machine", target.Delivery{ID: "d1", TargetARN: "arn:aws:states:eu-west-1:123456789012:stateMachine:m", Body: []byte(`{"a":1}`)},
			"states", "StartExecution",
			`{"stateMachineArn":"arn:aws:states:eu-west-1:123456789012:stateMachine:m","name":"d1","input":"{\"a\":1}"}`,
		},
		{
			"function", target.Delivery{TargetARN: "arn:aws:lambda:eu-west-1:123456789012:function:resize", Body: []byte(`{"a":1}`)},
			"lambda", "POST /2015-03-31/functions/resize/invocations", `{"a":1}`,
		},
		{
			"alias of a function", target.Delivery{TargetARN: "arn:aws:lambda:eu-west-1:123456789012:function:resize:live"},
			"lambda", "POST /2015-03-31/functions/resize/invocations?Qualifier=live", ``,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := deliver(t.Context(), s, c.delivery); err != nil {
				t.Fatal(err)
			}
			got := e.one()
			call := got.operation
			if len(got.query) > 0 {
				call += "?" + got.query.Encode()
			}
			if got.service != c.service || call != c.call || got.region != "eu-west-1" {
				t.Errorf("%s %s in %s, want %s %s", got.service, call, got.region, c.service, c.call)
			}
			if got.service == "lambda" && got.header.Get("X-Amz-Invocation-Type") != "Event" {
				t.Errorf("invocation type %q", got.header.Get("X-Amz-Invocation-Type"))
			}
			if got.form != nil && got.form.Encode() != c.body || got.form == nil && !sameJSON(got.body, []byte(c.body)) {
				t.Errorf("got  %s\nwant %s", got.body, c.body)
			}
		})
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	errA, errB := json.Unmarshal(a, &x), json.Unmarshal(b, &y)
	return reflect.DeepEqual(x, y) && (errA == nil) == (errB == nil)
}

// Impossible deliveries fail permanently, each with advice, and without a call.
func TestRefusals(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	for _, c := range []struct {
		arn, parameters, body string
		code, says            string
	}{
		{"", "", "", codeInvalid, "is not one"},
		{"queue", "", "", codeInvalid, "The target ARN queue is not one"},
		{"arn:aws:sqs:evil.example/:1:q", "", "", codeInvalid, "is not one"},
		{"arn:aws:sqs:us-east-1:1:a/b", "", "", codeInvalid, "does not name a queue"},
		{"arn:aws:sqs:us-east-1:1:q.fifo", "", "", "MissingParameter", "set SqsParameters.MessageGroupId"},
		{"arn:aws:sqs:us-east-1:1:q.fifo", `{"SqsParameters":{"MessageGroupId":1}}`, "", codeInvalid, "The target's parameters cannot be read"},
		{"arn:aws:sns:us-east-1:1:t.fifo", "", "", "MissingParameter", "MessageGroupId"},
		{"arn:aws:kinesis:us-east-1:1:s", "", "", codeInvalid, "stream/<name>"},
		{"arn:aws:firehose:us-east-1:1:s", "", "", codeInvalid, "deliverystream/<name>"},
		{"arn:aws:events:us-east-1:1:rule/r", "", "", codeInvalid, "event-bus/<name>"},
		{"arn:aws:events:us-east-1:1:event-bus/b", "", "[1]", codeInvalid, "must be a JSON object"},
		{"arn:aws:events:us-east-1:1:event-bus/b", "", "{", codeInvalid, "must be a JSON object"},
		{"arn:aws:states:us-east-1:1:activity:a", "", "", codeInvalid, "stateMachine:<name>"},
		{"arn:aws:lambda:us-east-1:1:layer:l", "", "", codeInvalid, "function:<name>"},
		{"arn:aws:ecs:us-east-1:1:cluster/c", "", "", codeUnsupported, "AWS targets do not deliver to ecs (arn:aws:ecs:us-east-1:1:cluster/c): starting tasks needs a cluster; map the ARN to a webhook"},
		{"arn:aws:codebuild:us-east-1:1:project/p", "", "", codeUnsupported, "starts the build"},
		{"arn:aws:s3:::bucket", "", "", codeUnsupported, "map the ARN to a webhook"},
		{"arn:aws:scheduler:::aws-sdk:ec2:startInstances", "", "{}", codeUnsupported, "AWS targets make no calls of ec2"},
		{"arn:aws:scheduler:::aws-sdk:dynamodb:deleteItem", "", "{}", codeUnsupported, "the scheduler itself calls DynamoDB"},
		{"arn:aws:scheduler:::aws-sdk:sqs:receiveMessage", "", "{}", codeUnsupported, "AWS targets do not call receiveMessage of sqs; they call cancelMessageMoveTask, changeMessageVisibility, "},
		{"arn:aws:scheduler:::aws-sdk:sqs", "", "{}", codeInvalid, "is not one"},
	} {
		err := deliver(t.Context(), s, target.Delivery{TargetARN: c.arn, Parameters: []byte(c.parameters), Body: []byte(c.body)})
		if err == nil || err.Code != c.code || !strings.Contains(err.Message, c.says) || !err.Permanent {
			t.Errorf("%s %s %s: %+v", c.arn, c.parameters, c.body, err)
		}
	}
	if seen := e.seen(); len(seen) != 0 {
		t.Errorf("%d calls", len(seen))
	}
}

// Step Functions has an execution of this name already: an earlier attempt started it.
func TestExecutionIsStartedOnce(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	e.answers(func(r request) *answer {
		return refusal(r, 400, "ExecutionAlreadyExists", "Execution Already Exists: 'arn:…'")
	})
	d := target.Delivery{TargetARN: "arn:aws:states:us-east-1:1:stateMachine:m", Attempt: 2}
	if err := deliver(t.Context(), s, d); err != nil {
		t.Error(err)
	}
	// One that a universal target names itself is a stranger's.
	d.TargetARN, d.Body = "arn:aws:scheduler:::aws-sdk:sfn:startExecution", []byte(`{"StateMachineArn":"arn:aws:states:us-east-1:1:stateMachine:m","Name":"n"}`)
	if err := deliver(t.Context(), s, d); err == nil || err.Code != "ExecutionAlreadyExists" || !err.Permanent {
		t.Errorf("universal: %v", err)
	}
}

// An execution's name is the delivery's ID wherever that is a name, and always the same.
func TestExecutionName(t *testing.T) {
	if got := executionName("0af3-B_9"); got != "0af3-B_9" {
		t.Error(got)
	}
	long, odd := executionName(strings.Repeat("a", 81)), executionName("trigger:1.2")
	if len(long) != 64 || len(odd) != 64 || long == odd || odd != executionName("trigger:1.2") || len(executionName("")) != 64 {
		t.Errorf("%q %q", long, odd)
	}
}

// Endpoints other than Amazon's get functions by name, which all of them know, or by the configured
// name.
func TestFunctionNames(t *testing.T) {
	e := startEndpoint(t)
	s := newSink(t, Config{Endpoint: e.URL, AccessKey: testAccessKey, SecretKey: testSecretKey, Function: "function"})
	if err := deliver(t.Context(), s, target.Delivery{TargetARN: "arn:aws:lambda:eu-west-1:1:function:resize:live"}); err != nil {
		t.Fatal(err)
	}
	if got := e.one(); got.path != "/2015-03-31/functions/function/invocations" || len(got.query) != 0 {
		t.Errorf("%s %v", got.path, got.query)
	}
	amazon, err := newClients(t.Context(), Config{Region: "eu-west-1"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := parseARN("arn:aws:lambda:eu-west-1:1:function:resize:live")
	if err != nil {
		t.Fatal(err)
	}
	in, err := amazon.functionOf(a)
	if err != nil || *in.FunctionName != a.text || in.Qualifier != nil {
		t.Errorf("Amazon's: %v, %v", in, err)
	}
	if address, err := amazon.queueURL(must(parseARN("arn:aws:sqs:eu-west-1:1:q"))); err != nil || address != "https://sqs.eu-west-1.amazonaws.com/1/q" {
		t.Errorf("Amazon's queue: %s, %v", address, err)
	}
	if address, err := amazon.queueURL(must(parseARN("arn:aws-cn:sqs:cn-north-1:1:q"))); err != nil || address != "https://sqs.cn-north-1.amazonaws.com.cn/1/q" {
		t.Errorf("a queue in China: %s, %v", address, err)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// A message has no more attributes than the services take, and none that is empty.
func TestAttributes(t *testing.T) {
	given := map[string]string{"empty": ""}
	for i := range 12 {
		given[fmt.Sprintf("a%02d", i)] = "x"
	}
	got := messageAttributes(given)
	if _, has := got["a09"]; len(got) != 10 || !has {
		t.Errorf("%v", got)
	}
}

// A partition key is cut at Kinesis' limit, between characters.
func TestPartitionKeyLength(t *testing.T) {
	e, _, err := streamEntry(&target.Delivery{Key: strings.Repeat("é", 300)})
	if err != nil || *e.PartitionKey != strings.Repeat("é", 256) {
		t.Errorf("%d bytes, %v", len(*e.PartitionKey), err)
	}
}

// Universal targets make the call of the Input.
func TestUniversalCalls(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	for _, c := range []struct {
		of, input           string
		service, call, body string
	}{
		{
			"sqs:sendMessage", `{"QueueUrl":"http://q/1/a","MessageBody":"hi","DelaySeconds":5,"MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"AAE="}}}`,
			"sqs", "SendMessage", `{"QueueUrl":"http://q/1/a","MessageBody":"hi","DelaySeconds":5,"MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"AAE="}}}`,
		},
		{
			"sns:publish", `{"TopicArn":"arn:aws:sns:us-east-1:1:t","Message":"hi","MessageStructure":"json"}`,
			"sns", "Publish", `Action=Publish&Message=hi&MessageStructure=json&TopicArn=arn%3Aaws%3Asns%3Aus-east-1%3A1%3At&Version=2010-03-31`,
		},
		{
			"lambda:invoke", `{"FunctionName":"f","InvocationType":"Event","Payload":"{\"a\":1}"}`,
			"lambda", "POST /2015-03-31/functions/f/invocations", `{"a":1}`,
		},
		{
			"sfn:startExecution", `{"StateMachineArn":"arn:aws:states:us-east-1:1:stateMachine:m","Input":"{}"}`,
			"states", "StartExecution", `{"stateMachineArn":"arn:aws:states:us-east-1:1:stateMachine:m","input":"{}"}`,
		},
		{
			"stepfunctions:stopExecution", `{"ExecutionArn":"arn:aws:states:us-east-1:1:execution:m:n"}`,
			"states", "StopExecution", `{"executionArn":"arn:aws:states:us-east-1:1:execution:m:n"}`,
		},
		{
			"kinesis:putRecord", `{"StreamName":"s","PartitionKey":"p","Data":"aGVsbG8="}`,
			"kinesis", "PutRecord", `{"StreamName":"s","PartitionKey":"p","Data":"aGVsbG8="}`,
		},
		{
			"eventbridge:putEvents", `{"Entries":[{"Source":"s","DetailType":"d","Detail":"{}","Time":"2030-01-02T03:04:05Z"},{"Source":"s","DetailType":"d","Detail":"{}","Time":1893553445.5}]}`,
			"events", "PutEvents", `{"Entries":[{"Source":"s","DetailType":"d","Detail":"{}","Time":1893553445},{"Source":"s","DetailType":"d","Detail":"{}","Time":1893553445.5}]}`,
		},
		{"events:disableRule", `{"Name":"r"}`, "events", "DisableRule", `{"Name":"r"}`},
		{
			"ses:sendEmail", `{"Source":"a@b.example","Destination":{"ToAddresses":["c@d.example"]},"Message":{"Subject":{"Data":"s"},"Body":{"Text":{"Data":"t"}}}}`,
			"ses", "SendEmail",
			`Action=SendEmail&Destination.ToAddresses.member.1=c%40d.example&Message.Body.Text.Data=t&Message.Subject.Data=s&Source=a%40b.example&Version=2010-12-01`,
		},
		{
			"sesv2:sendEmail", `{"FromEmailAddress":"a@b.example","Destination":{"ToAddresses":["c@d.example"]},"Content":{"Raw":{"Data":"aGVsbG8="}}}`,
			"ses", "POST /v2/email/outbound-emails", `{"FromEmailAddress":"a@b.example","Destination":{"ToAddresses":["c@d.example"]},"Content":{"Raw":{"Data":"aGVsbG8="}}}`,
		},
	} {
		t.Run(c.of, func(t *testing.T) {
			d := target.Delivery{TargetARN: "arn:aws:scheduler:::aws-sdk:" + c.of, Source: "arn:aws:scheduler:ap-south-1:1:schedule/default/s", Body: []byte(c.input)}
			if err := deliver(t.Context(), s, d); err != nil {
				t.Fatal(err)
			}
			got := e.one()
			if got.service != c.service || got.operation != c.call || got.region != "ap-south-1" {
				t.Errorf("%s %s in %s, want %s %s in the schedule's region", got.service, got.operation, got.region, c.service, c.call)
			}
			if got.form != nil && got.form.Encode() != c.body || got.form == nil && !sameJSON(got.body, []byte(c.body)) {
				t.Errorf("got  %s\nwant %s", got.body, c.body)
			}
		})
	}
}

// inputOf returns a new input of an operation, without a call.
func inputOf(o operation) (in any) {
	_, _ = o(call{}, func(made any) error {
		in = made
		return errors.ErrUnsupported
	})
	return in
}

// The table is consistent: each action is the operation of that name, writes or sends, and is
// signed for its service.
func TestOperationTable(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	signs := map[string]string{"sfn": "states", "eventbridge": "events", "sesv2": "ses"}
	reading := []string{
		"get", "describe", "list", "poll", "receive", "search", "scan", "query", "select", "read", "lookup", "discover", "validate", "batchGet", "retrieve", "testConnection",
	}
	called := 0
	for name, operation := range operations() {
		service, action, _ := strings.Cut(name, ":")
		if got, want := reflect.TypeOf(inputOf(operation)).String(), "*"+service+"."+strings.ToUpper(action[:1])+action[1:]+"Input"; got != want {
			t.Errorf("%s takes a %s", name, got)
		}
		if slices.ContainsFunc(reading, func(prefix string) bool { return strings.HasPrefix(action, prefix) }) {
			t.Errorf("%s reads", name)
		}
		err := deliver(t.Context(), s, target.Delivery{TargetARN: "arn:aws:scheduler:::aws-sdk:" + name, Source: "arn:aws:scheduler:eu-west-1:1:schedule/default/s", Body: []byte(`{}`)})
		if err != nil && (err.Code != codeInvalid || !strings.Contains(err.Message, "required field")) {
			t.Errorf("%s of nothing: %v", name, err)
		}
		for _, got := range e.seen() {
			called++
			want := service
			if signs[service] != "" {
				want = signs[service]
			}
			if got.service != want || got.region != "eu-west-1" {
				t.Errorf("%s is signed for %s in %s", name, got.service, got.region)
			}
		}
	}
	if called == 0 {
		t.Error("none takes an empty input")
	}
}

// The page of the documentation lists the actions that there are.
func TestOperationsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/targets-aws.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 {
			continue
		}
		service, _, _ := strings.Cut(strings.TrimPrefix(cells[0], "| `"), "`")
		if callsOf(service) == "" {
			continue
		}
		actions := strings.Split(strings.TrimSuffix(strings.TrimSpace(cells[1]), " |"), ", ")
		documented += len(actions)
		slices.Sort(actions)
		if got := strings.Join(actions, ", "); got != callsOf(service) {
			t.Errorf("%s: the page has\n%s\nthe table\n%s", service, got, callsOf(service))
		}
	}
	if documented != len(operations()) {
		t.Errorf("the page has %d of %d actions", documented, len(operations()))
	}
}

// Failures of entries in a successful answer are found.
func TestUniversalOutcomes(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	for _, c := range []struct {
		of, input, answer string
		header            map[string]string
		code, says        string
		permanent         bool
	}{
		{
			of: "sqs:sendMessageBatch", input: `{"QueueUrl":"http://q","Entries":[{"Id":"a","MessageBody":"x"},{"Id":"b","MessageBody":"y"}]}`,
			answer: `{"Successful":[],"Failed":[{"Id":"a","Code":"InvalidMessageContents","Message":"bad","SenderFault":true},{"Id":"b","Code":"InternalError","Message":"oops","SenderFault":false}]}`,
			code:   "InternalError", says: "oops (2 entries failed)",
		},
		{
			of: "eventbridge:putEvents", input: `{"Entries":[{"Source":"s","DetailType":"d","Detail":"{}"}]}`,
			answer: `{"FailedEntryCount":1,"Entries":[{"ErrorCode":"MalformedDetail","ErrorMessage":"Detail is malformed."}]}`,
			code:   "MalformedDetail", says: "Detail is malformed.", permanent: true,
		},
		{
			of: "kinesis:putRecords", input: `{"StreamName":"s","Records":[{"PartitionKey":"p","Data":"AA=="}]}`,
			answer: `{"FailedRecordCount":1,"Records":[{"ErrorCode":"ProvisionedThroughputExceededException","ErrorMessage":"slow"}]}`,
			code:   "ProvisionedThroughputExceededException", says: "slow",
		},
		{
			of: "sesv2:sendBulkEmail", input: `{"DefaultContent":{"Template":{"TemplateName":"t","TemplateData":"{}"}},"BulkEmailEntries":[{"Destination":{"ToAddresses":["a@b.example"]}}]}`,
			answer: `{"BulkEmailEntryResults":[{"Status":"MESSAGE_REJECTED","Error":"no"}]}`,
			code:   "MESSAGE_REJECTED", says: "no", permanent: true,
		},
		{
			of: "lambda:invoke", input: `{"FunctionName":"f","Payload":"{}"}`,
			answer: `{"errorType":"ValueError","errorMessage":"no such order"}`, header: map[string]string{"X-Amz-Function-Error": "Unhandled"},
			code: "Unhandled", says: "ValueError: no such order", permanent: true,
		},
	} {
		e.answers(func(request) *answer { return &answer{body: c.answer, header: c.header} })
		err := deliver(t.Context(), s, target.Delivery{TargetARN: "arn:aws:scheduler:::aws-sdk:" + c.of, Body: []byte(c.input)})
		if err == nil || err.Code != c.code || err.Message != c.says || err.Permanent != c.permanent {
			t.Errorf("%s: %+v", c.of, err)
		}
	}
}

// An invalid Input is refused with the reason.
func TestInputs(t *testing.T) {
	e := startEndpoint(t)
	s := sinkAt(t, e.URL)
	for _, c := range []struct{ of, input, says string }{
		{"sqs:sendMessage", ``, "The Input is not JSON: it is empty"},
		{"sqs:sendMessage", `{`, "The Input is not JSON: unexpected EOF"},
		{"sqs:sendMessage", `{} {}`, "The Input has more than one JSON value"},
		{"sqs:sendMessage", `"x"`, "The Input must be an object, and is a string"},
		{"sqs:sendMessage", `{"QueueURL":"q"}`, "The Input has a member QueueURL that the operation does not have; it is called QueueUrl"},
		{"sqs:sendMessage", `{"queueUrl":"q"}`, "The Input has a member queueUrl that the operation does not have; it is called QueueUrl"},
		{"sqs:sendMessage", `{"Queue":"q"}`, "The Input has a member Queue that the operation does not have"},
		{"sqs:sendMessage", `{"noSmithyDocumentSerde":{}}`, "The Input has a member noSmithyDocumentSerde that the operation does not have"},
		{"sqs:sendMessage", `{"QueueUrl":1}`, "The member QueueUrl must be a string, and is a number"},
		{"sqs:sendMessage", `{"QueueUrl":"q","DelaySeconds":1.5}`, "The member DelaySeconds must be a whole number in range"},
		{"sqs:sendMessage", `{"QueueUrl":"q","DelaySeconds":99999999999}`, "The member DelaySeconds must be a whole number in range"},
		{"sqs:sendMessage", `{"QueueUrl":"q","DelaySeconds":"1"}`, "The member DelaySeconds must be a whole number, and is a string"},
		{"sqs:sendMessage", `{"MessageAttributes":[]}`, "The member MessageAttributes must be an object, and is an array"},
		{"sqs:sendMessage", `{"MessageAttributes":{"a":{"BinaryValue":"?"}}}`, "The member MessageAttributes.a.BinaryValue must be base64"},
		{"sqs:sendMessage", `{"QueueUrl":"q"}`, "1 validation error(s) found.\n- missing required field, SendMessageInput.MessageBody.\n"},
		{"eventbridge:putEvents", `{"Entries":{}}`, "The member Entries must be an array, and is an object"},
		{"eventbridge:putEvents", `{"Entries":[{"Time":"tomorrow"}]}`, "The member Entries[0].Time must be a time, as 2030-01-02T03:04:05Z or in epoch seconds, and is a string"},
		{"eventbridge:putEvents", `{"Entries":[{"Time":true}]}`, "The member Entries[0].Time must be a time, as 2030-01-02T03:04:05Z or in epoch seconds, and is a boolean"},
		{"lambda:invoke", `{"FunctionName":"f","Payload":{"a":1}}`, "The member Payload must be a string, and is an object"},
		{"sqs:createQueue", `{"QueueName":"q","Attributes":{"DelaySeconds":5}}`, "The member Attributes.DelaySeconds must be a string, and is a number"},
	} {
		err := deliver(t.Context(), s, target.Delivery{TargetARN: "arn:aws:scheduler:::aws-sdk:" + c.of, Body: []byte(c.input)})
		if err == nil || err.Code != codeInvalid || !err.Permanent || err.Message != c.says {
			t.Errorf("%s %s:\ngot  %v\nwant %s", c.of, c.input, err, c.says)
		}
	}
	if seen := e.seen(); len(seen) != 0 {
		t.Errorf("%d calls", len(seen))
	}
}

// FuzzInput: any Input is read or refused permanently, and the result contains only members of the
// Input.
func FuzzInput(f *testing.F) {
	f.Add("sqs:sendMessage", []byte(`{"QueueUrl":"q","DelaySeconds":1,"MessageAttributes":{"a":{"BinaryValue":"AA=="}}}`))
	f.Add("eventbridge:putEvents", []byte(`{"Entries":[{"Time":1e3,"Resources":["a"]},null]}`))
	f.Add("lambda:invoke", []byte(`{"Payload":"{}","FunctionName":null}`))
	f.Add("ses:sendRawEmail", []byte(`{"RawMessage":{"Data":"`+base64.StdEncoding.EncodeToString([]byte("x"))+`"}}`))
	f.Add("eventbridge:startReplay", []byte(`{"EventStartTime":-1e12}`))
	f.Fuzz(func(t *testing.T, name string, input []byte) {
		operation, known := operations()[name]
		if !known {
			return
		}
		in := inputOf(operation)
		err := decodeInput(input, in, textMembers[name]...)
		if err != nil {
			if e := target.AsError(err); e.Code != codeInvalid || !e.Permanent || e.Message == "" {
				t.Errorf("%v", err)
			}
			return
		}
		if !json.Valid(input) {
			t.Errorf("read %q", input)
		}
	})
}

// FuzzARN: a parsed ARN equals the join of its parts.
func FuzzARN(f *testing.F) {
	for _, text := range []string{"arn:aws:sqs:eu-west-1:1:q", "arn:aws:scheduler:::aws-sdk:sqs:sendMessage", "arn:aws-cn:states:cn-north-1:1:stateMachine:m:1", "arn:aws:a::::"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseARN(text)
		if err != nil {
			return
		}
		if !strings.HasSuffix(text, ":"+a.service+":"+a.region+":"+a.account+":"+a.resource) || a.resource == "" {
			t.Errorf("%q: %+v", text, a)
		}
		if a.region != "" && strings.ContainsAny(a.region, "/.@?#:") {
			t.Errorf("%q has a region that would leave its place in a host name", text)
		}
	})
}
