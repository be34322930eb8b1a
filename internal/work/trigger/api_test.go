package trigger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/api"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

// client returns the AWS SDK's client of Lambda, connected to a server that has the operations'
// table only.
func (w *world) client() *lambda.Client {
	w.t.Helper()
	mux := http.NewServeMux()
	for _, op := range w.triggers.Operations() {
		handle := func(out http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			answer, err := op.Do(r.Context(), &api.Request{
				Path: map[string]string{"UUID": r.PathValue("UUID")}, Query: r.URL.Query(), Decode: func(into any) error { return json.Unmarshal(body, into) },
			})
			var failure *trigger.Error
			switch {
			case errors.As(err, &failure):
				out.Header().Set("X-Amzn-Errortype", failure.Code)
				out.WriteHeader(failure.HTTPStatus())
				answer = map[string]string{"Type": "User", "Message": failure.Message}
			case err != nil:
				w.t.Error(err)
				out.WriteHeader(http.StatusInternalServerError)
			default:
				out.WriteHeader(op.Status)
			}
			_ = json.NewEncoder(out).Encode(answer)
		}
		mux.HandleFunc(op.Method+" "+op.Path, handle)
		mux.HandleFunc(op.Method+" "+op.Path+"/{$}", handle)
	}
	server := httptest.NewServer(mux)
	w.t.Cleanup(server.Close)
	w.t.Cleanup(server.Client().CloseIdleConnections)
	return lambda.NewFromConfig(aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), BaseEndpoint: &server.URL, HTTPClient: server.Client(),
	}, func(o *lambda.Options) { o.RetryMaxAttempts = 1 })
}

// state waits for a state of a mapping; "" means that the mapping is missing.
func (w *world) state(c *lambda.Client, uuid *string, want string) (last *lambda.GetEventSourceMappingOutput) {
	w.t.Helper()
	await(w.t, "the mapping is "+want, func() bool {
		out, err := c.GetEventSourceMapping(w.t.Context(), &lambda.GetEventSourceMappingInput{UUID: uuid})
		if _, ok := errors.AsType[*lambdatypes.ResourceNotFoundException](err); ok {
			return want == ""
		}
		must(w.t, err)
		last = out
		return *out.State == want
	})
	return last
}

// The life of a mapping, through AWS's client: created, listed, disabled and enabled, changed,
// deleted.
func TestMapping(t *testing.T) {
	w := newWorld(t)
	stream := w.table("things")
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	w.run()
	c := w.client()
	created, err := c.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: &stream, FunctionName: aws.String("f"), StartingPosition: lambdatypes.EventSourcePositionTrimHorizon,
	})
	must(t, err)
	if created.ResultMetadata.Get("") != nil || *created.State != "Creating" || *created.StateTransitionReason != "User action" || *created.BatchSize != 100 ||
		*created.MaximumBatchingWindowInSeconds != 0 || *created.ParallelizationFactor != 1 || *created.MaximumRecordAgeInSeconds != -1 || *created.MaximumRetryAttempts != -1 ||
		*created.BisectBatchOnFunctionError || *created.TumblingWindowInSeconds != 0 || created.FunctionResponseTypes == nil || len(created.FunctionResponseTypes) != 0 ||
		*created.FunctionArn != arnFunction || *created.EventSourceArn != stream || *created.LastProcessingResult != "No records processed" ||
		created.DestinationConfig.OnFailure == nil || created.FilterCriteria != nil || created.StartingPosition != "TRIM_HORIZON" ||
		*created.EventSourceMappingArn != "arn:aws:lambda:us-east-1:000000000000:event-source-mapping:"+*created.UUID ||
		w.Clock().Now().Sub(*created.LastModified).Abs() > time.Minute {
		text, _ := json.Marshal(created)
		t.Errorf("%s", text)
	}
	w.state(c, created.UUID, "Enabled")
	w.put("things", "a", 0, 0)
	f.got(t, "0")
	await(t, "its last batch is known", func() bool { return *w.state(c, created.UUID, "Enabled").LastProcessingResult == "OK" })

	_, err = c.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: created.UUID, Enabled: aws.Bool(false)})
	must(t, err)
	w.state(c, created.UUID, "Disabled")
	w.put("things", "a", 1, 1)
	w.put("things", "a", 2, 2)
	updated, err := c.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{
		UUID: created.UUID, Enabled: aws.Bool(true), BatchSize: aws.Int32(1), FunctionResponseTypes: []lambdatypes.FunctionResponseType{"ReportBatchItemFailures"},
		FilterCriteria:    &lambdatypes.FilterCriteria{Filters: []lambdatypes.Filter{{Pattern: aws.String(`{"dynamodb":{"NewImage":{"v":{"N":[{"anything-but":"1"}]}}}}`)}}},
		DestinationConfig: &lambdatypes.DestinationConfig{OnFailure: &lambdatypes.OnFailure{Destination: aws.String(arnFunction)}},
	})
	must(t, err)
	if *updated.State != "Enabling" || *updated.BatchSize != 1 || len(updated.FilterCriteria.Filters) != 1 || *updated.DestinationConfig.OnFailure.Destination != arnFunction {
		t.Errorf("%+v", updated)
	}
	w.state(c, created.UUID, "Enabled")
	w.put("things", "a", 3, 3)
	f.got(t, "0", "2", "3")

	updated, err = c.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{
		UUID: created.UUID, FilterCriteria: &lambdatypes.FilterCriteria{}, FunctionResponseTypes: []lambdatypes.FunctionResponseType{},
		DestinationConfig: &lambdatypes.DestinationConfig{OnFailure: &lambdatypes.OnFailure{Destination: aws.String("")}},
	})
	must(t, err)
	if *updated.State != "Updating" || updated.FilterCriteria != nil || updated.DestinationConfig.OnFailure.Destination != nil || len(updated.FunctionResponseTypes) != 0 {
		t.Errorf("%+v", updated)
	}
	w.state(c, created.UUID, "Enabled")

	list, err := c.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{FunctionName: aws.String("000000000000:function:f"), EventSourceArn: &stream})
	must(t, err)
	if len(list.EventSourceMappings) != 1 || *list.EventSourceMappings[0].UUID != *created.UUID {
		t.Errorf("%+v", list)
	}
	deleted, err := c.DeleteEventSourceMapping(t.Context(), &lambda.DeleteEventSourceMappingInput{UUID: created.UUID})
	must(t, err)
	if *deleted.State != "Deleting" {
		t.Errorf("%+v", deleted)
	}
	w.state(c, created.UUID, "")
	if n := w.count("mayfly.leases"); n != 0 {
		t.Errorf("%d leases are left", n)
	}
	w.put("things", "a", 4, 4)
	f.got(t, "0", "2", "3")
}

// A mapping that starts at LATEST delivers records written after it is enabled, and no earlier
// ones.
func TestLatest(t *testing.T) {
	w := newWorld(t)
	stream := w.table("things")
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	w.run()
	c := w.client()
	w.put("things", "a", 0, 0)
	m, err := c.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: &stream, FunctionName: aws.String(arnFunction), StartingPosition: lambdatypes.EventSourcePositionLatest,
	})
	must(t, err)
	w.state(c, m.UUID, "Enabled")
	w.put("things", "a", 1, 1)
	f.got(t, "1")
}

// Mappings are stored: they run after the database is opened again.
func TestMappingIsKept(t *testing.T) {
	w := newWorld(t)
	stream := w.table("things")
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	stop := w.run()
	c := w.client()
	m, err := c.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: &stream, FunctionName: aws.String("f"), StartingPosition: "TRIM_HORIZON", Enabled: aws.Bool(false),
	})
	must(t, err)
	w.state(c, m.UUID, "Disabled")
	stop()
	w.put("things", "a", 0, 0)
	w.run()
	c = w.client()
	_, err = c.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: m.UUID, Enabled: aws.Bool(true)})
	must(t, err)
	f.got(t, "0")
}

// A mapping's result names a missing stream, and its return.
func TestStreamMissing(t *testing.T) {
	w := newWorld(t)
	var lost atomic.Bool
	o := w.options.Streams.Options()
	o.HTTPClient = testkit.Refusals{Next: o.HTTPClient.Do, Code: func(string, []byte) string {
		if lost.Load() {
			return "ResourceNotFoundException"
		}
		return ""
	}}
	w.options.Streams = dynamodbstreams.New(o)
	changed := make(chan chan struct{}, 1)
	changed <- make(chan struct{})
	w.options.Registry.Changed = func() (<-chan struct{}, func()) {
		is := <-changed
		changed <- is
		return is, func() {}
	}
	stream := w.table("things")
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	stop := w.run()
	c := w.client()
	m, err := c.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: &stream, FunctionName: aws.String("f"), StartingPosition: "TRIM_HORIZON",
	})
	must(t, err)
	result := func(want string) {
		t.Helper()
		await(t, "the result is "+want, func() bool {
			is := w.state(c, m.UUID, "Enabled")
			return *is.LastProcessingResult == want && *is.StateTransitionReason == "User action"
		})
	}
	result("No records processed")
	stop()
	lost.Store(true)
	w.put("things", "a", 0, 0)
	stop = w.run()
	c = w.client()
	result("PROBLEM: Stream not found")
	stop()
	lost.Store(false)
	stop = w.run()
	c = w.client()
	result("OK")
	f.got(t, "0")
	stop()
	lost.Store(true)
	w.run()
	c = w.client()
	result("PROBLEM: Stream not found")
	lost.Store(false)
	close(<-changed)
	changed <- make(chan struct{})
	result("OK")
	w.put("things", "a", 1, 1)
	f.got(t, "0", "1")
	_, err = w.DynamoDB().UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: aws.String("things"), StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)},
	})
	must(t, err)
	result("PROBLEM: Stream disabled")
}

// Every invalid request receives AWS's error.
func TestBadRequests(t *testing.T) {
	w := newWorld(t)
	stream := w.table("things")
	w.to(arnFunction, &function{}, target.Limits{})
	w.run()
	valid := func() map[string]any {
		return map[string]any{"EventSourceArn": stream, "FunctionName": "f", "StartingPosition": "LATEST"}
	}
	const one, parameter, validation = "1 validation error detected: ", "InvalidParameterValueException", "ValidationException"
	var ops = map[string]api.Operation{}
	for _, op := range w.triggers.Operations() {
		ops[op.Name] = op
	}
	call := func(op string, body any, uuid string) (any, error) {
		text, err := json.Marshal(body)
		must(t, err)
		return ops[op].Do(t.Context(), &api.Request{Path: map[string]string{"UUID": uuid}, Decode: func(into any) error { return json.Unmarshal(text, into) }})
	}
	for _, test := range []struct {
		name, code, message string
		change              map[string]any
	}{
		{"no function", validation, one + "Value null at 'functionName' failed to satisfy constraint: Member must not be null", map[string]any{"FunctionName": nil}},
		{"a bad function", validation, one + "Value 'a b' at 'functionName' failed to satisfy constraint: Member must satisfy regular expression pattern: (arn:(aws[a-zA-Z-]*)?:lambda:)?" +
			`((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\$LATEST(\.PUBLISHED)?|[a-zA-Z0-9-_]+))?`, map[string]any{"FunctionName": "a b"}},
		{"an unknown function", parameter, "Function does not exist: no target is mapped to this ARN: arn:aws:lambda:us-east-1:000000000000:function:g", map[string]any{"FunctionName": "g"}},
		{"no source", parameter, "Unrecognized event source.", map[string]any{"EventSourceArn": nil}},
		{"another source", parameter, "Unrecognized event source.", map[string]any{"EventSourceArn": "arn:aws:sqs:us-east-1:000000000000:queue"}},
		{"a bad source", validation, one + `Value 'x' at 'eventSourceArn' failed to satisfy constraint: Member must satisfy regular expression pattern: ` +
			`arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\-])+:((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1})?:(\d{12})?:(.*)`, map[string]any{"EventSourceArn": "x"}},
		{"an unknown stream", parameter, "Stream not found: " + stream + "9", map[string]any{"EventSourceArn": stream + "9"}},
		{"no position", parameter, one + "Value null at 'startingPosition' failed to satisfy constraint: Member must not be null.", map[string]any{"StartingPosition": nil}},
		{"a bad position", validation, one + "Value '0' at 'startingPosition' failed to satisfy constraint: Member must satisfy enum value set: [LATEST, AT_TIMESTAMP, TRIM_HORIZON]",
			map[string]any{"StartingPosition": "0"}},
		{"a timestamp", parameter, "Timestamp only valid with StartingPosition AT_TIMESTAMP", map[string]any{"StartingPositionTimestamp": 1741010802}},
		{"a position by time", parameter, "Unsupported starting position for arn type: " + stream, map[string]any{"StartingPosition": "AT_TIMESTAMP", "StartingPositionTimestamp": 1741010802}},
		{"numbers", validation, "6 validation errors detected: " +
			"Value '10001' at 'batchSize' failed to satisfy constraint: Member must have value less than or equal to 10000; " +
			"Value '301' at 'maximumBatchingWindowInSeconds' failed to satisfy constraint: Member must have value less than or equal to 300; " +
			"Value '11' at 'parallelizationFactor' failed to satisfy constraint: Member must have value less than or equal to 10; " +
			"Value '604801' at 'maximumRecordAgeInSeconds' failed to satisfy constraint: Member must have value less than or equal to 604800; " +
			"Value '-2' at 'maximumRetryAttempts' failed to satisfy constraint: Member must have value greater than or equal to -1; " +
			"Value '901' at 'tumblingWindowInSeconds' failed to satisfy constraint: Member must have value less than or equal to 900",
			map[string]any{"BatchSize": 10001, "MaximumBatchingWindowInSeconds": 301, "ParallelizationFactor": 11, "MaximumRecordAgeInSeconds": 604801,
				"MaximumRetryAttempts": -2, "TumblingWindowInSeconds": 901}},
		{"an age between", parameter, "MaximumRecordAgeInSeconds must be -1, or from 60 to 604800.", map[string]any{"MaximumRecordAgeInSeconds": 59}},
		{"a tumbling window", parameter, "TumblingWindowInSeconds: mayfly has no tumbling windows, so it must be 0.", map[string]any{"TumblingWindowInSeconds": 30}},
		{"a bad pattern", parameter, "Invalid filter pattern definition.", map[string]any{"FilterCriteria": map[string]any{"Filters": []any{map[string]any{"Pattern": `[{"eventName": ["INSERT"=123}]`}}}}},
		{"a pattern that is a string", parameter, "Invalid filter pattern definition.", map[string]any{"FilterCriteria": map[string]any{"Filters": []any{map[string]any{"Pattern": "single-string"}}}}},
		{"no pattern", parameter, "Invalid filter pattern definition.", map[string]any{"FilterCriteria": map[string]any{"Filters": []any{map[string]any{}}}}},
		{"a destination on success", parameter, "Unsupported DestinationConfig parameter for given event source mapping type.",
			map[string]any{"DestinationConfig": map[string]any{"OnSuccess": map[string]any{"Destination": arnFunction}}}},
		{"an unknown destination", parameter, "The provided destination config DestinationArn is invalid: no target is mapped to this ARN: arn:aws:sqs:us-east-1:000000000000:nowhere",
			map[string]any{"DestinationConfig": map[string]any{"OnFailure": map[string]any{"Destination": "arn:aws:sqs:us-east-1:000000000000:nowhere"}}}},
		{"topics", parameter, "Topics is not valid for DynamoDB event sources.", map[string]any{"Topics": []string{"a"}}},
		{"pollers", parameter, "ProvisionedPollerConfig is not valid for DynamoDB event sources.", map[string]any{"ProvisionedPollerConfig": map[string]any{"MinimumPollers": 1}}},
		{"a response type", validation, one + "Value '[Foo]' at 'functionResponseTypes' failed to satisfy constraint: Member must satisfy constraint: [Member must satisfy enum value set: [ReportBatchItemFailures]]",
			map[string]any{"FunctionResponseTypes": []string{"Foo"}}},
	} {
		body := valid()
		maps.Copy(body, test.change)
		_, err := call("CreateEventSourceMapping", body, "")
		var e *trigger.Error
		if !errors.As(err, &e) || e.Code != test.code || e.Message != test.message || e.HTTPStatus() != 400 {
			t.Errorf("%s: %v\nwant %s: %s", test.name, err, test.code, test.message)
		}
	}
	for _, op := range []string{"GetEventSourceMapping", "UpdateEventSourceMapping", "DeleteEventSourceMapping"} {
		_, err := call(op, map[string]any{}, "00000000-0000-4000-8000-000000000000")
		var e *trigger.Error
		if !errors.As(err, &e) || e.Error() != "ResourceNotFoundException: The resource you requested does not exist." || e.HTTPStatus() != 404 {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// A stream can have one mapping per function.
func TestDuplicate(t *testing.T) {
	w := newWorld(t)
	stream := w.table("things")
	w.to(arnFunction, &function{}, target.Limits{})
	w.to(arnFunction+":live", &function{}, target.Limits{})
	w.run()
	c := w.client()
	create := func(function string) (*lambda.CreateEventSourceMappingOutput, error) {
		return c.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{EventSourceArn: &stream, FunctionName: &function, StartingPosition: "LATEST"})
	}
	first, err := create("f")
	must(t, err)
	_, err = create(arnFunction)
	var e smithy.APIError
	want := fmt.Sprintf(`The event source arn (" %s ") and function (" f ") provided mapping already exists. Please update or delete the existing mapping with UUID %s`, stream, *first.UUID)
	if !errors.As(err, &e) || e.ErrorCode() != "ResourceConflictException" || e.ErrorMessage() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if _, err = create("f:live"); err != nil {
		t.Error(err)
	}
}

// Beyond AWS: a mapping can deliver a stream to any mapped target.
func TestOtherTargets(t *testing.T) {
	const queue = "arn:aws:sqs:us-east-1:000000000000:changes"
	w := newWorld(t)
	stream := w.table("things")
	f := &function{}
	w.to(queue, f, target.Limits{})
	w.run()
	c := w.client()
	m, err := c.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{EventSourceArn: &stream, FunctionName: aws.String(queue), StartingPosition: "TRIM_HORIZON"})
	must(t, err)
	if *m.FunctionArn != queue {
		t.Errorf("%+v", m)
	}
	w.put("things", "a", 0, 0)
	f.got(t, "0")
	_, err = c.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{EventSourceArn: &stream, FunctionName: aws.String(queue + "2"), StartingPosition: "TRIM_HORIZON"})
	if err == nil || !strings.Contains(err.Error(), "ValidationException: 1 validation error detected: Value '"+queue+"2' at 'functionName' failed to satisfy constraint") {
		t.Error(err)
	}
}

// A mapping that is changing its state can be neither changed nor deleted.
func TestInUse(t *testing.T) {
	w := newWorld(t)
	stream := w.table("things")
	w.to(arnFunction, &function{}, target.Limits{})
	w.triggers = trigger.New(w.options) // no worker runs it
	c := w.client()
	m, err := c.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{EventSourceArn: &stream, FunctionName: aws.String("f"), StartingPosition: "LATEST"})
	must(t, err)
	_, err = c.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: m.UUID, BatchSize: aws.Int32(1)})
	if err == nil || !strings.Contains(err.Error(), "ResourceInUseException: Cannot update the event source mapping because it is in use.") {
		t.Error(err)
	}
	_, err = c.DeleteEventSourceMapping(t.Context(), &lambda.DeleteEventSourceMappingInput{UUID: m.UUID})
	if err == nil || !strings.Contains(err.Error(), "ResourceInUseException: Cannot delete the event source mapping because it is in use.") {
		t.Error(err)
	}
}

// Lists come in pages, which together have every mapping once.
func TestList(t *testing.T) {
	w := newWorld(t)
	stream := w.table("things")
	w.triggers = trigger.New(w.options)
	c := w.client()
	for i := range 7 {
		arn := fmt.Sprint(arnFunction, i)
		w.to(arn, &function{}, target.Limits{})
		_, err := c.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{EventSourceArn: &stream, FunctionName: &arn, StartingPosition: "LATEST"})
		must(t, err)
	}
	seen := map[string]bool{}
	pages := 0
	for p := lambda.NewListEventSourceMappingsPaginator(c, &lambda.ListEventSourceMappingsInput{MaxItems: aws.Int32(3)}); p.HasMorePages(); pages++ {
		page, err := p.NextPage(t.Context())
		must(t, err)
		for _, m := range page.EventSourceMappings {
			if seen[*m.UUID] {
				t.Errorf("%s is there twice", *m.UUID)
			}
			seen[*m.UUID] = true
		}
	}
	if len(seen) != 7 || pages != 3 {
		t.Errorf("%d mappings in %d pages", len(seen), pages)
	}
	none, err := c.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{FunctionName: aws.String("other")})
	must(t, err)
	if len(none.EventSourceMappings) != 0 {
		t.Errorf("%+v", none)
	}
	_, err = c.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{MaxItems: aws.Int32(0)})
	if err == nil || !strings.Contains(err.Error(), "ValidationException: 1 validation error detected: Value '0' at 'maxItems' failed to satisfy constraint: Member must have value greater than or equal to 1") {
		t.Error(err)
	}
}

// After a function's last failure, the destination receives the same notice as from Lambda.
func TestDestination(t *testing.T) {
	const queue = "arn:aws:sqs:us-east-1:000000000000:dead"
	w := newWorld(t)
	stream := w.table("things")
	f := &function{answer: func(int, events.DynamoDBEvent) (any, error) { return nil, failed("poison") }}
	w.to(arnFunction, f, target.Limits{})
	told := &function{}
	notes := make(chan target.Delivery, 10)
	w.to(queue, noted{told, notes}, target.Limits{})
	w.run()
	c := w.client()
	_, err := c.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: &stream, FunctionName: aws.String("f"), StartingPosition: "TRIM_HORIZON", MaximumRetryAttempts: aws.Int32(1),
		DestinationConfig: &lambdatypes.DestinationConfig{OnFailure: &lambdatypes.OnFailure{Destination: aws.String(queue)}},
	})
	must(t, err)
	w.put("things", "a", 0, 0)
	f.got(t, "0", "0")
	var d target.Delivery
	select {
	case d = <-notes:
	case <-time.After(patience):
		t.Fatal("the destination was not told")
	}
	var got map[string]map[string]any
	var top map[string]any
	_ = json.Unmarshal(d.Body, &got)
	must(t, json.Unmarshal(d.Body, &top))
	r := f.records()[0]
	request, response, batch := got["requestContext"], got["responseContext"], got["DDBStreamBatchInfo"]
	if request["functionArn"] != arnFunction || request["condition"] != "RetryAttemptsExhausted" || request["approximateInvokeCount"] != 2.0 || len(request["requestId"].(string)) != 36 ||
		response["statusCode"] != 200.0 || response["executedVersion"] != "$LATEST" || response["functionError"] != "Unhandled" || top["version"] != "1.0" ||
		batch["startSequenceNumber"] != r.Change.SequenceNumber || batch["endSequenceNumber"] != r.Change.SequenceNumber || batch["batchSize"] != 1.0 || batch["streamArn"] != stream ||
		!strings.HasPrefix(batch["shardId"].(string), "shardId-") || batch["approximateArrivalOfFirstRecord"] != r.Change.ApproximateCreationDateTime.UTC().Format("2006-01-02T15:04:05Z") ||
		len(top) != 5 {
		t.Errorf("%s", d.Body)
	}
	await(t, "there is a dead letter", func() bool { return w.count("mayfly.deadletters") == 1 })
}

// noted sends deliveries to a channel too.
type noted struct {
	target.Target
	to chan target.Delivery
}
