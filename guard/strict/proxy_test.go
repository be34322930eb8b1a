package strict_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/conformance"
	"github.com/mayflydb/mayfly/guard/strict"
)

// The key pairs for signing requests to the proxy and to the endpoint.
var (
	clientPair   = strict.Credential{AccessKey: "client", SecretKey: "a client's secret"}
	endpointPair = mayfly.Credential{AccessKey: "endpoint", SecretKey: "the endpoint's secret"}
)

// proxied serves a database over HTTP behind a proxy, and returns the proxy's URL.
func proxied(t *testing.T, db *mayfly.DB, rules strict.Rules) string {
	t.Helper()
	server := httptest.NewServer(db.Handler())
	t.Cleanup(server.Close)
	rules.Now = db.Clock().Now
	return proxyBefore(t, server.URL, rules)
}

func proxyBefore(t *testing.T, endpoint string, rules strict.Rules) string {
	t.Helper()
	p, err := strict.NewProxy(strict.ProxyOptions{
		Rules: rules, Endpoint: endpoint, Clients: []strict.Credential{clientPair},
		Credentials: credentials.NewStaticCredentialsProvider(endpointPair.AccessKey, endpointPair.SecretKey, ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return server.URL
}

// dial returns a client like an application's: it signs, and checks checksums.
func dial(url string, pair strict.Credential) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: &url, Region: "eu-west-1", RetryMaxAttempts: 1, HTTPClient: conformance.HTTPClient(),
		Credentials: credentials.NewStaticCredentialsProvider(pair.AccessKey, pair.SecretKey, pair.SessionToken),
	})
}

func lateSigned(t *testing.T) *mayfly.DB {
	o := lateOptions
	o.Credentials = []mayfly.Credential{endpointPair}
	return open(t, o)
}

// TestProxySameAsStrict is TestSameAsStrict through the proxy, with every request signed twice.
func TestProxySameAsStrict(t *testing.T) {
	late := lateSigned(t)
	url := proxied(t, late, strict.Rules{Tables: map[string]string{"plain": "", "arn:aws:dynamodb:eu-west-1:123456789012:table/keyed": "ttl"}})
	compare(t, late, dial(url, clientPair), max(*seedFlag, 7), steps()/4)
}

// TestProxyChecksSignatures checks that a proxy with credentials for clients refuses others.
func TestProxyChecksSignatures(t *testing.T) {
	url := proxied(t, lateSigned(t), strict.Rules{All: true})
	for _, pair := range []strict.Credential{{AccessKey: "client", SecretKey: "another"}, {AccessKey: "stranger", SecretKey: "s"}} {
		_, err := dial(url, pair).ListTables(t.Context(), nil)
		var api smithy.APIError
		if !errors.As(err, &api) || api.ErrorCode() != "InvalidSignatureException" && api.ErrorCode() != "UnrecognizedClientException" {
			t.Errorf("%s: %v", pair.AccessKey, err)
		}
	}
	if _, err := dial(url, clientPair).ListTables(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// TestProxyStreams checks that the proxy forwards calls of streams, with the header that lets a
// reader wait.
func TestProxyStreams(t *testing.T) {
	late := lateSigned(t)
	url := proxied(t, late, strict.Rules{All: true})
	c := dynamodbstreams.New(dynamodbstreams.Options{BaseEndpoint: &url, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(clientPair.AccessKey, clientPair.SecretKey, "")})
	if _, err := c.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{}); err != nil {
		t.Error(err)
	}
}

// post sends a body that no SDK would send.
func post(t *testing.T, url, target string, body io.Reader, header ...string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", target)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(got)
}

// unsigned serves a proxy in front of an endpoint, for unsigned requests, and returns its URL.
func unsigned(t *testing.T, endpoint string, rules strict.Rules) string {
	t.Helper()
	p, err := strict.NewProxy(strict.ProxyOptions{Rules: rules, Endpoint: endpoint, Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return server.URL
}

// TestProxyHalfClosed checks that a client that closes its side of the connection after its request
// gets the answer.
func TestProxyHalfClosed(t *testing.T) {
	called, closed := make(chan struct{}), make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // net/http sees the end of a call after its body only
		close(called)
		<-closed
		select {
		case <-r.Context().Done():
		case <-time.After(300 * time.Millisecond): // time for the proxy to see the end
			io.WriteString(w, `{"TableNames":["late"]}`)
		}
	}))
	defer endpoint.Close()
	url := unsigned(t, endpoint.URL, strict.Rules{All: true, Now: time.Now})
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\nContent-Length: 2\r\n\r\n{}")
	<-called
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	close(closed)
	answer, err := io.ReadAll(c)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) || !bytes.HasSuffix(answer, []byte(`{"TableNames":["late"]}`)) {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestProxyRefusals checks that a request that is not DynamoDB's is refused with a reason.
func TestProxyRefusals(t *testing.T) {
	db := httptest.NewServer(open(t, lateOptions).Handler())
	defer db.Close()
	url := unsigned(t, db.URL, strict.Rules{Tables: map[string]string{"plain": "ttl"}, Now: time.Now})
	for _, test := range []struct {
		name, target string
		body         io.Reader
		header       []string
		status       int
		part         string
	}{
		{"no target", "", strings.NewReader("{}"), nil, 400, "X-Amz-Target"},
		{"another API", "AWSScheduler.ListSchedules", strings.NewReader("{}"), nil, 400, "UnknownOperationException"},
		{"no such operation", "DynamoDB_20120810.Frobnicate", strings.NewReader("{}"), nil, 400, "UnknownOperationException"},
		{"no JSON", "DynamoDB_20120810.GetItem", strings.NewReader("{"), nil, 400, "SerializationException"},
		{"a list", "DynamoDB_20120810.PutItem", strings.NewReader("[]"), nil, 400, "SerializationException"},
		{"compressed", "DynamoDB_20120810.GetItem", strings.NewReader("{}"), []string{"Content-Encoding", "gzip"}, 400, "Content-Encoding gzip"},
		{"a web page", "DynamoDB_20120810.ListTables", strings.NewReader("{}"), []string{"Origin", "http://127.0.0.1:8002"}, 400, "AccessDeniedException"},
		{"a web page, by its browser", "DynamoDB_20120810.ListTables", strings.NewReader("{}"), []string{"Sec-Fetch-Site", "same-origin"}, 400, "web pages cannot"},
		{"too large", "DynamoDB_20120810.PutItem", bytes.NewReader(make([]byte, 16<<20+1)), nil, 413, ""},
		{"names of another type", "DynamoDB_20120810.GetItem", strings.NewReader(`{"TableName":"plain","Key":{"pk":{"S":"p"}},"ExpressionAttributeNames":[]}`), nil, 400,
			"ExpressionAttributeNames does not have the type"},
		{"values of another type", "DynamoDB_20120810.PutItem", strings.NewReader(`{"TableName":"plain","ConditionExpression":"a = :a","ExpressionAttributeValues":{":a":5}}`), nil, 400,
			"SerializationException"},
		{"a bad value", "DynamoDB_20120810.DeleteItem", strings.NewReader(`{"TableName":"plain","ConditionExpression":"a = :a","ExpressionAttributeValues":{":a":{"N":"x"}}}`), nil, 400,
			"ExpressionAttributeValues contains invalid value"},
		{"Expected", "DynamoDB_20120810.PutItem", strings.NewReader(`{"TableName":"plain","Item":{},"Expected":{"a":{"Exists":false}}}`), nil, 400, "use expressions"},
		{"AttributeUpdates", "DynamoDB_20120810.UpdateItem", strings.NewReader(`{"TableName":"plain","Key":{},"AttributeUpdates":{}}`), nil, 400, "use expressions"},
		{"a malformed statement", "DynamoDB_20120810.ExecuteStatement", strings.NewReader(`{"Statement":"SELECT FROM \"Plain\""}`), nil, 400, "can't be processed: Unexpected keyword"},
		{"one in a batch", "DynamoDB_20120810.BatchExecuteStatement", strings.NewReader(`{"Statements":[{"Statement":"SELECT FROM plain"}]}`), nil, 200, `{"Code":"ValidationError","Message":"Statement wasn't`},
		{"too many in a batch", "DynamoDB_20120810.BatchExecuteStatement", strings.NewReader(`{"Statements":[` + strings.Repeat(`{"Statement":"UPDATE plain SET a=1 WHERE pk='p'"},`, 25) + `{"Statement":"UPDATE plain SET a=1 WHERE pk='p'"}]}`), nil, 400, "length less than or equal to 25"},
		{"one in a transaction", "DynamoDB_20120810.ExecuteTransaction", strings.NewReader(`{"TransactStatements":[{"Statement":"DELETE plain"}]}`), nil, 400, "failed in TransactStatements[0]: Statement wasn't"},
		{"a comment that ends at a carriage return", "DynamoDB_20120810.ExecuteStatement", strings.NewReader(`{"Statement":"SELECT * FROM --\r other --\n WHERE plain = 1"}`), nil, 400, "end the comments of a statement with a line feed"},
		{"one that names two tables", "DynamoDB_20120810.ExecuteStatement", strings.NewReader(`{"Statement":"SELECT * FROM --\r plain --\n other"}`), nil, 400, "Aliasing is not supported"},
		{"one elsewhere", "DynamoDB_20120810.ExecuteStatement", strings.NewReader(`{"Statement":"SELECT FROM other"}`), nil, 400, "Unexpected keyword"},
		{"another value under the attribute's name", "DynamoDB_20120810.ExecuteStatement", strings.NewReader(`{"Statement":"SELECT m.ttl FROM plain"}`), nil, 400, "must not give the name ttl to the value"},
		{"a part of the attribute", "DynamoDB_20120810.GetItem", strings.NewReader(`{"TableName":"plain","Key":{"pk":{"S":"p"}},"ProjectionExpression":"a.b, t.x","ExpressionAttributeNames":{"#t":"ttl"}}`),
			nil, 400, "unused in expressions"},
		{"a part of the attribute", "DynamoDB_20120810.GetItem", strings.NewReader(`{"TableName":"plain","Key":{"pk":{"S":"p"}},"ProjectionExpression":"a.b, #t.x","ExpressionAttributeNames":{"#t":"ttl"}}`),
			nil, 400, "takes attribute ttl whole or not at all"},
		{"no room", "DynamoDB_20120810.DeleteItem", strings.NewReader(`{"TableName":"plain","Key":{},"ConditionExpression":"attribute_exists(` + strings.Repeat("a", 4070) + `)"}`),
			nil, 400, "the condition is too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, answer := post(t, url, test.target, test.body, test.header...)
			if status != test.status || !strings.Contains(answer, test.part) {
				t.Errorf("%d %s, want %d with %q", status, answer, test.status, test.part)
			}
		})
	}
}

// TestProxyUnreachable checks that the client gets a retryable error if the endpoint does not
// answer.
func TestProxyUnreachable(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	status, answer := post(t, unsigned(t, gone.URL, strict.Rules{All: true}), "DynamoDB_20120810.ListTables", strings.NewReader("{}"))
	if status != 500 || !strings.Contains(answer, "InternalServerError") || !strings.Contains(answer, "got no answer from "+gone.URL) {
		t.Errorf("%d %s", status, answer)
	}
}

// TestProxyUnreadableAnswers checks that an unreadable answer is held back if it is about a guarded
// table, and forwarded otherwise.
func TestProxyUnreadableAnswers(t *testing.T) {
	var answer string
	var header http.Header
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), header)
		io.WriteString(w, answer)
	}))
	defer odd.Close()
	url := unsigned(t, odd.URL, strict.Rules{Tables: map[string]string{"plain": "ttl"}})
	const heldBack = "not passed on"
	for _, test := range []struct{ operation, body, answer, part string }{
		{"GetItem", `{"TableName":"plain"}`, `<html>`, heldBack},
		{"GetItem", `{"TableName":"plain"}`, `{"Item":[]}`, heldBack},
		{"GetItem", `{"TableName":"other"}`, `<html>`, "<html>"},
		{"BatchGetItem", `{"RequestItems":{"plain":{"Keys":[]}}}`, `{"Responses":{"plain":{}}}`, heldBack},
		{"BatchGetItem", `{"RequestItems":{"plain":{"Keys":[]}}}`, `{"Responses":{"arn:aws:dynamodb:r:1:table/plain":[{}]}}`, heldBack},
		{"BatchGetItem", `{"RequestItems":{"plain":{"Keys":[]}}}`, `{"UnprocessedKeys":5}`, heldBack},
		{"TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"plain"}}]}`, `{"Responses":[]}`, heldBack},
		{"Scan", `{"TableName":"plain"}`, `[]`, "DescribeTable does not follow the API"},
		{"PutItem", `{"TableName":"plain"}`, `5`, heldBack},
		{"PutItem", `{"TableName":"plain"}`, `{"Attributes":5}`, heldBack},
	} {
		answer, header = test.answer, nil
		_, got := post(t, url, "DynamoDB_20120810."+test.operation, strings.NewReader(test.body))
		if !strings.Contains(got, test.part) {
			t.Errorf("%s %s, answered %s: %s", test.operation, test.body, test.answer, got)
		}
	}
	answer, header = "{}", http.Header{"X-Amz-Crc32": {"1"}}
	if status, got := post(t, url, "DynamoDB_20120810.ListTables", strings.NewReader("{}")); status != 500 || !strings.Contains(got, "checksum") {
		t.Errorf("a damaged answer: %d %s", status, got)
	}
}

// TestWrongOptions checks that all errors in the options are reported at once.
func TestWrongOptions(t *testing.T) {
	_, err := strict.NewProxy(strict.ProxyOptions{Endpoint: "localhost:8000", Rules: strict.Rules{Tables: map[string]string{"a b": "ttl"}}})
	for _, part := range []string{`"localhost:8000" is not an http or https URL`, `"a b" is neither a table name`, "Credentials"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %q", err, part)
		}
	}
	db := open(t, lateOptions)
	c := guarded(db, strict.Rules{})
	if _, err := c.ListTables(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "Tables: 0 is not between") {
		t.Errorf("no rules: %v", err)
	}
	c = guarded(db, strict.Rules{Tables: map[string]string{"tab": "ttl", "arn:aws:dynamodb:r:1:table/tab": "t", "xyz": strings.Repeat("a", 256)}})
	if _, err := c.ListTables(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "two TTL attributes") || !strings.Contains(err.Error(), "longer than 255") {
		t.Errorf("two attributes: %v", err)
	}
}

// calls counts the calls of an endpoint, and can answer in its place.
type calls struct {
	next    http.Handler
	seen    []string
	instead func(operation string, body []byte) (status int, answer string)
	undated bool // its answers have no Date
}

// undated removes the Date of an answer.
type undated struct{ http.ResponseWriter }

func (u undated) WriteHeader(status int) {
	u.Header()["Date"] = nil
	u.ResponseWriter.WriteHeader(status)
}

func (c *calls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.seen = append(c.seen, operation)
	body, _ := io.ReadAll(r.Body)
	if c.instead != nil {
		if status, answer := c.instead(operation, body); status != 0 {
			w.WriteHeader(status)
			io.WriteString(w, answer)
			return
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if c.undated {
		w = undated{w}
	}
	c.next.ServeHTTP(w, r)
}

// counted returns a guarded client, and its calls.
func counted(t *testing.T, db *mayfly.DB, rules strict.Rules) (*dynamodb.Client, *calls) {
	t.Helper()
	c := &calls{next: db.Handler()}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	rules.Now = db.Clock().Now
	return dynamodb.New(dial(server.URL, clientPair).Options(), strict.Middleware(rules)), c
}

// putExpired creates the tables, with one expired item and one live item.
func putExpired(t *testing.T, db *mayfly.DB) {
	t.Helper()
	c := db.DynamoDB()
	makeTables(t, c)
	for _, it := range []item{{"pk": str("p"), "sk": num("0"), "ttl": num("1767225595"), "g": str("x")}, {"pk": str("p"), "sk": num("1"), "ttl": num("1767225605"), "g": str("x")}} {
		if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: it}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPermissions checks that the error for a refused call of the rewriter says why it was made.
func TestPermissions(t *testing.T) {
	db := open(t, lateOptions)
	putExpired(t, db)
	c, calls := counted(t, db, strict.Rules{Tables: map[string]string{"plain": ""}})
	denied := ""
	calls.instead = func(operation string, _ []byte) (int, string) {
		if operation != denied {
			return 0, ""
		}
		return 400, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not authorized"}`
	}
	query := func(ctx context.Context) error {
		_, err := c.Query(ctx, &dynamodb.QueryInput{TableName: aws.String("plain"), IndexName: aws.String("keys"), KeyConditionExpression: aws.String("g = :x"),
			ExpressionAttributeValues: item{":x": str("x")}})
		return err
	}
	update := func(ctx context.Context) error {
		_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: item{"pk": str("p"), "sk": num("0")}})
		return err
	}
	for _, test := range []struct {
		denied string
		do     func(context.Context) error
		part   string
	}{
		{"DescribeTimeToLive", query, "need DescribeTimeToLive, or name the table's TTL attribute in the rules"},
		{"DescribeTable", query, "need DescribeTable"},
		{"BatchGetItem", query, "need BatchGetItem, because the index lacks"},
		{"DeleteItem", update, "need DeleteItem, because the update"},
	} {
		denied = test.denied
		err := test.do(t.Context())
		var api smithy.APIError
		if !errors.As(err, &api) || api.ErrorCode() != "AccessDeniedException" || !strings.Contains(api.ErrorMessage(), test.part) || !strings.Contains(api.ErrorMessage(), "not authorized") {
			t.Errorf("%s: %v", test.denied, err)
		}
	}
}

// TestCalls checks the calls of the endpoint for each operation, once the facts about its tables
// are cached.
func TestCalls(t *testing.T) {
	db := open(t, lateOptions)
	putExpired(t, db)
	c, calls := counted(t, db, strict.Rules{Tables: map[string]string{"plain": ""}})
	plain, other := aws.String("plain"), aws.String("other")
	expired, alive := item{"pk": str("p"), "sk": num("0")}, item{"pk": str("p"), "sk": num("1")}
	// caches the facts about the table
	if _, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: plain}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(calls.seen, " "); got != "DescribeTimeToLive DescribeTable Scan" {
		t.Errorf("the first call: %s", got)
	}
	for _, test := range []struct {
		name string
		do   func() error
		want string
	}{
		{"a read", func() error {
			_, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: plain, Key: expired})
			return err
		}, "GetItem"},
		{"a count", func() error {
			out, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: plain, Select: types.SelectCount})
			if err == nil && out.Count != 1 {
				err = errors.New("the count is wrong")
			}
			return err
		}, "Scan"},
		{"an index without the attribute", func() error {
			_, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: plain, IndexName: aws.String("keys")})
			return err
		}, "Scan BatchGetItem"},
		{"an update of what is alive", func() error {
			_, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: plain, Key: alive})
			return err
		}, "UpdateItem"},
		{"an update whose condition fails", func() error {
			_, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: plain, Key: expired, ConditionExpression: aws.String("attribute_exists(pk)")})
			if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
				return nil
			}
			return errors.New("the condition did not fail")
		}, "UpdateItem"},
		{"an update of what has expired", func() error {
			_, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: plain, Key: expired})
			return err
		}, "UpdateItem DeleteItem UpdateItem"},
		{"a table that is not guarded", func() error {
			_, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: other, Key: alive})
			return err
		}, "GetItem"},
	} {
		calls.seen = nil
		if err := test.do(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := strings.Join(calls.seen, " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
