package conformance

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// protocolChecks speak HTTP directly, for details that SDKs hide or never send.
var protocolChecks = []check{
	{"Headers", protocolHeaders},
	{"Server", protocolServer},
	{"Healthy", protocolHealthy},
	{"CompressedBodies", protocolCompressedBodies},
	{"MalformedJSON", protocolMalformedJSON},
	{"DeepJSON", protocolDeepJSON},
	{"UnknownOperation", protocolUnknownOperation},
	{"ContentType", protocolContentType},
	{"Method", protocolMethod},
	{"Unsigned", protocolUnsigned},
	{"ErrorBodies", protocolErrorBodies},
	{"OversizedBody", protocolOversizedBody},
	{"Gzip", protocolGzip},
	{"EmptyAnswers", protocolEmptyAnswers},
}

// exchange is an HTTP request; the zero value of a field means the SDK's.
type exchange struct {
	method, operation, contentType, body string
	header                               map[string]string
	unsigned                             bool
}

// reply is a response, its body read.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// send signs the request with the client's credentials and sends it.
func (e *Endpoint) send(t *testing.T, x exchange) reply {
	t.Helper()
	r, err := e.trySend(t, x)
	if err != nil {
		t.Fatalf("%s: %v", x.operation, err)
	}
	return r
}

func (e *Endpoint) trySend(t *testing.T, x exchange) (reply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	if x.method == "" {
		x.method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, x.method, strings.TrimSuffix(e.URL, "/")+"/", strings.NewReader(x.body))
	if err != nil {
		return reply{}, err
	}
	if x.operation != "" {
		request.Header.Set("X-Amz-Target", "DynamoDB_20120810."+x.operation)
	}
	if x.contentType == "" {
		x.contentType = "application/x-amz-json-1.0"
	}
	request.Header.Set("Content-Type", x.contentType)
	for name, value := range x.header {
		request.Header.Set(name, value)
	}
	if !x.unsigned {
		if err := e.sign(ctx, request, x.body); err != nil {
			return reply{}, err
		}
	}
	client := http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, body}, err
}

// sign signs a request like the endpoint's client, or with made-up credentials if the client has
// none.
func (e *Endpoint) sign(ctx context.Context, request *http.Request, body string) error {
	options := e.DB.Options()
	credentials, err := options.Credentials.Retrieve(ctx)
	if err != nil || credentials.AccessKeyID == "" {
		credentials.AccessKeyID, credentials.SecretAccessKey = "conformance", "conformance"
	}
	region := options.Region
	if region == "" {
		region = "us-east-1"
	}
	digest := sha256.Sum256([]byte(body))
	return v4.NewSigner().SignHTTP(ctx, credentials, request, hex.EncodeToString(digest[:]), "dynamodb", region, time.Now())
}

// wantBody compares status and body; … in the body stands for any text.
func (r reply) wantBody(t *testing.T, what string, status int, body string) {
	t.Helper()
	if r.status != status || !matches(string(r.body), body) {
		t.Errorf("%s:\n got %d %s\nwant %d %s", what, r.status, brief(string(r.body)), status, body)
	}
}

var requestID = regexp.MustCompile(`^[A-Z0-9]{52}$`)

// wantAPIHeaders checks the headers of every answer of the API.
func (r reply) wantAPIHeaders(t *testing.T, contentType string) {
	t.Helper()
	if got := r.header.Get("Content-Type"); got != contentType {
		t.Errorf("Content-Type: %q, want %q", got, contentType)
	}
	if id := r.header.Get("X-Amzn-Requestid"); !requestID.MatchString(id) {
		t.Errorf("x-amzn-RequestId: %q", id)
	}
	if got, want := r.header.Get("X-Amz-Crc32"), strconv.FormatUint(uint64(crc32.ChecksumIEEE(r.body)), 10); got != want {
		t.Errorf("x-amz-crc32: %q, want %s", got, want)
	}
}

// Successes and errors have the same headers, and the content type of the request.
func protocolHeaders(t *testing.T, e *Endpoint) {
	for _, contentType := range []string{"application/x-amz-json-1.0", "application/json"} {
		good := e.send(t, exchange{operation: "ListTables", body: `{}`, contentType: contentType})
		if good.status != http.StatusOK {
			t.Errorf("status %d", good.status)
		}
		good.wantAPIHeaders(t, contentType)
		bad := e.send(t, exchange{operation: "ListTables", body: `{"Limit":0}`, contentType: contentType})
		if bad.status != http.StatusBadRequest {
			t.Errorf("status of an error: %d", bad.status)
		}
		bad.wantAPIHeaders(t, contentType)
	}
	with := e.send(t, exchange{operation: "ListTables", body: `{}`, contentType: "application/x-amz-json-1.0; charset=utf-8"})
	if with.status != http.StatusOK {
		t.Errorf("parameters after the content type: status %d", with.status)
	}
}

// Every answer names the server and the time.
func protocolServer(t *testing.T, e *Endpoint) {
	for _, x := range []exchange{
		{operation: "ListTables", body: `{}`}, {operation: "ListTables", body: `{"Limit":0}`}, {operation: "Frobnicate", body: `{}`}, {operation: "ListTables", unsigned: true},
		{method: http.MethodGet, unsigned: true}, {method: http.MethodPut, body: `{}`}, {operation: "ListTables", body: `{`},
	} {
		r := e.send(t, x)
		if got := r.header.Get("Server"); got != "Server" {
			t.Errorf("%s %s: Server %q", x.method, x.operation, got)
		}
		if _, err := http.ParseTime(r.header.Get("Date")); err != nil {
			t.Errorf("%s %s: %v", x.method, x.operation, err)
		}
	}
}

// A request may be compressed. If it cannot be decompressed, the error is the server's.
func protocolCompressedBodies(t *testing.T, e *Endpoint) {
	var packed, deflated bytes.Buffer
	for _, to := range []io.WriteCloser{gzip.NewWriter(&packed), zlib.NewWriter(&deflated)} {
		if _, err := to.Write([]byte(`{"Limit":1}`)); err != nil {
			t.Fatal(err)
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		coding, body string
		status       int
	}{
		{"gzip", packed.String(), http.StatusOK}, {"deflate", deflated.String(), http.StatusOK}, {"GZIP", packed.String(), http.StatusOK},
		{"br", `{}`, http.StatusInternalServerError}, {"gzip", `{}`, http.StatusInternalServerError}, {"deflate", packed.String(), http.StatusInternalServerError},
		{"gzip", "", http.StatusInternalServerError}, {"gzip", packed.String()[:20], http.StatusInternalServerError},
	} {
		r := e.send(t, exchange{operation: "ListTables", body: row.body, header: map[string]string{"Content-Encoding": row.coding}})
		if r.status != row.status || row.status != http.StatusOK && !strings.Contains(string(r.body), `#InternalServerError"`) {
			t.Errorf("%s %q: %d %s", row.coding, row.body, r.status, brief(string(r.body)))
		}
	}
}

// GET / shows the Host header.
func protocolHealthy(t *testing.T, e *Endpoint) {
	_, host, _ := strings.Cut(strings.TrimSuffix(e.URL, "/"), "://")
	e.send(t, exchange{method: http.MethodGet, unsigned: true}).wantBody(t, "GET /", http.StatusOK, "healthy: "+host+" ")
}

// A body that is no JSON object returns an error without a message.
func protocolMalformedJSON(t *testing.T, e *Endpoint) {
	const bare = `{"__type":"com.amazon.coral.service#SerializationException"}`
	for _, body := range []string{``, `hello`, `{`, `{"TableName"`, `{"TableName":`, `{"TableName":"a"`, `{"TableName":"a",}`, `{'TableName':'a'}`, `{"TableName":"a"}}`, `{"TableName":"a\q"}`, `{"TableName":01}`} {
		r := e.send(t, exchange{operation: "DescribeTable", body: body})
		r.wantBody(t, body, http.StatusBadRequest, bare)
		r.wantAPIHeaders(t, "application/x-amz-json-1.0")
	}
}

// Ten thousand brackets are refused, and the endpoint goes on.
func protocolDeepJSON(t *testing.T, e *Endpoint) {
	for _, body := range []string{
		strings.Repeat("[", 10_000), strings.Repeat(`{"a":`, 10_000), `{"Unknown":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `,"Limit":0}`,
		`{"TableName":"abc","Item":{"pk":` + strings.Repeat(`{"M":{"a":`, 10_000) + strings.Repeat(`}}`, 10_000) + `}}`,
	} {
		if r := e.send(t, exchange{operation: "PutItem", body: body}); r.status != http.StatusBadRequest {
			t.Errorf("%s: status %d", body[:20], r.status)
		}
	}
	e.ok(t, "ListTables", `{}`)
}

// An operation that does not exist, and one that is not named, are unknown. A message is optional.
func protocolUnknownOperation(t *testing.T, e *Endpoint) {
	const unknown = `{"__type":"com.amazon.coral.service#UnknownOperationException"…}`
	for _, x := range []exchange{
		{operation: "Frobnicate", body: `{}`},
		{body: `{}`},
		{body: `{}`, header: map[string]string{"X-Amz-Target": "DynamoDB_20120810"}},
		{body: `{}`, header: map[string]string{"X-Amz-Target": "DynamoDB_19991231.ListTables"}},
		{body: `{}`, header: map[string]string{"X-Amz-Target": "DynamoDB_20120810.listtables"}},
	} {
		r := e.send(t, x)
		r.wantBody(t, x.operation+x.header["X-Amz-Target"], http.StatusBadRequest, unknown)
		r.wantAPIHeaders(t, "application/x-amz-json-1.0")
	}
}

// unknownXML answers requests that are not the API's.
const unknownXML = "<UnknownOperationException/>\n"

func protocolContentType(t *testing.T, e *Endpoint) {
	for _, contentType := range []string{"application/x-amz-json-1.1", "text/plain", "application/xml", "application/x-www-form-urlencoded"} {
		r := e.send(t, exchange{operation: "ListTables", body: `{}`, contentType: contentType})
		r.wantBody(t, contentType, http.StatusNotFound, unknownXML)
		if got := r.header.Get("X-Amz-Crc32"); got != "3552371480" {
			t.Errorf("%s: x-amz-crc32 %q", contentType, got)
		}
	}
}

func protocolMethod(t *testing.T, e *Endpoint) {
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodOptions} {
		e.send(t, exchange{method: method, operation: "ListTables", body: `{}`}).wantBody(t, method, http.StatusNotFound, unknownXML)
	}
}

// An unsigned request is refused, unless the endpoint accepts any credentials or none.
func protocolUnsigned(t *testing.T, e *Endpoint) {
	r := e.send(t, exchange{operation: "ListTables", body: `{}`, unsigned: true})
	if r.status == http.StatusOK {
		t.Log("the endpoint does not ask for signatures")
		return
	}
	r.wantBody(t, "unsigned", http.StatusBadRequest, `{"__type":"com.amazon.coral.service#MissingAuthenticationTokenException","message":"Request is missing Authentication Token"}`)
}

// Each family of errors has a namespace and a spelling of "message".
func protocolErrorBodies(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct{ operation, body, want string }{
		{"ListTables", `{"Limit":"a"}`, `{"__type":"com.amazon.coral.service#SerializationException","Message":"STRING_VALUE cannot be converted to Integer"}`},
		{"ListTables", `{"Limit":0}`, `{"__type":"com.amazon.coral.validate#ValidationException","message":"…"}`},
		{"DescribeTable", `{"TableName":"no-such-table"}`,
			`{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found: Table: no-such-table not found"}`},
		{"DeleteItem", `{"TableName":"$T","Key":{"pk":{"S":"a"}},"ConditionExpression":"attribute_exists(pk)"}`,
			`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"}`},
	} {
		e.send(t, exchange{operation: row.operation, body: strings.ReplaceAll(row.body, "$T", tb.name)}).wantBody(t, row.operation, http.StatusBadRequest, row.want)
	}
}

// A body of more than 16 MB is refused, whatever it contains. The endpoint may close the connection
// before it has read it all.
func protocolOversizedBody(t *testing.T, e *Endpoint) {
	body := `{"TableName":"` + strings.Repeat("a", 16<<20) + `"}`
	r, err := e.trySend(t, exchange{operation: "DescribeTable", body: body})
	if err != nil {
		t.Logf("the endpoint hung up: %v", err)
	} else if r.status != http.StatusRequestEntityTooLarge || len(r.body) != 0 {
		t.Errorf("got %d %s, want 413 and no body", r.status, brief(string(r.body)))
	}
	e.ok(t, "ListTables", `{}`)
}

// An answer is compressed for a client that accepts it, and the checksum is of the compressed
// bytes.
func protocolGzip(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "v", bigString(50_000)))
	get := exchange{operation: "GetItem", body: `{"TableName":"` + tb.name + `","Key":{"pk":{"S":"a"}}}`}
	plain := e.send(t, get)
	plain.wantAPIHeaders(t, "application/x-amz-json-1.0")
	get.header = map[string]string{"Accept-Encoding": "gzip"}
	packed := e.send(t, get)
	packed.wantAPIHeaders(t, "application/x-amz-json-1.0")
	if packed.header.Get("Content-Encoding") != "gzip" {
		t.Log("the endpoint does not compress")
		return
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed.body))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if json.Unmarshal(unpacked, &got) != nil || json.Unmarshal(plain.body, &want) != nil || canonicalJSON(got) != canonicalJSON(want) {
		t.Errorf("the compressed answer differs from the plain one")
	}
	if len(packed.body) >= len(plain.body) {
		t.Errorf("compressed from %d to %d bytes", len(plain.body), len(packed.body))
	}
}

// TagResource answers with an empty body. Other operations without output answer with an empty
// object.
func protocolEmptyAnswers(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	e.send(t, exchange{operation: "TagResource", body: `{"ResourceArn":"` + tb.arn + `","Tags":[{"Key":"a","Value":"b"}]}`}).wantBody(t, "TagResource", http.StatusOK, "")
	e.send(t, exchange{operation: "UntagResource", body: `{"ResourceArn":"` + tb.arn + `","TagKeys":["a"]}`}).wantBody(t, "UntagResource", http.StatusOK, "")
	put := e.send(t, exchange{operation: "PutItem", body: `{"TableName":"` + tb.name + `","Item":{"pk":{"S":"a"}}}`})
	put.wantBody(t, "PutItem", http.StatusOK, "{}")
	put.wantAPIHeaders(t, "application/x-amz-json-1.0")
}
