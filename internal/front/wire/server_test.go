package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/front/browser"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// newTestServer returns a server over an empty database in memory.
func newTestServer(tb testing.TB, o Options) *Server {
	tb.Helper()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	o.Service = service.New(service.Options{Engine: e})
	if o.Now == nil {
		o.Now = time.Now
	}
	return New(o)
}

// answer is a response, copied out of the pool.
type answer struct {
	status int
	header http.Header
	body   string
}

func do(s *Server, in *Request) answer {
	out := s.Do(context.Background(), in)
	defer out.Release()
	a := answer{status: out.Status, header: http.Header{}, body: string(out.Body)}
	for _, f := range out.Header {
		a.header.Add(f.Name, f.Value)
	}
	return a
}

// post returns a call of an operation of the tables' API or, with a full target, of any API.
func post(operation, body string, header ...string) *Request {
	h := http.Header{"Content-Type": {typeAmzJSON}}
	if operation != "" && !strings.Contains(operation, ".") {
		operation = targetTables + operation
	}
	h.Set("X-Amz-Target", operation)
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &Request{Method: "POST", Path: "/", Host: "localhost:8000", Header: h, Body: []byte(body)}
}

func call(s *Server, operation, body string, header ...string) answer {
	return do(s, post(operation, body, header...))
}

const createT = `{"TableName":"Tab","AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}],
	"KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST",
	"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"}}`

func TestRoundTrip(t *testing.T) {
	s := newTestServer(t, Options{})
	for _, step := range []struct {
		operation, body string
		status          int
		answer          string // a regular expression
	}{
		{"CreateTable", createT, 200, `^\{"TableDescription":\{.*"TableStatus":"ACTIVE".*"StreamViewType":"NEW_IMAGE"`},
		{"PutItem", `{"TableName":"Tab","Item":{"k":{"S":"a"},"n":{"N":"1e2"}}}`, 200, `^\{\}$`},
		{"GetItem", `{"TableName":"Tab","Key":{"k":{"S":"a"}}}`, 200, `^\{"Item":\{"k":\{"S":"a"\},"n":\{"N":"100"\}\}\}$`},
		{"GetItem", `{"TableName":"Tab","Key":{"k":{"S":"b"}}}`, 200, `^\{\}$`},
		{"UpdateItem", `{"TableName":"Tab","Key":{"k":{"S":"a"}},"UpdateExpression":"SET n = n + :one","ExpressionAttributeValues":{":one":{"N":"1"}},"ReturnValues":"UPDATED_NEW"}`,
			200, `^\{"Attributes":\{"n":\{"N":"101"\}\}\}$`},
		{"PutItem", `{"TableName":"Tab","Item":{"k":{"S":"a"}},"ConditionExpression":"attribute_not_exists(k)","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`,
			400, `#ConditionalCheckFailedException","message":"The conditional request failed","Item":\{"k":\{"S":"a"\},"n":\{"N":"101"\}\}\}$`},
		{"Query", `{"TableName":"Tab","KeyConditionExpression":"k = :k","ExpressionAttributeValues":{":k":{"S":"a"}},"ReturnConsumedCapacity":"TOTAL"}`,
			200, `^\{"Items":\[.*\],"Count":1,"ScannedCount":1,"ConsumedCapacity":\{"TableName":"Tab","CapacityUnits":0.5\}\}$`},
		{"Scan", `{"TableName":"Tab","Select":"COUNT"}`, 200, `^\{"Count":1,"ScannedCount":1\}$`},
		{"BatchGetItem", `{"RequestItems":{"Tab":{"Keys":[{"k":{"S":"a"}}]}}}`, 200, `^\{"Responses":\{"Tab":\[.*\]\},"UnprocessedKeys":\{\}\}$`},
		{"BatchWriteItem", `{"RequestItems":{"Tab":[{"PutRequest":{"Item":{"k":{"S":"b"}}}}]}}`, 200, `^\{"UnprocessedItems":\{\}\}$`},
		{"TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"Tab","Key":{"k":{"S":"b"}}}},{"Get":{"TableName":"Tab","Key":{"k":{"S":"c"}}}}]}`,
			200, `^\{"Responses":\[\{"Item":\{"k":\{"S":"b"\}\}\},\{\}\]\}$`},
		{"TransactWriteItems", `{"ClientRequestToken":"t","TransactItems":[{"Put":{"TableName":"Tab","Item":{"k":{"S":"c"},"x":{"S":"y"}}}}]}`, 200, `^\{\}$`},
		{"TransactWriteItems", `{"ClientRequestToken":"t","TransactItems":[{"Put":{"Item":{"x":{"S":"y"},"k":{"S":"c"}},"TableName":"Tab"}}]}`, 200, `^\{\}$`},
		{"TransactWriteItems", `{"ClientRequestToken":"t","TransactItems":[{"Delete":{"TableName":"Tab","Key":{"k":{"S":"c"}}}}]}`, 400, `#IdempotentParameterMismatchException","Message":`},
		{"TransactWriteItems", `{"TransactItems":[{"ConditionCheck":{"TableName":"Tab","Key":{"k":{"S":"c"}},"ConditionExpression":"attribute_not_exists(k)"}},
			{"Put":{"TableName":"Tab","Item":{"k":{"S":"d"}}}}]}`, 400,
			`"CancellationReasons":\[\{"Code":"ConditionalCheckFailed","Message":"The conditional request failed"\},\{"Code":"None"\}\],"Message":"Transaction cancelled, please refer cancellation reasons for specific reasons \[ConditionalCheckFailed, None\]"\}$`},
		{"DeleteItem", `{"TableName":"Tab","Key":{"k":{"S":"c"}},"ReturnValues":"ALL_OLD"}`, 200, `^\{"Attributes":\{"k":\{"S":"c"\},"x":\{"S":"y"\}\}\}$`},
		{"UpdateTimeToLive", `{"TableName":"Tab","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"ttl"}}`, 200, `^\{"TimeToLiveSpecification":\{"Enabled":true,"AttributeName":"ttl"\}\}$`},
		{"DescribeTimeToLive", `{"TableName":"Tab"}`, 200, `"TimeToLiveStatus":"ENABL(ING|ED)","AttributeName":"ttl"`},
		{"UpdateTable", `{"TableName":"Tab","DeletionProtectionEnabled":true}`, 200, `"DeletionProtectionEnabled":true`},
		{"UpdateTable", `{"TableName":"Tab","DeletionProtectionEnabled":false}`, 200, `"DeletionProtectionEnabled":false`},
		{"TagResource", `{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Tab","Tags":[{"Key":"a","Value":"b"}]}`, 200, `^$`},
		{"ListTagsOfResource", `{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Tab"}`, 200, `^\{"Tags":\[\{"Key":"a","Value":"b"\}\]\}$`},
		{"UntagResource", `{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Tab","TagKeys":["a"]}`, 200, `^$`},
		{"ListTables", `{}`, 200, `^\{"TableNames":\["Tab"\]\}$`},
		{"DescribeTable", `{"TableName":"Tab"}`, 200, `^\{"Table":\{`},
		{"DescribeLimits", `{}`, 200, `^\{"AccountMaxReadCapacityUnits":`},
		{"DescribeEndpoints", `{}`, 200, `^\{"Endpoints":\[\{"Address":"`},
		{targetStreams + "ListStreams", `{"TableName":"Tab"}`, 200, `^\{"Streams":\[\{"StreamArn":"`},
		{"ListStreams", `{}`, 400, `UnknownOperationException","message":"mayfly does not serve DynamoDB_20120810.ListStreams: see docs/differences.md"\}$`},
		{targetStreams + "PutItem", `{}`, 400, `UnknownOperationException","message":"mayfly does not serve DynamoDBStreams_20120810.PutItem: see docs/differences.md"\}$`},
		{targetTables, `{}`, 400, `UnknownOperationException"\}$`},
		{targetTables + "Put<Item>", `{}`, 400, `UnknownOperationException"\}$`},
		{"DeleteTable", `{"TableName":"Tab"}`, 200, `^\{"TableDescription":\{.*"TableStatus":"DELETING"`},
		{"DescribeTable", `{"TableName":"Tab"}`, 400, `#ResourceNotFoundException","message":"Requested resource not found: Table: Tab not found"\}$`},
	} {
		got := call(s, step.operation, step.body)
		if got.status != step.status || !regexp.MustCompile(step.answer).MatchString(got.body) {
			t.Errorf("%s %s\n got  %d %s\n want %d %s", step.operation, step.body, got.status, got.body, step.status, step.answer)
		}
	}
}

func TestStreamsAndWait(t *testing.T) {
	s := newTestServer(t, Options{})
	call(s, "CreateTable", createT)
	call(s, "PutItem", `{"TableName":"Tab","Item":{"k":{"S":"a"}}}`)
	var streams struct{ Streams []struct{ StreamArn string } }
	decodeAnswer(t, call(s, targetStreams+"ListStreams", `{}`), &streams)
	arn := streams.Streams[0].StreamArn
	var described struct {
		StreamDescription struct{ Shards []struct{ ShardId string } }
	}
	decodeAnswer(t, call(s, targetStreams+"DescribeStream", `{"StreamArn":"`+arn+`"}`), &described)
	shard := described.StreamDescription.Shards[0].ShardId
	latest := call(s, targetStreams+"GetShardIterator", `{"StreamArn":"`+arn+`","ShardId":"`+shard+`","ShardIteratorType":"LATEST"}`)
	if !regexp.MustCompile(`^\d{21}$`).MatchString(latest.header.Get(headerBefore)) {
		t.Errorf("the answer does not say where the latest iterator begins: %v", latest.header)
	}
	records := 0
	for _, shard := range described.StreamDescription.Shards {
		var iterator struct{ ShardIterator string }
		decodeAnswer(t, call(s, targetStreams+"GetShardIterator", `{"StreamArn":"`+arn+`","ShardId":"`+shard.ShardId+`","ShardIteratorType":"TRIM_HORIZON"}`), &iterator)
		got := call(s, targetStreams+"GetRecords", `{"ShardIterator":"`+iterator.ShardIterator+`"}`, headerWait, "1")
		if got.header.Get(headerWait) != "1" {
			t.Errorf("the answer does not repeat the wait: %v", got.header)
		}
		records += strings.Count(got.body, `"NewImage":{"k":{"S":"a"}}`)
		got = call(s, targetStreams+"GetRecords", `{"ShardIterator":"`+iterator.ShardIterator+`"}`, headerWait, "soon")
		if got.status != 400 || !strings.Contains(got.body, "ValidationException") || got.header.Get(headerWait) != "" {
			t.Errorf("wait %q: %d %s", "soon", got.status, got.body)
		}
	}
	if records != 1 {
		t.Errorf("%d records, want 1", records)
	}
}

func decodeAnswer(t *testing.T, a answer, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), into); err != nil || a.status != 200 {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
}

func TestPlainRequests(t *testing.T) {
	s := New(Options{})
	const unknown = "<UnknownOperationException/>\n"
	for _, test := range []struct {
		name        string
		in          *Request
		status      int
		body, crc32 string
	}{
		{"health", &Request{Method: "GET", Path: "/", Host: "dynamodb.us-east-1.amazonaws.com", Header: http.Header{}}, 200, "healthy: dynamodb.us-east-1.amazonaws.com ", "3128867991"},
		{"health at a port", &Request{Method: "GET", Path: "/", Host: "db.example:8000", Header: http.Header{}}, 200, "healthy: db.example:8000 ", "2340139525"},
		{"another path", &Request{Method: "GET", Path: "/x", Header: http.Header{}}, 404, unknown, "3552371480"},
		{"PUT", &Request{Method: "PUT", Path: "/", Header: http.Header{}}, 404, unknown, "3552371480"},
		{"DELETE", &Request{Method: "DELETE", Path: "/", Header: http.Header{}}, 404, unknown, "3552371480"},
		{"OPTIONS", &Request{Method: "OPTIONS", Path: "/", Header: http.Header{}}, 404, unknown, "3552371480"},
		{"JSON 1.1", post("ListTables", "{}", "Content-Type", "application/x-amz-json-1.1"), 404, unknown, "3552371480"},
		{"no content type", post("ListTables", "{}", "Content-Type", ""), 404, unknown, "3552371480"},
	} {
		got := do(s, test.in)
		if got.status != test.status || got.body != test.body || got.header.Get("X-Amz-Crc32") != test.crc32 {
			t.Errorf("%s: %d %q crc32 %s", test.name, got.status, got.body, got.header.Get("X-Amz-Crc32"))
		}
		wantRequestID(t, got)
	}
}

// A request of another service, sent here by AWS_ENDPOINT_URL, learns in its own form that this is
// mayfly.
func TestForeignServices(t *testing.T) {
	s := New(Options{})
	signed := func(service string, in *Request) *Request {
		in.Header.(http.Header).Set("Authorization", "AWS4-HMAC-SHA256 Credential=any/20300101/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
		return in
	}
	text := func(service string) string {
		return "this is mayfly, which does not serve the API of " + service + " here; set the endpoint for DynamoDB alone: AWS_ENDPOINT_URL_DYNAMODB"
	}
	for _, test := range []struct {
		in                *Request
		status            int
		contentType, want string
	}{
		{signed("s3", &Request{Method: "GET", Path: "/", Header: http.Header{}}), 404, "application/xml", "<Error><Code>UnknownOperationException</Code><Message>" + text("s3") + "</Message></Error>\n"},
		{signed("sts", post("", "Action=GetCallerIdentity", "Content-Type", "application/x-www-form-urlencoded")), 404, "application/xml", "<ErrorResponse><Error><Code>UnknownOperationException</Code><Message>" + text("sts") + "</Message></Error></ErrorResponse>\n"},
		{signed("kinesis", post("Kinesis_20131202.ListStreams", "{}", "Content-Type", "application/x-amz-json-1.1")), 404, "application/x-amz-json-1.1", `{"__type":"UnknownOperationException","message":"` + text("kinesis") + `"}`},
		{signed("monitoring", post("GraniteServiceVersion20100801.ListMetrics", "{}")), 400, "application/x-amz-json-1.0", `{"__type":"com.amazon.coral.service#UnknownOperationException","message":"` + text("monitoring") + `"}`},
		{signed("dynamodb", post("ListMoons", "{}")), 400, "application/x-amz-json-1.0", `{"__type":"com.amazon.coral.service#UnknownOperationException","message":"mayfly does not serve DynamoDB_20120810.ListMoons: see docs/differences.md"}`},
		{signed("dynamodb", &Request{Method: "GET", Path: "/", Host: "h", Header: http.Header{}}), 200, "text/plain", "healthy: h "},
		{signed("<b>", &Request{Method: "GET", Path: "/x", Header: http.Header{}}), 404, "application/xml", "<UnknownOperationException/>\n"},
	} {
		got := do(s, test.in)
		if got.status != test.status || got.body != test.want || got.header.Get("Content-Type") != test.contentType {
			t.Errorf("%s %s: %d %s %q", test.in.Method, test.in.Header.Get("Authorization"), got.status, got.header.Get("Content-Type"), got.body)
		}
	}
}

// DescribeEndpoints returns the address that the client has used, so that clients with endpoint
// discovery stay there.
func TestDescribeEndpoints(t *testing.T) {
	s := newTestServer(t, Options{})
	for host, want := range map[string]string{"db.example:8123": "db.example:8123", "": "localhost:8000"} {
		in := post("DescribeEndpoints", "{}")
		in.Host = host
		if got := do(s, in); got.body != `{"Endpoints":[{"Address":"`+want+`","CachePeriodInMinutes":1440}]}` {
			t.Errorf("%q: %s", host, got.body)
		}
	}
}

func wantRequestID(t *testing.T, a answer) {
	t.Helper()
	if id := a.header.Get("X-Amzn-Requestid"); !regexp.MustCompile(`^[0-9A-Z]{52}$`).MatchString(id) {
		t.Errorf("request id %q", id)
	}
}

func TestHeaders(t *testing.T) {
	s := newTestServer(t, Options{})
	for _, test := range []struct{ contentType, want string }{
		{"application/x-amz-json-1.0", "application/x-amz-json-1.0"},
		{"application/x-amz-json-1.0; charset=utf-8", "application/x-amz-json-1.0"},
		{"application/json", "application/json"},
	} {
		for _, operation := range []string{"ListTables", "Nothing"} {
			got := call(s, operation, "{}", "Content-Type", test.contentType)
			want(t, got.header.Get("Content-Type"), test.want)
			want(t, got.header.Get("X-Amz-Crc32"), strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(got.body))), 10))
			wantRequestID(t, got)
		}
	}
}

// Malformed JSON precedes an unknown target, which precedes the signature, which precedes an empty
// body.
func TestOrderOfChecks(t *testing.T) {
	s := newTestServer(t, Options{Keys: keys.Fixed(sigv4.Credential{AccessKey: "a", SecretKey: "b"})})
	open := newTestServer(t, Options{})
	for _, test := range []struct {
		server          *Server
		operation, body string
		code            string
	}{
		{s, "Nothing", `{`, "SerializationException"},
		{s, "Nothing", `{}`, "UnknownOperationException"},
		{s, "Nothing", ``, "UnknownOperationException"},
		{s, "", `{}`, "UnknownOperationException"},
		{s, "DynamoDB_20111205.GetItem", `{}`, "UnknownOperationException"},
		{s, "ListTables", `{`, "SerializationException"},
		{s, "ListTables", `{}`, "MissingAuthenticationTokenException"},
		{s, "ListTables", ``, "MissingAuthenticationTokenException"},
		{s, "ListTables", `{"Limit":""}`, "MissingAuthenticationTokenException"},
		{open, "ListTables", ``, "SerializationException"},
		{open, "ListTables", `{"Limit":""}`, "SerializationException"},
		{open, "ListTables", `{"Limit":0}`, "ValidationException"},
	} {
		got := call(test.server, test.operation, test.body)
		if got.status != 400 || !strings.Contains(got.body, "#"+test.code) {
			t.Errorf("%s %s: %d %s, want %s", test.operation, test.body, got.status, got.body, test.code)
		}
	}
}

func TestTooLarge(t *testing.T) {
	s := newTestServer(t, Options{})
	large := make([]byte, bodyMax+1)
	for i := range large {
		large[i] = ' '
	}
	for name, in := range map[string]*Request{
		"plain":      post("ListTables", string(large)),
		"compressed": post("ListTables", packed(t, string(large)), "Content-Encoding", "gzip"),
	} {
		if got := do(s, in); got.status != 413 || got.body != "" || len(got.header) != 0 {
			t.Errorf("%s: %d %q %v", name, got.status, got.body, got.header)
		}
	}
	copy(large[bodyMax-2:], "{}")
	if got := do(s, post("ListTables", string(large[:bodyMax]))); got.status != 200 {
		t.Errorf("16 MB: %d %s", got.status, got.body)
	}
}

func TestIsLocal(t *testing.T) {
	for remote, local := range map[string]bool{
		"127.0.0.1:80": true, "127.8.9.1:80": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true,
		"192.168.0.1:80": false, "[fe80::1%eth0]:80": false, "[::]:80": false, "127.0.0.1": false, "": false, "@": false,
	} {
		want(t, IsLocal(remote), local)
	}
}

func TestCORS(t *testing.T) {
	any := newTestServer(t, Options{Pages: browser.Rules{Origins: []string{"*"}}})
	one := newTestServer(t, Options{Pages: browser.Rules{Origins: []string{"https://a.example"}}})
	off := newTestServer(t, Options{})
	const allow = "Access-Control-Allow-Origin"
	want(t, call(any, "ListTables", "{}", "Origin", "https://b.example").header.Get(allow), "*")
	want(t, call(any, "Nothing", "{}", "Origin", "https://b.example").header.Get(allow), "*")
	want(t, call(any, "ListTables", "{}").header.Get(allow), "")
	want(t, call(one, "ListTables", "{}", "Origin", "https://a.example").header.Get(allow), "https://a.example")
	want(t, call(one, "ListTables", "{}", "Origin", "https://b.example").header.Get(allow), "")
	want(t, call(off, "ListTables", "{}", "Origin", "https://b.example").header.Get(allow), "")

	preflight := &Request{Method: "OPTIONS", Path: "/", Host: "localhost", Header: http.Header{"Origin": {"https://a.example"},
		"Access-Control-Request-Headers": {"x-amz-target"}, "Access-Control-Request-Method": {"POST"}}}
	got := do(one, preflight)
	if got.status != 200 || got.body != "" || got.header.Get("Access-Control-Allow-Headers") != "x-amz-target" ||
		got.header.Get("Access-Control-Allow-Methods") != "POST" || got.header.Get("Access-Control-Max-Age") != "172800" {
		t.Errorf("%+v", got)
	}
	preflight.Header.(http.Header).Set("Origin", "https://b.example")
	if got := do(one, preflight); got.status != 403 || got.header.Get(allow) != "" {
		t.Errorf("%+v", got)
	}

	// With keys, pages of all origins are answered, unless origins are listed.
	ring := keys.Fixed(sigv4.Credential{AccessKey: "a", SecretKey: "b"})
	keyed := newTestServer(t, Options{Keys: ring})
	listed := newTestServer(t, Options{Keys: ring, Pages: browser.Rules{Origins: []string{"https://a.example"}}})
	if got := call(keyed, "ListTables", "{}", "Origin", "https://b.example"); got.header.Get(allow) != "*" || !strings.Contains(got.body, "MissingAuthenticationToken") {
		t.Errorf("%+v", got)
	}
	want(t, call(keyed, "ListTables", "{}").header.Get(allow), "")
	want(t, call(keyed, "ListTables", strings.Repeat(" ", bodyMax+1), "Origin", "null").header.Get(allow), "*")
	if got := do(keyed, preflight); got.status != 200 || got.header.Get(allow) != "*" || got.header.Get("Access-Control-Allow-Headers") != "x-amz-target" || got.header.Get("Access-Control-Max-Age") != "172800" {
		t.Errorf("%+v", got)
	}
	want(t, do(listed, preflight).status, 403)
	preflight.Header.(http.Header).Del("Origin")
	want(t, do(keyed, preflight).status, 404)
}

// A fault is answered and logged once under its request id. The server goes on.
func TestFaults(t *testing.T) {
	var log bytes.Buffer
	observed := ""
	// Without a service, every method panics.
	s := New(Options{Now: time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil)), Observe: func(operation string, status int, code string, _ time.Duration) {
		observed = operation + " " + strconv.Itoa(status) + " " + code
	}})
	got := call(s, "GetItem", `{"TableName":"Tab","Key":{"k":{"S":"a"}}}`)
	want(t, got.status, 500)
	want(t, got.body, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"Internal server error"}`)
	want(t, observed, "GetItem 500 InternalServerError")
	if text := log.String(); strings.Count(text, "request failed") != 1 || !strings.Contains(text, got.header.Get("X-Amzn-Requestid")) ||
		!strings.Contains(text, "operation=GetItem") || !strings.Contains(text, "panic: ") {
		t.Errorf("log: %s", text)
	}
}

// A client that has disconnected is no fault.
func TestCancelledContext(t *testing.T) {
	var log bytes.Buffer
	s := New(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, s.apiError(ctx, context.Canceled, "GetItem", "id"), errFault)
	want(t, log.String(), "")
	want(t, s.apiError(ctx, io.ErrUnexpectedEOF, "GetItem", "id"), errFault)
	if log.Len() == 0 {
		t.Error("a fault is one whether or not the client waits")
	}
}

func TestObserve(t *testing.T) {
	var seen []string
	now := time.Unix(0, 0)
	s := newTestServer(t, Options{
		Now: func() time.Time { now = now.Add(time.Second); return now },
		Observe: func(operation string, status int, code string, took time.Duration) {
			seen = append(seen, strings.Join([]string{operation, strconv.Itoa(status), code, took.String()}, " "))
		},
	})
	call(s, "ListTables", "{}")
	call(s, "GetItem", "{}")
	call(s, "Nothing", "{}")
	do(s, &Request{Method: "GET", Path: "/", Header: http.Header{}})
	do(s, &Request{Method: "POST", Path: "/", Header: http.Header{}, Oversize: true})
	want(t, seen, []string{"ListTables 200  1s", "GetItem 400 ValidationException 1s", " 400 UnknownOperationException 1s", " 200  1s", " 413  1s"})
}

// In process, the parts that only a network needs are left out.
func TestInProcess(t *testing.T) {
	s := newTestServer(t, Options{Keys: keys.Fixed()})
	in := post("ListTables", "{}", "Accept-Encoding", "gzip")
	in.InProcess = true
	got := do(s, in)
	want(t, got.body, `{"TableNames":[]}`)
	want(t, got.header.Get("X-Amz-Crc32"), "")
}

func TestOperations(t *testing.T) {
	names := operationNames()
	want(t, len(names), len(operations())+len(streamOperations))
	want(t, names[0], "BatchExecuteStatement")
}

func TestOverHTTP(t *testing.T) {
	s := newTestServer(t, Options{})
	server := httptest.NewServer(s)
	defer server.Close()

	request := func(body io.Reader, length int64) *http.Response {
		r, err := http.NewRequest("POST", server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = length
		r.Header.Set("Content-Type", typeAmzJSON)
		r.Header.Set("X-Amz-Target", targetTables+"ListTables")
		r.Header.Set("Accept-Encoding", "identity")
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	for _, length := range []int64{2, -1} { // -1: chunked
		resp := request(strings.NewReader("{}"), length)
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 || string(body) != `{"TableNames":[]}` || resp.ContentLength != int64(len(body)) ||
			resp.Header.Get("Date") == "" || resp.Header.Get("X-Amz-Crc32") == "" || resp.Close {
			t.Errorf("length %d: %d %s %v", length, resp.StatusCode, body, resp.Header)
		}
	}
	resp := request(io.LimitReader(zeros{}, bodyMax+1), -1)
	if resp.StatusCode != 413 || resp.ContentLength != -1 || resp.Header.Get("X-Amzn-Requestid") != "" {
		t.Errorf("too large: %d length %d %v", resp.StatusCode, resp.ContentLength, resp.Header)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestPermitted(t *testing.T) {
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Write(append([]byte("next: "), body...))
	})
	serve := func(s *Server, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.Permitted("mayfly:MoveClock", next).ServeHTTP(w, httptest.NewRequest("POST", "/_mayfly/clock", strings.NewReader(body)))
		return w
	}
	want(t, serve(New(Options{}), "x").Body.String(), "next: x")
	locked := New(Options{Now: time.Now, Keys: keys.Fixed()})
	got := serve(locked, "x")
	want(t, got.Code, 400)
	want(t, got.Body.String(), `{"__type":"com.amazon.coral.service#MissingAuthenticationTokenException","message":"Request is missing Authentication Token"}`)
	want(t, serve(locked, strings.Repeat("x", bodyMax+1)).Code, 413)
}

// operationNames returns the names of all operations, sorted.
func operationNames() []string {
	names := slices.Collect(maps.Keys(operations()))
	names = slices.AppendSeq(names, maps.Keys(streamOperations))
	slices.Sort(names)
	return names
}
