package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// callTimeout bounds every call of the suite, so that an endpoint that hangs fails a check instead
// of the whole run.
const callTimeout = 30 * time.Second

// answer is the decoded JSON of a response.
type answer map[string]any

// call sends body as the request of an operation ("PutItem", "GetRecords") and decodes the
// response. The endpoint's SDK client signs and sends it: call starts an operation without members,
// and replaces its request before the signature. So requests that the SDK's types cannot express,
// such as malformed ones, take the same way.
func (e *Endpoint) call(op, body string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	r := &replacement{body: body}
	var err error
	if streamOperations[op] {
		r.target = "DynamoDBStreams_20120810." + op
		_, err = e.Streams.ListStreams(ctx, nil, func(o *dynamodbstreams.Options) { r.intercept(&o.Interceptors) })
	} else {
		r.target = "DynamoDB_20120810." + op
		_, err = e.DB.DescribeLimits(ctx, nil, func(o *dynamodb.Options) { r.intercept(&o.Interceptors) })
	}
	if err != nil {
		return nil, err
	}
	if len(r.response) == 0 {
		return answer{}, nil
	}
	var a answer
	if err := json.Unmarshal(r.response, &a); err != nil {
		return nil, fmt.Errorf("decode the answer to %s: %w", op, err)
	}
	return a, nil
}

// streamOperations are the operations of the Streams API, which has its own client and target.
var streamOperations = map[string]bool{"ListStreams": true, "DescribeStream": true, "GetShardIterator": true, "GetRecords": true}

// replacement replaces the SDK's request by one of our own, and keeps the answer.
type replacement struct {
	target, body string
	response     []byte
}

func (r *replacement) intercept(registry *smithyhttp.InterceptorRegistry) {
	registry.AddAfterSerialization(r)
	registry.AddBeforeDeserialization(r)
}

// AfterSerialization replaces the request.
func (r *replacement) AfterSerialization(_ context.Context, in *smithyhttp.InterceptorContext) error {
	request, err := in.Request.SetStream(strings.NewReader(r.body))
	if err != nil {
		return err
	}
	request.Header.Set("X-Amz-Target", r.target)
	*in.Request = *request
	return nil
}

// BeforeDeserialization copies the response. It replaces an empty response by an empty object,
// since the SDK decodes the answer of the operation that call started, which is never empty.
func (r *replacement) BeforeDeserialization(_ context.Context, in *smithyhttp.InterceptorContext) error {
	body, err := io.ReadAll(in.Response.Body)
	if err != nil {
		return err
	}
	r.response = body
	if len(body) == 0 {
		body = []byte("{}")
	}
	in.Response.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// ok makes a call that must succeed, and returns its answer.
func (e *Endpoint) ok(t *testing.T, op, body string) answer {
	t.Helper()
	a, err := e.call(op, body)
	if err != nil {
		t.Fatalf("%s %s: %v", op, brief(body), err)
	}
	return a
}

// refuse makes a call that must fail with this error type and message.
func (e *Endpoint) refuse(t *testing.T, op, body, code, message string) {
	t.Helper()
	_, err := e.call(op, body)
	if problem := errorProblem(err, code, message); problem != "" {
		t.Errorf("%s %s:\n%s", op, brief(body), problem)
	}
}

// brief returns the beginning of a request, for a failure's text.
func brief(body string) string {
	const most = 400
	if len(body) <= most {
		return body
	}
	return body[:most] + "…"
}

// at returns the member of an answer at a path of names ("TableDescription.TableStatus"), or nil.
func (a answer) at(path string) any {
	var v any = map[string]any(a)
	for name := range strings.SplitSeq(path, ".") {
		m, isMap := v.(map[string]any)
		if !isMap {
			return nil
		}
		v = m[name]
	}
	return v
}

// want compares the member at a path with JSON. The elements of sets have no order.
func (a answer) want(t *testing.T, path, wantJSON string) {
	t.Helper()
	var want any
	if err := json.Unmarshal([]byte(wantJSON), &want); err != nil {
		t.Fatalf("the expected JSON is malformed: %v: %s", err, wantJSON)
	}
	if g, w := canonicalJSON(a.at(path)), canonicalJSON(want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", path, g, w)
	}
}

// wantAbsent checks that the answer lacks a member.
func (a answer) wantAbsent(t *testing.T, member string) {
	t.Helper()
	if v, present := a[member]; present {
		t.Errorf("%s: got %s, want no such member", member, canonicalJSON(v))
	}
}
