package wire

import (
	"strings"
	"testing"
)

// With AuthForm, a request needs all parts of a signature, and any will do.
func TestAuthForm(t *testing.T) {
	s := newTestServer(t, Options{AuthForm: true})
	off := newTestServer(t, Options{})
	const whole = "AWS4-HMAC-SHA256 Credential=any/20300101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
	const missing = `#MissingAuthenticationTokenException","message":"Request is missing Authentication Token"}`
	incomplete := func(text string) string { return `#IncompleteSignatureException","message":"` + text + `"}` }
	for _, c := range []struct {
		authorization, date, query, want string // the end of the answer
	}{
		{"", "", "", missing},
		{"", "20300101T000000Z", "", missing},
		{"Basic YTpi", "20300101T000000Z", "", missing},
		{"AWS AKID:signature", "20300101T000000Z", "", missing},
		{"aws4-hmac-sha256 " + whole[17:], "20300101T000000Z", "", missing},
		{"", "", "X-Amz-Credential=a&X-Amz-Signature=b", missing},
		{whole, "20300101T000000Z", "", `{"TableNames":[]}`},
		{whole, "yesterday", "", `{"TableNames":[]}`},
		{strings.Replace(whole, "any/20300101", "x", 1), "20300101T000000Z", "", `{"TableNames":[]}`},
		{whole, "", "", incomplete("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=" + whole)},
		{"AWS4-", "", "", incomplete("Authorization header requires 'Credential' parameter. Authorization header requires 'Signature' parameter. " +
			"Authorization header requires 'SignedHeaders' parameter. Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=AWS4-")},
		{"AWS4-HMAC-SHA256 Credential=a Signature=b", "20300101T000000Z", "", incomplete("Authorization header requires 'SignedHeaders' parameter. Authorization=AWS4-HMAC-SHA256 Credential=a Signature=b")},
		{whole + ", x", "20300101T000000Z", "", incomplete("'x' not a valid key=value pair (missing equal-sign) in Authorization header: '" + whole + ", x'.")},
		{whole, "20300101T000000Z", "X-Amz-Algorithm=AWS4-HMAC-SHA256", `#InvalidSignatureException","message":"Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."}`},
		{"", "", "X-Amz-Algorithm", incomplete("AWS query-string parameters must include 'X-Amz-Algorithm'. AWS query-string parameters must include 'X-Amz-Credential'. " +
			"AWS query-string parameters must include 'X-Amz-Signature'. AWS query-string parameters must include 'X-Amz-SignedHeaders'. AWS query-string parameters must include 'X-Amz-Date'. " +
			"Re-examine the query-string parameters.")},
		{"", "", "X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-Signature=c&X-Amz-SignedHeaders=d&X-Amz-Date=e", `{"TableNames":[]}`},
	} {
		in := post("ListTables", "{}", "Authorization", c.authorization, "X-Amz-Date", c.date)
		in.Query = c.query
		if got := do(s, in); !strings.HasSuffix(got.body, c.want) || (got.status == 200) != strings.HasPrefix(c.want, "{") {
			t.Errorf("%q, %q, %q: %d %s\nwant %s", c.authorization, c.date, c.query, got.status, got.body, c.want)
		}
		if got := do(off, in); got.status != 200 {
			t.Errorf("without AuthForm: %q, %q, %q: %d %s", c.authorization, c.date, c.query, got.status, got.body)
		}
	}
	// Types of members and an empty body come later, malformed JSON and an unknown operation earlier.
	for body, code := range map[string]string{"": "MissingAuthenticationToken", `{"Limit":""}`: "MissingAuthenticationToken", "{": "SerializationException"} {
		if got := call(s, "ListTables", body); !strings.Contains(got.body, code) {
			t.Errorf("%q: %s", body, got.body)
		}
	}
	if got := call(s, "Nothing", "{}"); !strings.Contains(got.body, "UnknownOperationException") {
		t.Error(got.body)
	}
	in := post("ListTables", "{}")
	in.InProcess = true
	want(t, do(s, in).status, 200)
	mounted := newMountedServer(Options{AuthForm: true})
	if got := do(mounted, restRequest("POST", "/scheduler/decode", "{}")); got.status != 403 || got.header.Get(headerErrorType) != "MissingAuthenticationTokenException" {
		t.Errorf("%+v", got)
	}
}
