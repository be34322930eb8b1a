package wire

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
)

// echoed is the answer of an action that repeats its input.
type echoed struct{ Name *string }

// newFormServer serves an API in three protocols.
func newFormServer(o Options) *Server {
	o.MountedOnly = true
	do := func(_ context.Context, c *Call) (any, error) {
		in := &echoed{}
		if err := c.Decode(in); err != nil {
			return nil, err
		}
		if in.Name == nil {
			return nil, &failure{http.StatusBadRequest, "MissingRequiredParameterException", "no name"}
		}
		if *in.Name == "panic" {
			panic("of a test")
		}
		return in, nil
	}
	o.Actions = []Action{{Service: "monitoring", Prefix: "cloudwatch", Target: "Granite.Echo", Namespace: "http://ns/", Do: do}}
	return New(o)
}

// authorization names the service in the form of a signature.
const authorization = "AWS4-HMAC-SHA256 Credential=AKID/20300101/us-east-1/monitoring/aws4_request, SignedHeaders=host, Signature=0"

func formRequest(path, contentType, body string, header ...string) *Request {
	h := http.Header{"Content-Type": {contentType}, "Authorization": {authorization}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &Request{Method: http.MethodPost, Path: path, Header: h, Body: []byte(body)}
}

// One implementation answers in three protocols, each with its own errors.
func TestForms(t *testing.T) {
	s := newFormServer(Options{})
	const form, cborPath = "application/x-www-form-urlencoded; charset=utf-8", "/service/Granite/operation/Echo"
	jsonCall := func(target, body string) *Request {
		return formRequest("/", "application/x-amz-json-1.0", body, "X-Amz-Target", target)
	}
	cborCall := func(path, body string) *Request {
		return formRequest(path, "application/cbor", body, headerProtocol, protocolCBOR)
	}
	for _, c := range []struct {
		what      string
		in        *Request
		status    int
		body      string // a part of it
		operation string
		queryCode string
	}{
		{"JSON", jsonCall("Granite.Echo", `{"Name":"x"}`), 200, `{"Name":"x"}`, "cloudwatch:Echo", ""},
		{"CBOR", cborCall(cborPath, "\xa1\x64Name\x61x"), 200, "\xa1\x64Name\x61x", "cloudwatch:Echo", ""},
		{"query", formRequest("/", form, "Version=2010-08-01&Action=Echo&Name=x"), 200, "<EchoResponse xmlns=\"http://ns/\"><EchoResult><Name>x</Name></EchoResult>", "cloudwatch:Echo", ""},

		{"JSON, refused", jsonCall("Granite.Echo", `{}`), 400, `"__type":"MissingRequiredParameterException"`, "cloudwatch:Echo", "MissingParameter;Sender"},
		{"CBOR, refused", cborCall(cborPath, ""), 400, "MissingRequiredParameterException", "cloudwatch:Echo", "MissingParameter;Sender"},
		{"query, refused", formRequest("/", form, "Action=Echo"), 400, "<Type>Sender</Type><Code>MissingParameter</Code><Message>no name</Message>", "cloudwatch:Echo", ""},

		{"JSON, malformed", jsonCall("Granite.Echo", `{"Name":1}`), 400, "Name: NUMBER_VALUE cannot be converted to String", "cloudwatch:Echo", "MalformedInput;Sender"},
		{"CBOR, malformed", cborCall(cborPath, "\xa1"), 400, "the message ends too early", "cloudwatch:Echo", "MalformedInput;Sender"},
		{"query, malformed", formRequest("/", form, "Action=Echo&Name.x=1"), 400, "<Code>MalformedInput</Code>", "cloudwatch:Echo", ""},

		{"JSON, unknown", jsonCall("Granite.Other", `{}`), 404, "monitoring has no operation Granite.Other here", "", "InvalidAction;Sender"},
		{"CBOR, unknown", cborCall("/service/Granite/operation/Other", ""), 404, "monitoring has no operation POST /service/Granite/operation/Other here", "", "InvalidAction;Sender"},
		{"CBOR, no operation", cborCall("/service/Granite", ""), 404, "UnknownOperationException", "", "InvalidAction;Sender"},
		{"CBOR, another protocol", formRequest(cborPath, "application/json", "{}"), 404, "UnknownOperationException", "", "InvalidAction;Sender"},
		{"query, unknown", formRequest("/", form, "Action=Other"), 404, "<Message>monitoring has no operation Other here</Message>", "", ""},
		{"query, no operation", formRequest("/", form, "a=b"), 404, "<Code>InvalidAction</Code>", "", ""},

		{"CBOR, panics", cborCall(cborPath, "\xa1\x64Name\x65panic"), 500, "InternalServiceFault", "cloudwatch:Echo", "InternalServiceError;Receiver"},
		{"query, panics", formRequest("/", form, "Action=Echo&Name=panic"), 500, "<Type>Receiver</Type><Code>InternalServiceError</Code>", "cloudwatch:Echo", ""},
		{"query, large", formRequest("/", form, "Action=Echo&Name="+strings.Repeat("x", mountedBodyMax)), 413, "<Code>RequestEntityTooLarge</Code>", "cloudwatch:Echo", ""},
		{"another API in CBOR", cborCall("/service/None/operation/Echo", ""), 400, "UnknownOperationException", "", ""},
	} {
		out := newResponse()
		operation, _ := s.routeRequest(t.Context(), c.in, out)
		headers := map[string]string{}
		for _, f := range out.Header {
			headers[f.Name] = f.Value
		}
		if out.Status != c.status || !strings.Contains(string(out.Body), c.body) || operation != c.operation || headers[headerQueryError] != c.queryCode {
			t.Errorf("%s: %d %s, operation %q, %q\nwant %d …%s…, %q, %q", c.what, out.Status, out.Body, operation, headers[headerQueryError], c.status, c.body, c.operation, c.queryCode)
		}
		if inCBOR := headers["Content-Type"] == "application/cbor"; inCBOR != (headers[headerProtocol] == protocolCBOR) || inCBOR != strings.HasPrefix(c.what, "CBOR") {
			t.Errorf("%s: type %s, protocol %q", c.what, headers["Content-Type"], headers[headerProtocol])
		}
		out.Release()
	}
	if !s.Routed(cborPath) || s.Routed("/service/None/operation/Echo") {
		t.Error("the loop does not know the paths of CBOR")
	}
}

// A request without a signature is refused in its protocol. Without one, a form is no request of
// this API.
func TestFormsUnsigned(t *testing.T) {
	s := newFormServer(Options{Keys: keys.Fixed(sigv4.Credential{AccessKey: "AKID", SecretKey: "secret"}), Now: time.Now})
	for _, c := range []struct {
		in   *Request
		body string
	}{
		{formRequest("/", "application/x-www-form-urlencoded", "Action=Echo&Name=x"), "<Code>IncompleteSignature</Code>"},
		{formRequest("/service/Granite/operation/Echo", "application/cbor", "", headerProtocol, protocolCBOR), "IncompleteSignatureException"},
		{formRequest("/", "application/x-amz-json-1.0", "{}", "X-Amz-Target", "Granite.Echo"), `"__type":"IncompleteSignatureException"`},
		{formRequest("/", "application/x-www-form-urlencoded", "Action=Echo&Name=x", "Authorization", ""), "UnknownOperationException"},
	} {
		if got := do(s, c.in); got.status < 400 || !strings.Contains(got.body, c.body) {
			t.Errorf("%d %s, want %s", got.status, got.body, c.body)
		}
	}
}
