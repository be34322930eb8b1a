package aws

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/target"
)

const (
	testAccessKey = "AKIAEXAMPLE"
	testSecretKey = "a secret of 40 characters, or nearly so"
)

// request is a call that reached the endpoint with a right signature.
type request struct {
	service string // that it was signed for
	region  string
	// of the JSON and query protocols: the last part of X-Amz-Target, or Action; of the others:
	// method and path
	operation string
	header    http.Header
	path      string
	query     url.Values
	body      []byte
	json      map[string]any
	form      url.Values
}

// answer is an answer of the endpoint.
type answer struct {
	status int // 0: 200
	header map[string]string
	body   string
}

// endpoint stands for the services: it verifies signatures, keeps the requests, and answers as a
// test wants it, by default with the success of the service.
type endpoint struct {
	*httptest.Server
	t        *testing.T
	verifier *sigv4.Verifier
	mu       struct {
		sync.Mutex
		requests []request
		script   func(r request) *answer
	}
}

func startEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{t: t, verifier: sigv4.NewVerifier(sigv4.Credential{AccessKey: testAccessKey, SecretKey: testSecretKey})}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

// answers sets a function that decides the answers; nil means success.
func (e *endpoint) answers(script func(r request) *answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.script = script
}

// seen returns the requests so far, and forgets them.
func (e *endpoint) seen() []request {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.mu.requests
	e.mu.requests = nil
	return seen
}

// one is the only request so far.
func (e *endpoint) one() request {
	e.t.Helper()
	seen := e.seen()
	if len(seen) != 1 {
		e.t.Fatalf("%d requests, want 1", len(seen))
	}
	return seen[0]
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	got := request{header: r.Header, path: r.URL.EscapedPath(), query: r.URL.Query(), body: body}
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	scope := strings.Split(credential, "/")
	if len(scope) < 4 {
		e.t.Errorf("%s %s is not signed", r.Method, r.URL)
		w.WriteHeader(http.StatusForbidden)
		return
	}
	got.region, got.service = scope[2], scope[3]
	signed := &sigv4.Request{Service: got.service, Method: r.Method, Path: got.path, Query: r.URL.RawQuery, Host: r.Host, Headers: r.Header, Body: body}
	if err := e.verifier.Verify(signed, time.Now(), time.Now()); err != nil {
		e.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		w.WriteHeader(http.StatusForbidden)
		return
	}
	switch {
	case r.Header.Get("X-Amz-Target") != "":
		_, got.operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if err := json.Unmarshal(body, &got.json); err != nil {
			e.t.Errorf("%s: %v in %s", got.operation, err, body)
		}
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
		got.form, _ = url.ParseQuery(string(body))
		got.operation = got.form.Get("Action")
	default:
		got.operation = r.Method + " " + got.path
		_ = json.Unmarshal(body, &got.json)
	}
	e.mu.Lock()
	e.mu.requests = append(e.mu.requests, got)
	script := e.mu.script
	e.mu.Unlock()
	var a *answer
	if script != nil {
		a = script(got)
	}
	if a == nil {
		a = success(got)
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	_, _ = io.WriteString(w, a.body)
}

// success returns the service's answer for success.
func success(r request) *answer {
	switch r.service + " " + r.operation {
	case "sqs SendMessage":
		return reply(map[string]any{"MessageId": "m", "MD5OfMessageBody": md5Of(r.json["MessageBody"])})
	case "sqs SendMessageBatch":
		var done []any
		for _, e := range list(r.json["Entries"]) {
			done = append(done, map[string]any{"Id": e["Id"], "MessageId": "m", "MD5OfMessageBody": md5Of(e["MessageBody"])})
		}
		return reply(map[string]any{"Successful": done})
	case "sns Publish":
		return &answer{body: `<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>m</MessageId></PublishResult></PublishResponse>`}
	case "sns PublishBatch":
		var done strings.Builder
		for i := 1; r.form.Has(fmt.Sprintf("PublishBatchRequestEntries.member.%d.Id", i)); i++ {
			fmt.Fprintf(&done, "<member><Id>%s</Id><MessageId>m</MessageId></member>", r.form.Get(fmt.Sprintf("PublishBatchRequestEntries.member.%d.Id", i)))
		}
		return &answer{body: `<PublishBatchResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishBatchResult><Successful>` + done.String() +
			`</Successful><Failed/></PublishBatchResult></PublishBatchResponse>`}
	case "kinesis PutRecord":
		return reply(map[string]any{"SequenceNumber": "1", "ShardId": "s"})
	case "kinesis PutRecords":
		return reply(map[string]any{"Records": repeat(map[string]any{"SequenceNumber": "1", "ShardId": "s"}, len(list(r.json["Records"])))})
	case "firehose PutRecord":
		return reply(map[string]any{"RecordId": "r"})
	case "firehose PutRecordBatch":
		return reply(map[string]any{"FailedPutCount": 0, "RequestResponses": repeat(map[string]any{"RecordId": "r"}, len(list(r.json["Records"])))})
	case "events PutEvents":
		return reply(map[string]any{"FailedEntryCount": 0, "Entries": repeat(map[string]any{"EventId": "e"}, len(list(r.json["Entries"])))})
	case "states StartExecution":
		return reply(map[string]any{"executionArn": "arn:aws:states:us-east-1:1:execution:m:n", "startDate": 1.5})
	}
	if r.service == "lambda" && r.header.Get("X-Amz-Invocation-Type") == "Event" {
		return &answer{status: http.StatusAccepted}
	}
	if r.form != nil {
		return &answer{body: fmt.Sprintf("<%sResponse><%sResult/></%sResponse>", r.operation, r.operation, r.operation)}
	}
	return reply(map[string]any{})
}

// refusal is an error as the service's protocol has it.
func refusal(r request, status int, code, message string) *answer {
	if r.form != nil {
		return &answer{status: status, body: fmt.Sprintf("<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>r</RequestId></ErrorResponse>", code, message)}
	}
	a := reply(map[string]any{"__type": code, "message": message, "Message": message})
	a.status, a.header = status, map[string]string{"X-Amzn-Errortype": code, "Content-Type": "application/x-amz-json-1.1"}
	return a
}

func reply(value any) *answer {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return &answer{body: string(body), header: map[string]string{"Content-Type": "application/x-amz-json-1.1"}}
}

func list(value any) (items []map[string]any) {
	for _, item := range value.([]any) {
		items = append(items, item.(map[string]any))
	}
	return items
}

func repeat(value any, n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = value
	}
	return all
}

func md5Of(body any) string {
	sum := md5.Sum([]byte(body.(string)))
	return hex.EncodeToString(sum[:])
}

// sinkAt is a sink whose services are all at an address.
func sinkAt(t *testing.T, address string) *Sink {
	t.Helper()
	return newSink(t, Config{Endpoint: address, AccessKey: testAccessKey, SecretKey: testSecretKey})
}

func newSink(t *testing.T, c Config) *Sink {
	t.Helper()
	emptyEnvironment(t)
	s, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// emptyEnvironment hides the machine's own configuration.
func emptyEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS",
	} {
		unset(t, name)
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/credentials")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// deliver hands over one delivery.
func deliver(ctx context.Context, s *Sink, d target.Delivery) *target.Error {
	if d.ID == "" {
		d.ID = "0123456789abcdef0123456789abcdef"
	}
	return target.AsError(s.Deliver(ctx, []target.Delivery{d})[0])
}
