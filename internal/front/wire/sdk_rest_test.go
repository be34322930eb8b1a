package wire

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
)

// notedCall is an operation's record of its request.
type notedCall struct {
	Name, Body string
	Region     string
	Path       map[string]string
	Query      url.Values
}

// sdkServer has the paths and targets of the real APIs. Each operation records its request and
// answers as the test says.
type sdkServer struct {
	*Server
	last   notedCall
	answer any
	err    error
}

func newSDKServer() *sdkServer {
	s := new(sdkServer)
	do := func(name string) func(context.Context, *Call) (any, error) {
		return func(_ context.Context, c *Call) (any, error) {
			s.last = notedCall{name, string(c.Body), c.Region, c.Path, c.Query}
			return s.answer, s.err
		}
	}
	var o Options
	for _, r := range []Route{
		{Service: "scheduler", Name: "CreateSchedule", Method: "POST", Path: "/schedules/{Name}"},
		{Service: "scheduler", Name: "UpdateSchedule", Method: "PUT", Path: "/schedules/{Name}"},
		{Service: "scheduler", Name: "GetSchedule", Method: "GET", Path: "/schedules/{Name}"},
		{Service: "scheduler", Name: "DeleteSchedule", Method: "DELETE", Path: "/schedules/{Name}"},
		{Service: "scheduler", Name: "ListSchedules", Method: "GET", Path: "/schedules"},
		{Service: "scheduler", Name: "ListTagsForResource", Method: "GET", Path: "/tags/{ResourceArn}"},
		{Service: "scheduler", Name: "TagResource", Method: "POST", Path: "/tags/{ResourceArn}"},
		{Service: "scheduler", Name: "UntagResource", Method: "DELETE", Path: "/tags/{ResourceArn}"},
		{Service: "lambda", Name: "CreateEventSourceMapping", Method: "POST", Path: "/2015-03-31/event-source-mappings", Status: 202},
		{Service: "lambda", Name: "ListEventSourceMappings", Method: "GET", Path: "/2015-03-31/event-source-mappings"},
		{Service: "lambda", Name: "GetEventSourceMapping", Method: "GET", Path: "/2015-03-31/event-source-mappings/{UUID}"},
		{Service: "lambda", Name: "DeleteEventSourceMapping", Method: "DELETE", Path: "/2015-03-31/event-source-mappings/{UUID}", Status: 202},
	} {
		r.Do = do(r.Name)
		o.Routes = append(o.Routes, r)
	}
	for _, name := range []string{"PutRule", "DeleteRule"} {
		o.Actions = append(o.Actions, Action{Service: "events", Target: "AWSEvents." + name, Do: do(name)})
	}
	o.Keys = keys.Fixed(sigv4.Credential{AccessKey: "AKID", SecretKey: "secret"})
	o.Now, o.Logger = time.Now, slog.New(slog.DiscardHandler)
	s.Server = New(o)
	return s
}

// clients are the SDK's clients, over a socket with signatures or in this process without.
type clients struct {
	scheduler *scheduler.Client
	lambda    *lambda.Client
	events    *eventbridge.Client
}

func newSDKClients(endpoint, secret string, over *http.Client) clients {
	config := aws.Config{
		Region: "eu-west-1", BaseEndpoint: &endpoint, RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider("AKID", secret, ""),
	}
	if over != nil {
		config.HTTPClient = over
	}
	return clients{scheduler.NewFromConfig(config), lambda.NewFromConfig(config), eventbridge.NewFromConfig(config)}
}

// The SDK's clients for mounted APIs work unchanged, over a socket with signatures and over the
// in-process transport.
func TestSDKClientsOfMounted(t *testing.T) {
	s := newSDKServer()
	server := httptest.NewServer(s)
	defer server.Close()
	for name, c := range map[string]clients{
		"socket":     newSDKClients(server.URL, "secret", nil),
		"in process": newSDKClients("http://in.process", "wrong", &http.Client{Transport: Transport{Server: s.Server}}),
	} {
		t.Run(name, func(t *testing.T) {
			s.exerciseScheduler(t, c.scheduler)
			s.exerciseLambda(t, c.lambda)
			s.exerciseEvents(t, c.events)
		})
	}
	t.Run("wrong secret", func(t *testing.T) {
		c := newSDKClients(server.URL, "wrong", nil)
		_, err := c.scheduler.GetSchedule(t.Context(), &scheduler.GetScheduleInput{Name: aws.String("a")})
		wantAPIError(t, err, "InvalidSignatureException", "The request signature we calculated does not match")
		_, err = c.lambda.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: aws.String("a")})
		wantAPIError(t, err, "InvalidSignatureException", "The request signature we calculated does not match")
		_, err = c.events.DeleteRule(t.Context(), &eventbridge.DeleteRuleInput{Name: aws.String("a")})
		wantAPIError(t, err, "InvalidSignatureException", "The request signature we calculated does not match")
	})
}

func wantAPIError(t *testing.T, err error, code, message string) {
	t.Helper()
	var e smithy.APIError
	if !errors.As(err, &e) || e.ErrorCode() != code || !strings.HasPrefix(e.ErrorMessage(), message) {
		t.Errorf("error %v\nwant  %s: %s", err, code, message)
	}
}

func (s *sdkServer) exerciseScheduler(t *testing.T, c *scheduler.Client) {
	ctx := t.Context()
	s.answer, s.err = map[string]any{"ScheduleArn": "arn:aws:scheduler:eu-west-1:1:schedule/default/a"}, nil
	created, err := c.CreateSchedule(ctx, &scheduler.CreateScheduleInput{
		Name: aws.String("v1.2-a_b."), ScheduleExpression: aws.String("rate(1 minutes)"), ClientToken: aws.String("t"),
		FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff},
		Target:             &schedulertypes.Target{Arn: aws.String("arn:a"), RoleArn: aws.String("arn:r"), Input: aws.String("<aws.scheduler.scheduled-time> ü")},
	})
	if err != nil || *created.ScheduleArn != "arn:aws:scheduler:eu-west-1:1:schedule/default/a" {
		t.Fatalf("%v, %v", created, err)
	}
	want(t, s.last.Name, "CreateSchedule")
	want(t, s.last.Path, map[string]string{"Name": "v1.2-a_b."})
	if !strings.Contains(s.last.Body, `"Input":"<aws.scheduler.scheduled-time> ü"`) {
		t.Errorf("body %s", s.last.Body)
	}

	s.answer = map[string]any{"Name": "..", "CreationDate": 1669127100.25, "State": "ENABLED", "Target": map[string]any{"Arn": "a", "Input": "<&>"}}
	for _, name := range []string{".", "..", "a..b", "a/b", "a b+c%2F", "%", "ü", "(a)*'!~$&,;=:@[]"} {
		got, err := c.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: &name, GroupName: aws.String("g.1+ &=%")})
		if err != nil || *got.Target.Input != "<&>" || got.CreationDate.UnixMilli() != 1669127100250 {
			t.Errorf("%q: %v, %v", name, got, err)
		}
		want(t, s.last, notedCall{"GetSchedule", "", "eu-west-1", map[string]string{"Name": name}, url.Values{"groupName": {"g.1+ &=%"}}})
	}
	if _, err := c.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: aws.String("a"), ClientToken: aws.String("t-1"), GroupName: aws.String("g")}); err != nil {
		t.Error(err)
	}
	want(t, s.last, notedCall{"DeleteSchedule", "", "eu-west-1", map[string]string{"Name": "a"}, url.Values{"clientToken": {"t-1"}, "groupName": {"g"}}})

	s.answer = map[string]any{"Schedules": []any{map[string]any{"Name": "a"}}, "NextToken": "n/+="}
	listed, err := c.ListSchedules(ctx, &scheduler.ListSchedulesInput{
		GroupName: aws.String("g"), NamePrefix: aws.String("a."), State: schedulertypes.ScheduleStateEnabled, MaxResults: aws.Int32(7), NextToken: aws.String("n/+="),
	})
	if err != nil || len(listed.Schedules) != 1 || *listed.NextToken != "n/+=" {
		t.Fatalf("%v, %v", listed, err)
	}
	want(t, s.last, notedCall{"ListSchedules", "", "eu-west-1", map[string]string{}, url.Values{
		"ScheduleGroup": {"g"}, "NamePrefix": {"a."}, "State": {"ENABLED"}, "MaxResults": {"7"}, "NextToken": {"n/+="},
	}})

	const arn = "arn:aws:scheduler:eu-west-1:000000000000:schedule-group/my.group"
	s.answer = nil
	_, err = c.TagResource(ctx, &scheduler.TagResourceInput{ResourceArn: aws.String(arn), Tags: []schedulertypes.Tag{{Key: aws.String("k"), Value: aws.String("v")}}})
	if err != nil {
		t.Error(err)
	}
	want(t, s.last, notedCall{"TagResource", `{"Tags":[{"Key":"k","Value":"v"}]}`, "eu-west-1", map[string]string{"ResourceArn": arn}, nil})
	_, err = c.UntagResource(ctx, &scheduler.UntagResourceInput{ResourceArn: aws.String(arn), TagKeys: []string{"b", "a", "x y&z=1+2", "ü/:", "a"}})
	if err != nil {
		t.Error(err)
	}
	slices.Sort(s.last.Query["TagKeys"])
	want(t, s.last, notedCall{"UntagResource", "", "eu-west-1", map[string]string{"ResourceArn": arn}, url.Values{"TagKeys": {"a", "a", "b", "x y&z=1+2", "ü/:"}}})

	s.err = &failure{409, "ConflictException", "Schedule a already exists."}
	_, err = c.UpdateSchedule(ctx, &scheduler.UpdateScheduleInput{
		Name: aws.String("a"), ScheduleExpression: aws.String("x"), FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: "OFF"},
		Target: &schedulertypes.Target{Arn: aws.String("arn:a"), RoleArn: aws.String("arn:r")},
	})
	var conflict *schedulertypes.ConflictException
	if !errors.As(err, &conflict) || conflict.ErrorMessage() != "Schedule a already exists." {
		t.Errorf("got %v", err)
	}
	s.err = errors.New("disk")
	_, err = c.ListTagsForResource(ctx, &scheduler.ListTagsForResourceInput{ResourceArn: aws.String(arn)})
	if _, ok := errors.AsType[*schedulertypes.InternalServerException](err); !ok {
		t.Errorf("got %v", err)
	}
	_, err = c.GetScheduleGroup(ctx, &scheduler.GetScheduleGroupInput{Name: aws.String("default")})
	if err == nil { // this server has no such route
		t.Error("an unknown operation was answered")
	}
}

func (s *sdkServer) exerciseLambda(t *testing.T, c *lambda.Client) {
	ctx := t.Context()
	s.answer, s.err = map[string]any{"UUID": "u-1", "BatchSize": 10, "LastModified": 1669127100.5}, nil
	created, err := c.CreateEventSourceMapping(ctx, &lambda.CreateEventSourceMappingInput{FunctionName: aws.String("f"), BatchSize: aws.Int32(10)})
	if err != nil || *created.UUID != "u-1" || created.LastModified.UnixMilli() != 1669127100500 {
		t.Fatalf("%v, %v", created, err)
	}
	want(t, s.last.Name, "CreateEventSourceMapping")
	const arn = "arn:aws:dynamodb:eu-west-1:0:table/T/stream/2026-11-21T00:00:00.000"
	if _, err = c.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{EventSourceArn: aws.String(arn)}); err != nil {
		t.Error(err)
	}
	want(t, s.last, notedCall{"ListEventSourceMappings", "", "eu-west-1", map[string]string{}, url.Values{"EventSourceArn": {arn}}})
	if _, err := c.DeleteEventSourceMapping(ctx, &lambda.DeleteEventSourceMappingInput{UUID: aws.String("u-1")}); err != nil {
		t.Error(err)
	}
	want(t, s.last.Path, map[string]string{"UUID": "u-1"})
	s.err = &failure{404, "ResourceNotFoundException", "The resource you requested does not exist."}
	_, err = c.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: aws.String("u-1")})
	var missing *lambdatypes.ResourceNotFoundException
	if !errors.As(err, &missing) || missing.ErrorMessage() != "The resource you requested does not exist." || *missing.Type != "User" {
		t.Errorf("got %v", err)
	}
	s.err = errors.New("disk")
	_, err = c.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: aws.String("u-1")})
	var fault *lambdatypes.ServiceException
	if !errors.As(err, &fault) || *fault.Type != "Service" {
		t.Errorf("got %v", err)
	}
	_, err = c.ListFunctions(ctx, &lambda.ListFunctionsInput{})
	wantAPIError(t, err, "UnknownOperationException", "lambda has no operation GET /2015-03-31/functions")
}

func (s *sdkServer) exerciseEvents(t *testing.T, c *eventbridge.Client) {
	ctx := t.Context()
	s.answer, s.err = map[string]any{"RuleArn": "arn:r"}, nil
	put, err := c.PutRule(ctx, &eventbridge.PutRuleInput{Name: aws.String("r"), ScheduleExpression: aws.String("rate(1 minute)")})
	if err != nil || *put.RuleArn != "arn:r" {
		t.Fatalf("%v, %v", put, err)
	}
	want(t, s.last, notedCall{"PutRule", `{"Name":"r","ScheduleExpression":"rate(1 minute)"}`, "eu-west-1", nil, nil})
	s.err = &failure{404, "ResourceNotFoundException", "Rule r does not exist on EventBus default."}
	_, err = c.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: aws.String("r")})
	var missing *eventtypes.ResourceNotFoundException
	if !errors.As(err, &missing) || missing.ErrorMessage() != "Rule r does not exist on EventBus default." {
		t.Errorf("got %v", err)
	}
	s.err = errors.New("disk")
	_, err = c.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: aws.String("r")})
	if _, ok := errors.AsType[*eventtypes.InternalException](err); !ok {
		t.Errorf("got %v", err)
	}
	_, err = c.ListEventBuses(ctx, &eventbridge.ListEventBusesInput{})
	wantAPIError(t, err, "UnknownOperationException", "events has no operation AWSEvents.ListEventBuses")
}
