package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/front/browser"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
)

// refusing returns an operation that fails.
func refusing(err error) func(context.Context, *Call) (any, error) {
	return func(context.Context, *Call) (any, error) { return nil, err }
}

// decoding is an operation with its own body type.
func decoding(_ context.Context, c *Call) (any, error) {
	var in struct {
		Name  string
		Limit *int32
		Tags  []struct{ Key string }
		On    bool
		At    float64
		Deep  struct{ Map map[string]string }
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	return in, nil
}

// newMountedServer returns a server with an API of each kind, whose operations end in every way.
func newMountedServer(o Options) *Server {
	gone := &failure{404, "ResourceNotFoundException", "Schedule <a> does not exist."}
	for _, service := range []string{"scheduler", "lambda"} {
		at := "/" + service
		o.Routes = append(o.Routes,
			Route{Service: service, Name: "Tell", Method: "POST", Path: at + "/tell/{Name}", Do: tellCall("Tell")},
			Route{Service: service, Name: "Read", Method: "GET", Path: at + "/tell/{Name}", Do: tellCall("Read")},
			Route{Service: service, Name: "Decode", Method: "POST", Path: at + "/decode", Status: 202, Do: decoding},
			Route{Service: service, Name: "Gone", Method: "GET", Path: at + "/gone", Do: refusing(gone)},
			Route{Service: service, Name: "Fault", Method: "GET", Path: at + "/fault", Do: refusing(errors.New("the disk is on fire"))},
			Route{Service: service, Name: "Panic", Method: "GET", Path: at + "/panic", Do: func(context.Context, *Call) (any, error) { panic("oh") }},
			Route{Service: service, Name: "Nothing", Method: "DELETE", Path: at + "/nothing", Do: refusing(nil)},
			Route{Service: service, Name: "Garbage", Method: "GET", Path: at + "/garbage", Do: func(context.Context, *Call) (any, error) { return func() {}, nil }},
		)
	}
	o.Actions = append(o.Actions, []Action{
		{Service: "events", Target: "AWSEvents.Tell", Do: tellCall("Tell")},
		{Service: "events", Target: "AWSEvents.Decode", Do: decoding},
		{Service: "events", Target: "AWSEvents.Gone", Do: refusing(gone)},
		{Service: "events", Target: "AWSEvents.Fault", Do: refusing(errors.New("the disk is on fire"))},
		{Service: "events", Target: "AWSEvents.Nothing", Do: refusing(nil)},
	}...)
	if o.Now == nil {
		o.Now = time.Now
	}
	return New(o)
}

// restRequest returns a request for a path and a query.
func restRequest(method, target, body string, header ...string) *Request {
	path, query, _ := strings.Cut(target, "?")
	h := http.Header{"Content-Type": {typeJSON}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &Request{Method: method, Path: path, Query: query, Host: "localhost:8000", Header: h, Body: []byte(body)}
}

// Each API writes answers and errors in its own form.
func TestMountedAnswers(t *testing.T) {
	var log bytes.Buffer
	s := newMountedServer(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	const fault = "Internal server error"
	for _, test := range []struct {
		in                        *Request
		status                    int
		body, errorType, observed string
	}{
		{restRequest("POST", "/scheduler/tell/a%2Fb?TagKeys=x&TagKeys=y&groupName=a+b%20c", `{"<":1}`), 200,
			`{"Name":"Tell","Path":{"Name":"a/b"},"Query":{"TagKeys":["x","y"],"groupName":["a b c"]},"Body":"{\"<\":1}"}`, "", "scheduler:Tell 200 "},
		{restRequest("GET", "/scheduler/tell/a", ""), 200, `{"Name":"Read","Path":{"Name":"a"},"Query":null,"Body":""}`, "", "scheduler:Read 200 "},
		{restRequest("DELETE", "/scheduler/nothing", ""), 200, `{}`, "", "scheduler:Nothing 200 "},
		{restRequest("GET", "/scheduler/gone", ""), 404, `{"Message":"Schedule <a> does not exist."}`, "ResourceNotFoundException", "scheduler:Gone 404 ResourceNotFoundException"},
		{restRequest("GET", "/scheduler/none", ""), 404, `{"Message":"scheduler has no operation GET /scheduler/none here"}`, "UnknownOperationException", " 404 UnknownOperationException"},
		{restRequest("GET", "/scheduler/fault", ""), 500, `{"Message":"` + fault + `"}`, "InternalServerException", "scheduler:Fault 500 InternalServerException"},
		{restRequest("GET", "/scheduler/panic", ""), 500, `{"Message":"` + fault + `"}`, "InternalServerException", "scheduler:Panic 500 InternalServerException"},
		{restRequest("GET", "/scheduler/garbage", ""), 500, `{"Message":"` + fault + `"}`, "InternalServerException", "scheduler:Garbage 500 InternalServerException"},
		{restRequest("GET", "/scheduler/tell/%", ""), 400, `{"Message":"the path is not percent-encoded UTF-8 at {Name}"}`, "SerializationException", "scheduler:Read 400 SerializationException"},
		{restRequest("GET", "/scheduler/gone?a=%", ""), 400, `{"Message":"the query is malformed: invalid URL escape \"%\""}`, "SerializationException", "scheduler:Gone 400 SerializationException"},
		{restRequest("GET", "/scheduler/gone?a;b", ""), 400, `{"Message":"the query is malformed: invalid semicolon separator in query"}`, "SerializationException", "scheduler:Gone 400 SerializationException"},
		{restRequest("GET", "/scheduler/gone?a=%ff", ""), 400, `{"Message":"the query is not percent-encoded UTF-8"}`, "SerializationException", "scheduler:Gone 400 SerializationException"},
		{restRequest("POST", "/scheduler/decode", `{"Name":"n","Limit":1,"Other":{"x":[1]}}`), 202, `{"Name":"n","Limit":1,"Tags":null,"On":false,"At":0,"Deep":{"Map":null}}`, "", "scheduler:Decode 202 "},
		{restRequest("POST", "/scheduler/decode", strings.Repeat(" ", mountedBodyMax)+"{}"), 413, `{"Message":"the body of a request has at most 1048576 bytes"}`, "RequestEntityTooLargeException", "scheduler:Decode 413 RequestEntityTooLargeException"},
		{restRequest("POST", "/scheduler/decode", strings.Repeat(" ", mountedBodyMax-2)+"{}"), 202, `{"Name":"","Limit":null,"Tags":null,"On":false,"At":0,"Deep":{"Map":null}}`, "", "scheduler:Decode 202 "},

		{restRequest("GET", "/lambda/gone", ""), 404, `{"Type":"User","Message":"Schedule <a> does not exist."}`, "ResourceNotFoundException", "lambda:Gone 404 ResourceNotFoundException"},
		{restRequest("GET", "/lambda/fault", ""), 500, `{"Type":"Service","Message":"` + fault + `"}`, "ServiceException", "lambda:Fault 500 ServiceException"},
		{restRequest("PATCH", "/lambda/gone", ""), 404, `{"Type":"User","Message":"lambda has no operation PATCH /lambda/gone here"}`, "UnknownOperationException", " 404 UnknownOperationException"},

		{post("AWSEvents.Tell", `{}`), 200, `{"Name":"Tell","Path":null,"Query":null,"Body":"{}"}`, "", "events:Tell 200 "},
		{post("AWSEvents.Nothing", `{}`), 200, `{}`, "", "events:Nothing 200 "},
		{post("AWSEvents.Gone", `{}`), 400, `{"__type":"ResourceNotFoundException","message":"Schedule <a> does not exist."}`, "", "events:Gone 400 ResourceNotFoundException"},
		{post("AWSEvents.Fault", `{}`), 500, `{"__type":"InternalException","message":"` + fault + `"}`, "", "events:Fault 500 InternalException"},
		{post("AWSEvents.None", `{}`), 400, `{"__type":"UnknownOperationException","message":"events has no operation AWSEvents.None here"}`, "", " 400 UnknownOperationException"},
		{post("AWSEvents.Decode", `{"Limit":1.5}`), 400, `{"__type":"SerializationException","message":"Limit: NUMBER_VALUE cannot be converted to Integer"}`, "", "events:Decode 400 SerializationException"},
	} {
		observed := ""
		s.Observe = func(operation string, status int, code string, _ time.Duration) {
			observed = operation + " " + strconv.Itoa(status) + " " + code
		}
		log.Reset()
		got := do(s, test.in)
		if got.status != test.status || got.body != test.body || got.header.Get("X-Amzn-Errortype") != test.errorType || observed != test.observed {
			t.Errorf("%s %s\n got  %d %s (%s; observed %s)\n want %d %s (%s; observed %s)", test.in.Method, test.in.Path,
				got.status, got.body, got.header.Get("X-Amzn-Errortype"), observed, test.status, test.body, test.errorType, test.observed)
		}
		wantRequestID(t, got)
		contentType := typeJSON
		if test.in.Path == "/" {
			contentType = typeAmzJSON11
		}
		want(t, got.header.Get("Content-Type"), contentType)
		if logged := strings.Count(log.String(), "request failed"); logged != map[bool]int{true: 1}[got.status == 500] {
			t.Errorf("%s %s: logged %d times: %s", test.in.Method, test.in.Path, logged, &log)
		}
	}
}

// The error for a malformed body names the place of the fault.
func TestDecode(t *testing.T) {
	s := newMountedServer(Options{})
	for body, message := range map[string]string{
		`{`:                         `the body is not valid JSON: unexpected end of JSON input, at byte 1`,
		`{"Name":"a",}`:             `the body is not valid JSON: invalid character '}' looking for beginning of object key string, at byte 13`,
		`{} {}`:                     `the body is not valid JSON: invalid character '{' after top-level value, at byte 4`,
		`[]`:                        `LIST_VALUE cannot be converted to Structure`,
		`"a"`:                       `STRING_VALUE cannot be converted to Structure`,
		`{"Name":1}`:                `Name: NUMBER_VALUE cannot be converted to String`,
		`{"Name":{}}`:               `Name: STRUCTURE_VALUE cannot be converted to String`,
		`{"Limit":"1"}`:             `Limit: STRING_VALUE cannot be converted to Integer`,
		`{"Limit":4294967296}`:      `Limit: NUMBER_VALUE cannot be converted to Integer`,
		`{"On":"true"}`:             `On: STRING_VALUE cannot be converted to Boolean`,
		`{"At":true}`:               `At: BOOLEAN_VALUE cannot be converted to Number`,
		`{"Tags":{}}`:               `Tags: STRUCTURE_VALUE cannot be converted to List`,
		`{"Tags":[{"Key":1}]}`:      `Tags.Key: NUMBER_VALUE cannot be converted to String`,
		`{"Deep":{"Map":[]}}`:       `Deep.Map: LIST_VALUE cannot be converted to Map`,
		"{\"Name\":\"\xff\"}":       `the body is not UTF-8`,
		strings.Repeat("[", 20_000): `the body is not valid JSON: invalid character '[' exceeded max depth, at byte 10001`,
	} {
		got := do(s, restRequest("POST", "/scheduler/decode", body))
		var w writer
		w.text(message)
		if got.status != 400 || got.header.Get(headerErrorType) != "SerializationException" || got.body != `{"Message":`+string(w.buf)+`}` {
			t.Errorf("%.40q: %d %s, want %s", body, got.status, got.body, message)
		}
	}
	for _, body := range []string{"", "{}", "null", `{"Name":null,"Limit":null}`} {
		want(t, do(s, restRequest("POST", "/scheduler/decode", body)).status, 202)
	}
	if got := do(s, restRequest("POST", "/scheduler/decode", `{"name":"unknown","limit":"so is this","Name":"as it is written","NAME":1}`)); !strings.Contains(got.body, `"Name":"as it is written","Limit":null`) {
		t.Error(got.body)
	}
}

// A client that has disconnected is not a fault.
func TestMountedCancelled(t *testing.T) {
	var log bytes.Buffer
	s := newMountedServer(Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Routes: []Route{{
		Service: "waits", Name: "Wait", Method: "GET", Path: "/waits/here", Do: func(ctx context.Context, _ *Call) (any, error) { return nil, ctx.Err() },
	}}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := s.Do(ctx, restRequest("GET", "/waits/here", ""))
	defer out.Release()
	want(t, out.Status, 500)
	want(t, log.String(), "")
}

func TestMountedGzip(t *testing.T) {
	s := newMountedServer(Options{})
	got := do(s, restRequest("POST", "/scheduler/decode", packed(t, `{"Name":"n"}`), "Content-Encoding", "gzip"))
	if got.status != 202 || !strings.Contains(got.body, `"Name":"n"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	// A compression bomb is one byte too large when decompressed.
	got = do(s, restRequest("POST", "/scheduler/decode", packed(t, strings.Repeat(" ", mountedBodyMax+1)), "Content-Encoding", "gzip"))
	want(t, got.status, 413)
	want(t, got.header.Get(headerErrorType), "RequestEntityTooLargeException")
}

// A request must be signed for the service of its operation, even if it fails for another reason.
func TestMountedUnsigned(t *testing.T) {
	s := newMountedServer(Options{Keys: keys.Fixed(sigv4.Credential{AccessKey: "a", SecretKey: "b"})})
	const missing = `"Request is missing Authentication Token"}`
	for _, test := range []struct {
		in     *Request
		status int
		body   string
	}{
		{restRequest("GET", "/scheduler/gone", ""), 403, `{"Message":` + missing},
		{restRequest("GET", "/scheduler/gone?a=%", ""), 403, `{"Message":` + missing},
		{restRequest("GET", "/lambda/gone", ""), 403, `{"Type":"User","Message":` + missing},
		{restRequest("GET", "/scheduler/none", ""), 404, `{"Message":"scheduler has no operation GET /scheduler/none here"}`},
		{post("AWSEvents.Gone", "{"), 400, `{"__type":"MissingAuthenticationTokenException","message":` + missing},
	} {
		got := do(s, test.in)
		if got.status != test.status || got.body != test.body {
			t.Errorf("%s: %d %s", test.in.Path, got.status, got.body)
		}
		test.in.InProcess = true
		if got := do(s, test.in); strings.Contains(got.body, missing) {
			t.Errorf("%s in process: %d %s", test.in.Path, got.status, got.body)
		}
	}
}

// A request of a page that may not use the server is refused in the form of its API, before all other
// checks. A page of a configured origin is answered, and reads the error's type.
func TestPages(t *testing.T) {
	s := newMountedServer(Options{Pages: browser.Rules{Origins: []string{"https://app.example"}}, Keys: keys.Fixed(sigv4.Credential{AccessKey: "a", SecretKey: "b"})})
	const message = `web pages of https://evil.example cannot use this server`
	for _, test := range []struct {
		in     *Request
		status int
		body   string // its beginning
	}{
		{restRequest("POST", "/scheduler/decode", "{}"), 403, `{"Message":"` + message},
		{restRequest("GET", "/scheduler/tell/a", ""), 403, `{"Message":"` + message},
		{restRequest("GET", "/scheduler/none", ""), 403, `{"Message":"` + message},
		{restRequest("POST", "/lambda/gone", strings.Repeat(" ", mountedBodyMax+1)), 403, `{"Type":"User","Message":"` + message},
		{post("AWSEvents.Gone", "{"), 400, `{"__type":"AccessDeniedException","message":"` + message},
		{post("ListTables", "{"), 400, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"` + message},
		{post("ListTables", "{}", "Content-Type", "text/plain"), 400, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"` + message},
		{restRequest("OPTIONS", "/scheduler/decode", ""), 403, message},
		{restRequest("GET", "/", ""), 403, message},
	} {
		test.in.Header.(http.Header).Set("Origin", "https://evil.example")
		got := do(s, test.in)
		if got.status != test.status || !strings.HasPrefix(got.body, test.body) || got.header.Get("X-Amzn-Requestid") == "" || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: %d %s %v", test.in.Method, test.in.Path, got.status, got.body, got.header)
		}
		test.in.Header.(http.Header).Set("Origin", "https://app.example")
		got = do(s, test.in)
		if strings.Contains(got.body, message) || got.header.Get("Access-Control-Allow-Origin") != "https://app.example" {
			t.Errorf("%s %s of the configured origin: %d %s %v", test.in.Method, test.in.Path, got.status, got.body, got.header)
		}
		if mounted := s.mounted.find(test.in).api != nil; mounted != (got.header.Get("Access-Control-Expose-Headers") != "") {
			t.Errorf("%s %s: exposed %v", test.in.Method, test.in.Path, got.header)
		}
	}
	in := restRequest("GET", "/", "", "Origin", "https://evil.example")
	in.InProcess = true
	want(t, do(s, in).status, 200)
}

// Over a socket, a HEAD has no body, an oversized request gets its text, and a path below no route
// is answered as before.
func TestMountedOverHTTP(t *testing.T) {
	server := httptest.NewServer(newMountedServer(Options{}))
	defer server.Close()
	for _, test := range []struct {
		method, path string
		size, status int
		body         string
	}{
		{"HEAD", "/scheduler/tell/a", 0, 404, ""},
		{"POST", "/scheduler/decode", mountedBodyMax + 1, 413, `{"Message":"the body of a request has at most 1048576 bytes"}`},
		{"GET", "/elsewhere", 0, 404, "<UnknownOperationException/>\n"},
		{"GET", "/scheduler/tell/..", 0, 200, `{"Name":"Read","Path":{"Name":".."},"Query":null,"Body":""}`},
		{"GET", "/scheduler/tell/a%2Fb", 0, 200, `{"Name":"Read","Path":{"Name":"a/b"},"Query":null,"Body":""}`},
	} {
		r, err := http.NewRequest(test.method, server.URL+test.path, strings.NewReader(strings.Repeat(" ", test.size)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != test.status || string(body) != test.body {
			t.Errorf("%s %s: %d %s", test.method, test.path, resp.StatusCode, body)
		}
	}
}
