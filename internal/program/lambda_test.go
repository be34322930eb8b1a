package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/sdk"
	"github.com/mayflydb/mayfly/internal/sdk/mappings"
)

// lambdaServer records requests and answers them.
type lambdaServer struct {
	*httptest.Server
	answer func(w http.ResponseWriter, call int) // call counts from 1

	mu    sync.Mutex
	calls []lambdaRequest
}

type lambdaRequest struct {
	Method, Path, Type string
	Length             int64
	Query              url.Values
	Body               any
	Attempt            string
	Signature          error
	signed             time.Time
}

func newLambdaServer(t *testing.T) *lambdaServer {
	s := &lambdaServer{}
	verifier := sigv4.NewVerifier(sigv4.Credential{AccessKey: "AKID", SecretKey: "secret", SessionToken: "token"})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		at, _ := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		c := lambdaRequest{
			Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(), Type: r.Header.Get("Content-Type"), Length: r.ContentLength,
			Attempt: r.Header.Get("Amz-Sdk-Request"), signed: at,
			Signature: verifier.Verify(&sigv4.Request{
				Service: "lambda", Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Host: r.Host, Headers: r.Header, Body: body,
			}, at, at),
		}
		if len(body) > 0 {
			if err := json.Unmarshal(body, &c.Body); err != nil {
				t.Errorf("%s: %v", body, err)
			}
		}
		if !strings.Contains(r.UserAgent(), " api/lambda") || r.Header.Get("Amz-Sdk-Invocation-Id") == "" {
			t.Errorf("the headers are %v", r.Header)
		}
		s.mu.Lock()
		s.calls = append(s.calls, c)
		call := len(s.calls)
		s.mu.Unlock()
		s.answer(w, call)
	}))
	t.Cleanup(s.Close)
	return s
}

// take returns the requests since the last take.
func (s *lambdaServer) take() []lambdaRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// lambdaClients returns an endpoint with our client, and the SDK's client for the same
// configuration.
func lambdaClients(url string, attempts int) (*endpoint, *lambda.Client) {
	e := &endpoint{Endpoint: sdk.Endpoint{URL: url, Config: aws.Config{
		Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "token"),
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts, o.Backoff = attempts, retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			})
		},
	}}}
	return e, lambda.NewFromConfig(e.Config, func(o *lambda.Options) { o.BaseEndpoint = e.Base() })
}

// lambdaCalls has the same call for both clients.
var lambdaCalls = map[string]struct {
	sdk  func(context.Context, *lambda.Client) error
	ours func(context.Context, *lambdaClient) (*mapping, error)
}{
	"create": {
		func(ctx context.Context, c *lambda.Client) error {
			_, err := c.CreateEventSourceMapping(ctx, &lambda.CreateEventSourceMappingInput{
				FunctionName: aws.String("f <&> ü"), EventSourceArn: aws.String("arn:s"), StartingPosition: types.EventSourcePositionLatest, Enabled: aws.Bool(false),
				BatchSize: aws.Int32(0), MaximumBatchingWindowInSeconds: aws.Int32(0), ParallelizationFactor: aws.Int32(3), BisectBatchOnFunctionError: aws.Bool(false),
				MaximumRetryAttempts: aws.Int32(-1), MaximumRecordAgeInSeconds: aws.Int32(60), FilterCriteria: &types.FilterCriteria{Filters: []types.Filter{{Pattern: aws.String(patternExpired)}}},
				FunctionResponseTypes: []types.FunctionResponseType{"ReportBatchItemFailures"},
				DestinationConfig:     &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: aws.String("arn:d")}},
			})
			return err
		},
		func(ctx context.Context, c *lambdaClient) (*mapping, error) {
			return c.create(ctx, &mapping{
				FunctionName: "f <&> ü", EventSourceArn: "arn:s", StartingPosition: "LATEST", Enabled: aws.Bool(false),
				BatchSize: aws.Int32(0), MaximumBatchingWindowInSeconds: aws.Int32(0), ParallelizationFactor: aws.Int32(3), BisectBatchOnFunctionError: aws.Bool(false),
				MaximumRetryAttempts: aws.Int32(-1), MaximumRecordAgeInSeconds: aws.Int32(60), FilterCriteria: &mappingFilters{[]mappingFilter{{patternExpired}}},
				FunctionResponseTypes: []string{"ReportBatchItemFailures"}, DestinationConfig: &mappingOnFailure{&mappingTarget{"arn:d"}},
			})
		},
	},
	"create with defaults": {
		func(ctx context.Context, c *lambda.Client) error {
			_, err := c.CreateEventSourceMapping(ctx, &lambda.CreateEventSourceMappingInput{FunctionName: aws.String("f")})
			return err
		},
		func(ctx context.Context, c *lambdaClient) (*mapping, error) {
			return c.create(ctx, &mapping{FunctionName: "f"})
		},
	},
	"update": {
		func(ctx context.Context, c *lambda.Client) error {
			_, err := c.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{
				UUID: aws.String("u-1"), Enabled: aws.Bool(true), FilterCriteria: &types.FilterCriteria{Filters: []types.Filter{}},
				FunctionResponseTypes: []types.FunctionResponseType{}, DestinationConfig: &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: aws.String("")}},
			})
			return err
		},
		func(ctx context.Context, c *lambdaClient) (*mapping, error) {
			return c.update(ctx, "u-1", &mapping{
				Enabled: aws.Bool(true), FilterCriteria: &mappingFilters{[]mappingFilter{}}, FunctionResponseTypes: []string{}, DestinationConfig: &mappingOnFailure{&mappingTarget{}},
			})
		},
	},
	"update nothing": {
		func(ctx context.Context, c *lambda.Client) error {
			_, err := c.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: aws.String("u-1")})
			return err
		},
		func(ctx context.Context, c *lambdaClient) (*mapping, error) {
			return c.update(ctx, "u-1", &mapping{})
		},
	},
	"get": {
		func(ctx context.Context, c *lambda.Client) error {
			_, err := c.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: aws.String("u-1")})
			return err
		},
		func(ctx context.Context, c *lambdaClient) (*mapping, error) { return c.get(ctx, "u-1") },
	},
	"get another path": {
		func(ctx context.Context, c *lambda.Client) error {
			_, err := c.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: aws.String("../a b/ü%2F?x=1&y#+~*'():@[];,$!")})
			return err
		},
		func(ctx context.Context, c *lambdaClient) (*mapping, error) {
			return c.get(ctx, "../a b/ü%2F?x=1&y#+~*'():@[];,$!")
		},
	},
	"delete": {
		func(ctx context.Context, c *lambda.Client) error {
			_, err := c.DeleteEventSourceMapping(ctx, &lambda.DeleteEventSourceMappingInput{UUID: aws.String("u-1")})
			return err
		},
		func(ctx context.Context, c *lambdaClient) (*mapping, error) { return nil, c.delete(ctx, "u-1") },
	},
	"list": {
		func(ctx context.Context, c *lambda.Client) error {
			_, err := c.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{FunctionName: aws.String("arn:f +&=ü/?"), EventSourceArn: aws.String("arn:s:table/T"), Marker: aws.String("n/+==")})
			return err
		},
		func(ctx context.Context, c *lambdaClient) (*mapping, error) {
			_, err := c.list(ctx, url.Values{"FunctionName": {"arn:f +&=ü/?"}, "EventSourceArn": {"arn:s:table/T"}, "Marker": {"n/+=="}})
			return nil, err
		},
	},
	"list all": {
		func(ctx context.Context, c *lambda.Client) error {
			_, err := c.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{})
			return err
		},
		func(ctx context.Context, c *lambdaClient) (*mapping, error) {
			_, err := c.list(ctx, url.Values{})
			return nil, err
		},
	},
}

// lambdaAnswers has answers of mayfly and of Amazon, and the lines that --json printed for them with
// the SDK's client.
var lambdaAnswers = map[string]string{
	`{"UUID":"u-1","StartingPosition":"LATEST","BatchSize":10,"MaximumBatchingWindowInSeconds":0,"ParallelizationFactor":1,"EventSourceArn":"arn:s","FilterCriteria":{"Filters":[{"Pattern":"{\"a\":[\"<&>\"]}"}]},
	"FunctionArn":"arn:f","LastModified":1893499200.25,"LastProcessingResult":"No records processed","State":"Creating","StateTransitionReason":"User action","DestinationConfig":{},"MaximumRecordAgeInSeconds":-1,
	"BisectBatchOnFunctionError":false,"MaximumRetryAttempts":-1,"TumblingWindowInSeconds":0,"FunctionResponseTypes":[],"EventSourceMappingArn":"arn:m"}`: `{"BatchSize":10,"BisectBatchOnFunctionError":false,"DestinationConfig":{},"EventSourceArn":"arn:s","EventSourceMappingArn":"arn:m","FilterCriteria":{"Filters":[{"Pattern":"{\"a\":[\"<&>\"]}"}]},"FunctionArn":"arn:f","LastModified":"2030-01-01T12:00:00.250Z","LastProcessingResult":"No records processed","MaximumBatchingWindowInSeconds":0,"MaximumRecordAgeInSeconds":-1,"MaximumRetryAttempts":-1,"ParallelizationFactor":1,"StartingPosition":"LATEST","State":"Creating","StateTransitionReason":"User action","TumblingWindowInSeconds":0,"UUID":"u-1"}`,
	`{"UUID":"u-1","StartingPosition":"AT_TIMESTAMP","StartingPositionTimestamp":1.6691271005E9,"LastModified":1669127100,"FunctionResponseTypes":null,"FilterCriteria":null,"State":null,"LastProcessingResult":"",
	"DestinationConfig":{"OnSuccess":{},"OnFailure":{"Destination":""}},"Topics":[],"Queues":["q"],"SourceAccessConfigurations":[{"Type":"VPC_SUBNET","URI":"subnet:1"}],
	"SelfManagedEventSource":{"Endpoints":{"KAFKA_BOOTSTRAP_SERVERS":["a:9092"]}},"MetricsConfig":{"Metrics":[]},"ScalingConfig":{"MaximumConcurrency":5}}`: `{"DestinationConfig":{"OnFailure":{"Destination":""},"OnSuccess":{}},"LastModified":"2022-11-22T14:25:00Z","LastProcessingResult":"","MetricsConfig":{},"Queues":["q"],"ScalingConfig":{"MaximumConcurrency":5},"SelfManagedEventSource":{"Endpoints":{"KAFKA_BOOTSTRAP_SERVERS":["a:9092"]}},"SourceAccessConfigurations":[{"Type":"VPC_SUBNET","URI":"subnet:1"}],"StartingPosition":"AT_TIMESTAMP","StartingPositionTimestamp":"2022-11-22T14:25:00.500Z","UUID":"u-1"}`,
	`{"LastModified":1893499200.124}`: `{"LastModified":"2030-01-01T12:00:00.124Z"}`,
	`{"LastModified":0}`:              `{"LastModified":"1970-01-01T00:00:00Z"}`,
	`{}`:                              `{}`,
	``:                                `{}`,
}

// Our client of Lambda sends the requests that the SDK's client sends, with valid signatures, and
// prints the answers in the same form.
func TestLambdaCallsAreTheSDKs(t *testing.T) {
	s := newLambdaServer(t)
	for _, base := range []string{"", "/a/b"} {
		e, theirs := lambdaClients(s.URL+base, 3)
		for name, call := range lambdaCalls {
			for answer, line := range lambdaAnswers {
				s.answer = func(w http.ResponseWriter, _ int) { io.WriteString(w, answer) }
				if err := call.sdk(t.Context(), theirs); err != nil {
					t.Fatal(err)
				}
				want := s.take()
				m, err := call.ours(t.Context(), e.lambda())
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got := s.take()
				for _, c := range append(want, got...) {
					if c.Signature != nil {
						t.Errorf("%s: %v", name, c.Signature)
					}
				}
				if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".signed" }, cmp.Ignore())); diff != "" {
					t.Errorf("%s: the SDK sends otherwise:\n%s", name, diff)
				}
				if m == nil {
					continue
				}
				var printed bytes.Buffer
				if err := writeJSON(&printed, m.members()); err != nil || printed.String() != line+"\n" {
					t.Errorf("%s\nprinted as %sinstead of %s: %v", answer, &printed, line, err)
				}
			}
		}
	}
}

// A page has its mappings and the marker of the next one. Members that mapping lacks are printed
// too.
func TestLambdaList(t *testing.T) {
	s := newLambdaServer(t)
	e, _ := lambdaClients(s.URL, 1)
	s.answer = func(w http.ResponseWriter, _ int) {
		io.WriteString(w, `{"EventSourceMappings":[{"UUID":"a","New":{"Big":12345678901234567890,"None":[]}},{"UUID":"b"},null],"NextMarker":"n"}`)
	}
	page, err := e.lambda().list(t.Context(), nil)
	if err != nil || len(page.EventSourceMappings) != 3 || page.EventSourceMappings[1].UUID != "b" || page.NextMarker != "n" {
		t.Fatalf("%+v, %v", page, err)
	}
	var printed bytes.Buffer
	if err := writeJSON(&printed, page.EventSourceMappings[0].members()); err != nil || printed.String() != `{"New":{"Big":12345678901234567890},"UUID":"a"}`+"\n" {
		t.Errorf("%s, %v", &printed, err)
	}
	if err := writeJSON(io.Discard, page.EventSourceMappings[2].members()); err != nil {
		t.Error(err)
	}
}

// An error has the message and the number of attempts that it has with the SDK's client.
func TestLambdaErrorsAreTheSDKs(t *testing.T) {
	s := newLambdaServer(t)
	for name, c := range map[string]struct {
		answer         func(w http.ResponseWriter, call int)
		attempts, made int
		want           string
	}{
		"not found":          {answerWith(404, "ResourceNotFoundException", `{"Type":"User","Message":"The resource you requested does not exist."}`), 3, 1, "mayfly: trigger u-1 not found at http"},
		"code in the body":   {answerWith(404, "", `{"__type":"com.amazonaws.lambda#ResourceNotFoundException","message":"no"}`), 3, 1, "mayfly: trigger u-1 not found at http"},
		"invalid":            {answerWith(400, "InvalidParameterValueException:http://internal.amazon.com/coral/", `{"Type":"User","message":"Batch size must be less than 10000"}`), 3, 1, "mayfly: InvalidParameterValueException: Batch size"},
		"unknown code":       {answerWith(409, "NewException", `{"message":"m"}`), 3, 1, "mayfly: NewException: m"},
		"no permission":      {answerWith(403, "AccessDeniedException", `{"Message":"User: arn:aws:iam::1:user/u is not authorized to perform: lambda:GetEventSourceMapping"}`), 3, 1, "\n  next: set AWS_ACCESS_KEY_ID"},
		"expired":            {answerWith(403, "ExpiredTokenException", `{"message":"The security token included in the request is expired"}`), 3, 1, "\n  next: set AWS_ACCESS_KEY_ID"},
		"invalid token":      {answerWith(403, "UnrecognizedClientException", `{"message":"The security token included in the request is invalid."}`), 3, 1, "\n  next: set AWS_ACCESS_KEY_ID"},
		"throttled":          {answerWith(429, "TooManyRequestsException", `{"Reason":"CallerRateLimitExceeded","Type":"User","message":"Rate exceeded"}`), 3, 3, "mayfly: TooManyRequestsException: Rate exceeded"},
		"throttled, once":    {answerWith(429, "TooManyRequestsException", `{"message":"Rate exceeded"}`), 1, 1, "mayfly: TooManyRequestsException: Rate exceeded"},
		"fault":              {answerWith(500, "ServiceException", `{"Type":"Service","Message":"An error occurred"}`), 3, 3, "mayfly: ServiceException: An error occurred"},
		"fault, once":        {answerWith(500, "ServiceException", `{"Message":"An error occurred"}`), 1, 1, "mayfly: ServiceException: An error occurred"},
		"gateway":            {answerWith(503, "", `<html>`), 3, 3, "does not serve the API of Lambda: it answered 503"},
		"gateway, empty":     {answerWith(502, "", ``), 3, 3, "mayfly: UnknownError: UnknownError"},
		"another server":     {answerWith(404, "", `<html>`), 3, 1, "does not serve the API of Lambda: it answered 404\n  next: set --endpoint to a server that does; with mayfly serve --database-only, to mayfly worker"},
		"another server, OK": {answerWith(200, "", `<html>`), 3, 1, "does not serve the API of Lambda: it answered 200"},
		"list":               {answerWith(200, "", `[]`), 3, 1, "does not serve the API of Lambda: it answered 200"},
		"wrong type":         {answerWith(200, "", `{"BatchSize":"many"}`), 3, 1, "does not serve the API of Lambda: it answered 200"},
		"cut off":            {answerWith(200, "", `{"UUID":"u`), 3, 1, "does not serve the API of Lambda: it answered 200"},
		"closed":             {func(http.ResponseWriter, int) { panic(http.ErrAbortHandler) }, 3, 3, "EOF"},
		"unknown operation":  {answerWith(404, "UnknownOperationException", `{}`), 3, 1, "does not serve this API"},
	} {
		s.answer = c.answer
		e, theirs := lambdaClients(s.URL, c.attempts)
		_, sdkError := theirs.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: aws.String("u-1")})
		attempts := len(s.take())
		_, err := e.lambda().get(t.Context(), "u-1")
		calls := s.take()
		if len(calls) != attempts || attempts != c.made {
			t.Errorf("%s: %d attempts, %d of the SDK's client; want %d", name, len(calls), attempts, c.made)
		}
		for i, call := range calls {
			if want := fmt.Sprintf("attempt=%d; max=%d", i+1, c.attempts); call.Attempt != want || call.Signature != nil {
				t.Errorf("%s: %s, %v", name, call.Attempt, call.Signature)
			}
		}
		var out, want buffer
		if code, wantCode := report(&out, e.adviseTrigger(err, "u-1")), report(&want, e.adviseTrigger(sdkError, "u-1")); code != wantCode || out.String() != want.String() || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: exit code %d, %q; the SDK's client: %d, %q; want %q", name, code, out.String(), wantCode, want.String(), c.want)
		}
		if operation, ok := errors.AsType[*smithy.OperationError](err); !ok || operation.ServiceID != lambda.ServiceID || operation.OperationName != "GetEventSourceMapping" {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

// answerWith returns an answer with a status, a code in the header and a body.
func answerWith(status int, code, body string) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) {
		if code != "" {
			w.Header().Set("X-Amzn-ErrorType", code)
		}
		w.Header().Set("X-Amzn-Requestid", "r-1")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// A call that failed for a moment succeeds at its next attempt, with the body again.
func TestLambdaRepeats(t *testing.T) {
	s := newLambdaServer(t)
	e, _ := lambdaClients(s.URL, 3)
	s.answer = func(w http.ResponseWriter, call int) {
		if call < 3 {
			answerWith(500, "ServiceException", `{"Message":"m"}`)(w, call)
			return
		}
		io.WriteString(w, `{"UUID":"u-2"}`)
	}
	m, err := e.lambda().create(t.Context(), &mapping{FunctionName: "f"})
	if err != nil || m.UUID != "u-2" {
		t.Fatal(m, err)
	}
	for _, c := range s.take() {
		if diff := cmp.Diff(map[string]any{"FunctionName": "f"}, c.Body); diff != "" || c.Signature != nil {
			t.Errorf("%v\n%s", c.Signature, diff)
		}
	}
}

// If this machine's clock is wrong, the next attempt is signed with the time of the endpoint's.
func TestLambdaCorrectsClock(t *testing.T) {
	s := newLambdaServer(t)
	e, theirs := lambdaClients(s.URL, 3)
	s.answer = func(w http.ResponseWriter, call int) {
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		if call == 1 {
			answerWith(403, "InvalidSignatureException", `{"message":"Signature expired"}`)(w, call)
		}
	}
	client := e.lambda()
	for name, get := range map[string]func() error{
		"ours": func() error { _, err := client.get(t.Context(), "u-1"); return err },
		"the SDK's": func() error {
			_, err := theirs.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: aws.String("u-1")})
			return err
		},
	} {
		if err := errors.Join(get(), get()); err != nil {
			t.Fatal(name, err)
		}
		calls := s.take()
		if len(calls) != 3 {
			t.Fatalf("%s: %d attempts", name, len(calls))
		}
		for _, c := range calls[1:] {
			if ahead := c.signed.Sub(calls[0].signed); ahead < 59*time.Minute || ahead > 61*time.Minute {
				t.Errorf("%s: signed %s after the first attempt", name, ahead)
			}
		}
	}
}

// A call ends with its context.
func TestLambdaStops(t *testing.T) {
	s := newLambdaServer(t)
	release := make(chan struct{})
	defer close(release)
	s.answer = func(http.ResponseWriter, int) { <-release }
	e, _ := lambdaClients(s.URL, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := e.lambda().get(ctx, "u-1"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(e.advise(err).Error(), "did not answer in time") {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := e.lambda().get(ctx, "u-1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestLambdaRefuses(t *testing.T) {
	s := newLambdaServer(t)
	e, _ := lambdaClients(s.URL, 1)
	if _, err := e.lambda().get(t.Context(), ""); err == nil || err.Error() != "the UUID is empty" {
		t.Error(err)
	}
	s.answer = func(w http.ResponseWriter, _ int) {
		io.WriteString(w, `{"UUID":"`+strings.Repeat("x", mappings.AnswerMax)+`"}`)
	}
	_, err := e.lambda().get(t.Context(), "u-1")
	if _, ok := errors.AsType[*http.MaxBytesError](err); !ok {
		t.Error(err)
	}
	e.Config.Region = "evil.example/"
	if _, err := e.lambda().get(t.Context(), "u-1"); err == nil || !strings.Contains(err.Error(), `invalid region "evil.example/"`) {
		t.Error(err)
	}
	if calls := s.take(); len(calls) != 1 {
		t.Errorf("%d requests were sent", len(calls))
	}
}

// Amazon's endpoint of Lambda is the one that the SDK's client uses, in each partition and with
// the settings of FIPS and IPv6.
func TestLambdaEndpointsAreTheSDKs(t *testing.T) {
	errSeen := errors.New("seen")
	for _, region := range []string{"us-east-1", "eu-west-1", "eu-central-2", "ap-southeast-7", "cn-north-1", "cn-northwest-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "us-isof-south-1", "eusc-de-east-1", "xx-new-1"} {
		for _, fips := range []aws.FIPSEndpointState{aws.FIPSEndpointStateDisabled, aws.FIPSEndpointStateEnabled} {
			for _, dual := range []aws.DualStackEndpointState{aws.DualStackEndpointStateDisabled, aws.DualStackEndpointStateEnabled} {
				var urls, scopes []string
				c, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(region), config.WithUseFIPSEndpoint(fips), config.WithUseDualStackEndpoint(dual),
					config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("AKID", "secret", "")), config.WithRetryMaxAttempts(1))
				if err != nil {
					t.Fatal(err)
				}
				c.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
					scope, _, _ := strings.Cut(r.Header.Get("Authorization"), ", ")
					urls, scopes = append(urls, r.URL.String()), append(scopes, scope[strings.LastIndex(scope, "/2"):])
					return nil, errSeen
				})
				_, sdkError := lambda.NewFromConfig(c, func(o *lambda.Options) { o.BaseEndpoint = nil }).GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: aws.String("u-1")})
				_, err = (&endpoint{Endpoint: sdk.Endpoint{Config: c}}).lambda().get(t.Context(), "u-1")
				if !errors.Is(err, errSeen) && !errors.Is(sdkError, errSeen) {
					if len(urls) != 0 || !strings.Contains(sdkError.Error(), "endpoint rule error") || !strings.Contains(err.Error(), "endpoint rule error") {
						t.Errorf("%s: %v; the SDK's client: %v", region, err, sdkError)
					}
					continue
				}
				if len(urls) != 2 || urls[0] != urls[1] || scopes[0] != scopes[1] {
					t.Errorf("%s: %s, %s: %v and %v", region, urls, scopes, sdkError, err)
				}
			}
		}
	}
}
