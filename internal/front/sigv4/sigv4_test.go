package sigv4

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

var (
	testNow = time.Date(2026, 11, 21, 1, 30, 0, 0, time.UTC)
	alice   = Credential{AccessKey: "AKIDALICE", SecretKey: "secret/of+alice"}
	bob     = Credential{AccessKey: "AKIDBOB", SecretKey: "bobs", SessionToken: "token=="}
)

func newTestVerifier() *Verifier { return NewVerifier(alice, bob) }

// post returns an unsigned request as an SDK makes it.
func post(t *testing.T, target, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://localhost:8000"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	return r
}

func hash(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// sign signs with AWS's own signer.
func sign(t *testing.T, r *http.Request, body string, c Credential, at time.Time) {
	t.Helper()
	creds := aws.Credentials{AccessKeyID: c.AccessKey, SecretAccessKey: c.SecretKey, SessionToken: c.SessionToken}
	if err := v4.NewSigner().SignHTTP(context.Background(), creds, r, hash(body), "dynamodb", "eu-west-1", at); err != nil {
		t.Fatal(err)
	}
}

// arrived returns an outgoing request as the server receives it.
func arrived(r *http.Request, body string) *Request {
	return &Request{
		Service: "dynamodb", Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Host: r.URL.Host,
		Headers: r.Header, Body: []byte(body),
	}
}

func TestAcceptsWhatTheSignerSigns(t *testing.T) {
	v := newTestVerifier()
	bodies := []string{"{}", "", strings.Repeat("x", 70000), `{"TableName":"ü"}`}
	targets := []string{
		"/", "", "/_mayfly/clock", "/a%20b/ü", "/?b=2&a=1&a=0&c=&d+e=%2F~", "/?a-b=1&a=2",
		"/schedules/a.b", "/schedules/..", "/schedules/./../a", "/schedules//", "/schedules/", "/2015-03-31/event-source-mappings/",
		"/tags/arn%3Aaws%3Ascheduler%3Aeu-west-1%3A000000000000%3Aschedule-group%2Fa.b?TagKeys=b&TagKeys=a&TagKeys=b",
		"/tags/arn:aws:scheduler:eu-west-1:000000000000:schedule-group%2fa%25b",
		"/schedules?NamePrefix=&NextToken=a%2F%2B%3D%3D&ScheduleGroup=x.y",
	}
	for _, body := range bodies {
		for _, target := range targets {
			for _, c := range []Credential{alice, bob} {
				r := post(t, target, body)
				r.Header.Add("X-Amz-Meta", "  two   blanks ")
				r.Header.Add("X-Amz-Meta", "again")
				sign(t, r, body, c, testNow)
				if err := v.Verify(arrived(r, body), testNow, testNow); err != nil {
					t.Errorf("%s %.20q by %s: %v", target, body, c.AccessKey, err)
				}
			}
		}
	}
}

// presign returns a request as it arrives whose signature is in the query. AWS's presigner moves
// headers such as X-Amz-Target into the query; all headers are sent nevertheless.
func presign(t *testing.T, r *http.Request, body string, c Credential, options ...func(*v4.SignerOptions)) *http.Request {
	t.Helper()
	creds := aws.Credentials{AccessKeyID: c.AccessKey, SecretAccessKey: c.SecretKey, SessionToken: c.SessionToken}
	signed, _, err := v4.NewSigner().PresignHTTP(context.Background(), creds, r, hash(body), "dynamodb", "eu-west-1", testNow, options...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := http.NewRequest(http.MethodPost, signed, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	out.Header = r.Header.Clone()
	return out
}

func TestAcceptsPresignedRequests(t *testing.T) {
	v := newTestVerifier()
	for _, c := range []Credential{alice, bob} {
		out := presign(t, post(t, "/?Action=x%20y", "{}"), "{}", c)
		if !strings.Contains(out.URL.RawQuery, "X-Amz-Target=DynamoDB_20120810.ListTables") || out.Header.Get("X-Amz-Target") == "" {
			t.Fatalf("the target is not in both the query and the headers: %s %v", out.URL, out.Header)
		}
		if err := v.Verify(arrived(out, "{}"), testNow, testNow); err != nil {
			t.Errorf("by %s: %v", c.AccessKey, err)
		}
		out.URL.RawQuery += "&extra=1"
		wantCode(t, v.Verify(arrived(out, "{}"), testNow, testNow), dynamo.CodeInvalidSignature, "does not match")
	}
}

// The query form may also sign headers by their names.
func TestPresignedByName(t *testing.T) {
	r := post(t, "/", "{}")
	r.Header.Add("X-Amz-Target", "DynamoDB_20120810.Scan") // twice: the signature covers both values
	out := presign(t, r, "{}", alice, func(o *v4.SignerOptions) { o.DisableHeaderHoisting = true })
	if query := out.URL.Query(); query.Has("X-Amz-Target") || !strings.Contains(query.Get(querySignedHeaders), ";x-amz-target") {
		t.Fatalf("the target is not a signed header: %v", query)
	}
	if err := newTestVerifier().Verify(arrived(out, "{}"), testNow, testNow); err != nil {
		t.Error(err)
	}
	out.Header.Set("X-Amz-Target", "DynamoDB_20120810.Scan")
	wantCode(t, newTestVerifier().Verify(arrived(out, "{}"), testNow, testNow), dynamo.CodeInvalidSignature, "does not match")

	// As parameters, several values are refused.
	out = presign(t, r, "{}", alice)
	wantCode(t, newTestVerifier().Verify(arrived(out, "{}"), testNow, testNow), dynamo.CodeInvalidSignature, "'X-Amz-Target' must be")
}

// A header that the query form does not sign, by its name or as a parameter, is refused.
func TestPresignedHeadersMustBeSigned(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*http.Request)
		text   string
	}{
		"another target":        {func(r *http.Request) { r.Header.Set("X-Amz-Target", "DynamoDB_20120810.DeleteTable") }, "'X-Amz-Target' must be"},
		"a second target":       {withHeader("X-Amz-Target", "DynamoDB_20120810.DeleteTable"), "'X-Amz-Target' must be"},
		"the same target twice": {withHeader("X-Amz-Target", "DynamoDB_20120810.ListTables"), "'X-Amz-Target' must be"},
		"a further header":      {withHeader("X-Amz-Later", "x"), "'X-Amz-Later' must be"},
		"a parameter that is added later": {func(r *http.Request) {
			withHeader("X-Amz-Later", "x")(r)
			r.URL.RawQuery += "&X-Amz-Later=x"
		}, "does not match"},
		"a second parameter": {func(r *http.Request) {
			r.Header.Set("X-Amz-Target", "DynamoDB_20120810.DeleteTable")
			r.URL.RawQuery += "&X-Amz-Target=DynamoDB_20120810.DeleteTable"
		}, "'X-Amz-Target' must be"},
	} {
		t.Run(name, func(t *testing.T) {
			out := presign(t, post(t, "/", "{}"), "{}", alice)
			test.change(out)
			wantCode(t, newTestVerifier().Verify(arrived(out, "{}"), testNow, testNow), dynamo.CodeInvalidSignature, test.text)
		})
	}

	// A URL that is signed with the host alone cannot be used for an operation.
	r := post(t, "/", "{}")
	r.Header.Del("X-Amz-Target")
	out := presign(t, r, "{}", alice)
	if err := newTestVerifier().Verify(arrived(out, "{}"), testNow, testNow); err != nil {
		t.Fatal(err)
	}
	out.Header.Set("X-Amz-Target", "DynamoDB_20120810.Scan")
	wantCode(t, newTestVerifier().Verify(arrived(out, "{}"), testNow, testNow), dynamo.CodeInvalidSignature,
		"'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.")
}

// Headers that clients and proxies are known to add after signing do not spoil the signature. Those
// of mayfly and of load balancers do not begin with x-amz-.
func TestAcceptsHeadersAddedLater(t *testing.T) {
	for _, name := range []string{
		"X-Amz-User-Agent", "x-amz-content-sha256", "X-Amz-Cf-Id", "X-Amzn-Trace-Id", "Amz-Sdk-Request", "X-Mayfly-Wait-Ms", "X-Amz", "User-Agent",
	} {
		r := post(t, "/", "{}")
		sign(t, r, "{}", alice, testNow)
		r.Header.Add(name, "added")
		if err := newTestVerifier().Verify(arrived(r, "{}"), testNow, testNow); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// signHash is sign with any hash of the body. The signer takes it as it is.
func signHash(t *testing.T, r *http.Request, bodyHash string) {
	t.Helper()
	creds := aws.Credentials{AccessKeyID: alice.AccessKey, SecretAccessKey: alice.SecretKey}
	if err := v4.NewSigner().SignHTTP(context.Background(), creds, r, bodyHash, "dynamodb", "eu-west-1", testNow); err != nil {
		t.Fatal(err)
	}
}

// A request whose body is unsigned, or signed in chunks, is refused with the reason, in both forms.
func TestUnsupportedPayloads(t *testing.T) {
	const chunked = "2;chunk-signature=" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + "\r\n{}\r\n0;chunk-signature=00\r\n\r\n"
	for manner, body := range map[string]string{
		"UNSIGNED-PAYLOAD":                                 "{}",
		"STREAMING-UNSIGNED-PAYLOAD-TRAILER":               "2\r\n{}\r\n0\r\n\r\n",
		"STREAMING-AWS4-HMAC-SHA256-PAYLOAD":               chunked,
		"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":       chunked,
		"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD":         chunked,
		"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER": chunked,
	} {
		want := "'X-Amz-Content-Sha256' is '" + manner + "', which this service does not support. Sign the request with the SHA-256 of its whole body"
		r := post(t, "/", body)
		r.Header.Set("X-Amz-Content-Sha256", manner)
		signHash(t, r, manner)
		wantCode(t, newTestVerifier().Verify(arrived(r, body), testNow, testNow), dynamo.CodeInvalidSignature, want)

		// Some presigners move the header into the query.
		r = presign(t, post(t, "/?X-Amz-Content-Sha256="+manner, body), body, alice)
		wantCode(t, newTestVerifier().Verify(arrived(r, body), testNow, testNow), dynamo.CodeInvalidSignature, want)

		// Without a known key, the error is about the key.
		r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "AKIDALICE", "AKIDMALLORY", 1)
		wantCode(t, newTestVerifier().Verify(arrived(r, body), testNow, testNow), dynamo.CodeUnrecognizedClient, "is invalid")
	}
}

// The signature is checked against the received body, and the hash in the header is ignored.
func TestContentHash(t *testing.T) {
	for _, test := range []struct {
		header, signed string
		valid          bool
	}{
		{hash("{}"), hash("{}"), true},
		{hash("[]"), hash("[]"), false},
		{hash("{}"), hash("[]"), false},
		{hash("[]"), hash("{}"), true},
		{"required", hash("{}"), true},
	} {
		r := post(t, "/", "{}")
		r.Header.Set("X-Amz-Content-Sha256", test.header)
		signHash(t, r, test.signed)
		err := newTestVerifier().Verify(arrived(r, "{}"), testNow, testNow)
		if test.valid && err != nil {
			t.Errorf("%+v: %v", test, err)
		}
		if !test.valid {
			wantCode(t, err, dynamo.CodeInvalidSignature, "does not match")
		}
	}
}

// listed is a list of headers whose names are in any case.
type listed struct {
	http.Header
	names []string
}

func (l listed) Names() []string { return l.names }

// The check works for other types of headers than http.Header, and fails for those whose names it
// cannot list.
func TestNamedHeaders(t *testing.T) {
	v := newTestVerifier()
	r := post(t, "/", "{}")
	sign(t, r, "{}", alice, testNow)
	in := arrived(r, "{}")
	verify := func(names ...string) error {
		in.Headers = listed{r.Header, names}
		return v.Verify(in, testNow, testNow)
	}
	if err := verify("host", "X-AMZ-DATE", "x-amz-target", "X-Amz-User-AGENT", "", "x-amzn-trace-id"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"X-AMZ-LATER", "x-amz-later", "x-amz-"} {
		wantCode(t, verify("x-amz-date", name, "x-amz-target"), dynamo.CodeInvalidSignature, "' must be a 'SignedHeader' in the AWS Authorization.")
	}
	in.Headers = struct{ Headers }{r.Header}
	if err := v.Verify(in, testNow, testNow); err == nil {
		t.Error("headers without names were accepted")
	}
}

// A name that only looks like a header's in capitals does not sign that header: the signature would
// cover the value of another one.
func TestSignedNamesAreBytes(t *testing.T) {
	for lower, is := range map[string]bool{"x-amz-k": true, "x-amz-\u212a": false, "x-amz-K": false, "x-amz-": false, "x-amz-kk": false} {
		if isLower("X-Amz-K", lower) != is {
			t.Errorf("%q: want %t", lower, is)
		}
	}
	if isLower("X-Amz-S", "x-amz-\u017f") || isLower("X-Amz_", "x-amz\x7f") || isLower("X-Amz@", "x-amz`") {
		t.Error("other bytes are taken for small letters")
	}
}

// A signature is fresh within 15 minutes of either of two clocks, and not at the instants between
// the clocks.
func TestTwoClocks(t *testing.T) {
	v := newTestVerifier()
	machine, database := testNow, testNow.AddDate(4, 0, 0)
	verify := func(at time.Time) error {
		r := post(t, "/", "{}")
		sign(t, r, "{}", alice, at)
		err := v.Verify(arrived(r, "{}"), machine, database)
		if other := v.Verify(arrived(r, "{}"), database, machine); (err == nil) != (other == nil) {
			t.Errorf("signed at %v: %v, and with the clocks exchanged %v", at, err, other)
		}
		return err
	}
	for _, clock := range []time.Time{machine, database} {
		for _, off := range []time.Duration{0, -skewMax, skewMax} {
			if err := verify(clock.Add(off)); err != nil {
				t.Errorf("%v from a clock: %v", off, err)
			}
		}
		early, late := clock.Add(-skewMax-time.Second), clock.Add(skewMax+time.Second)
		// The error refers to the nearer clock.
		wantCode(t, verify(early), dynamo.CodeInvalidSignature, "("+clock.Format(dateLayout)+" - 15 min.)")
		wantCode(t, verify(late), dynamo.CodeInvalidSignature, "("+clock.Format(dateLayout)+" + 15 min.)")
	}
	wantCode(t, verify(machine.AddDate(2, 0, 0)), dynamo.CodeInvalidSignature, "Signature ")
	// Further apart than a time.Duration can express.
	machine, database = testNow, time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
	wantCode(t, verify(time.Date(5000, 1, 1, 0, 0, 0, 0, time.UTC)), dynamo.CodeInvalidSignature, "Signature ")
	for _, clock := range []time.Time{machine, database} {
		if err := verify(clock); err != nil {
			t.Error(err)
		}
	}
}

// The SDK's clients sign streams requests for the service dynamodb as well.
func TestAcceptsTheClients(t *testing.T) {
	v := newTestVerifier()
	var verified []error
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		if _, err := r.Body.Read(body); err != nil && err.Error() != "EOF" {
			t.Error(err)
		}
		verified = append(verified, v.Verify(&Request{
			Service: "dynamodb", Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Host: r.Host, Headers: r.Header, Body: body,
		}, time.Now(), time.Now()))
		w.Write([]byte("{}"))
	}))
	defer server.Close()

	creds := credentials.NewStaticCredentialsProvider(alice.AccessKey, alice.SecretKey, "")
	db := dynamodb.New(dynamodb.Options{BaseEndpoint: &server.URL, Region: "local", Credentials: creds})
	if _, err := db.ListTables(context.Background(), &dynamodb.ListTablesInput{}); err != nil {
		t.Fatal(err)
	}
	streams := dynamodbstreams.New(dynamodbstreams.Options{BaseEndpoint: &server.URL, Region: "local", Credentials: creds})
	if _, err := streams.ListStreams(context.Background(), &dynamodbstreams.ListStreamsInput{}); err != nil {
		t.Fatal(err)
	}
	if len(verified) != 2 || verified[0] != nil || verified[1] != nil {
		t.Fatalf("verified: %v", verified)
	}
}

// Each case damages a well signed request in one way.
func TestRefusals(t *testing.T) {
	const body = `{"Limit":1}`
	for _, test := range []struct {
		name  string
		spoil func(r *http.Request)
		code  dynamo.Code
		text  string
	}{
		{"unsigned", func(r *http.Request) { r.Header.Del("Authorization") },
			dynamo.CodeMissingAuthToken, "Request is missing Authentication Token"},
		{"another scheme", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") },
			dynamo.CodeMissingAuthToken, "Request is missing Authentication Token"},
		{"both forms", func(r *http.Request) { r.URL.RawQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256" },
			dynamo.CodeInvalidSignature, "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."},
		{"nothing but a scheme", func(r *http.Request) {
			r.Header.Set("Authorization", "AWS4-")
			r.Header.Del("X-Amz-Date")
		}, dynamo.CodeIncompleteSignature, "Authorization header requires 'Credential' parameter. " +
			"Authorization header requires 'Signature' parameter. Authorization header requires 'SignedHeaders' parameter. " +
			"Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=AWS4-"},
		{"a part without equal sign", edit("AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA256 oops, "),
			dynamo.CodeIncompleteSignature, "'oops' not a valid key=value pair (missing equal-sign) in Authorization header: 'AWS4-HMAC-SHA256 oops, Cred"},
		{"date format", func(r *http.Request) { r.Header.Set("X-Amz-Date", "Sat, 21 Nov 2026 01:30:00 GMT") },
			dynamo.CodeIncompleteSignature, "Date must be in ISO-8601 'basic format'. Got 'Sat, 21 Nov 2026 01:30:00 GMT'. See http://en.wikipedia.org/wiki/ISO_8601"},
		{"expired", func(r *http.Request) { r.Header.Set("X-Amz-Date", "20261121T011459Z") },
			dynamo.CodeInvalidSignature, "Signature expired: 20261121T011459Z is now earlier than 20261121T011500Z (20261121T013000Z - 15 min.)"},
		{"too early", func(r *http.Request) { r.Header.Set("X-Amz-Date", "20261121T014501Z") },
			dynamo.CodeInvalidSignature, "Signature not yet current: 20261121T014501Z is still later than 20261121T014500Z (20261121T013000Z + 15 min.)"},
		{"host not signed", edit("host;", ""),
			dynamo.CodeInvalidSignature, "'Host' must be a 'SignedHeader' in the AWS Authorization."},
		{"an unsigned header", withHeader("X-Amz-Later", "x"),
			dynamo.CodeInvalidSignature, "'X-Amz-Later' must be a 'SignedHeader' in the AWS Authorization."},
		{"an unsigned header whose name ends like a signed one", withHeader("X-Amz-Not-X-Amz-Target", "x"),
			dynamo.CodeInvalidSignature, "'X-Amz-Not-X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization."},
		{"an unsigned header without a name", withHeader("X-Amz-", "x"),
			dynamo.CodeInvalidSignature, "'X-Amz-' must be a 'SignedHeader' in the AWS Authorization."},
		{"two unsigned headers", edit("x-amz-date;x-amz-target", "x-other"),
			dynamo.CodeInvalidSignature, "'X-Amz-Date' must be a 'SignedHeader' in the AWS Authorization."},
		{"a signed header's name in capitals", edit("x-amz-target", "X-Amz-Target"),
			dynamo.CodeInvalidSignature, "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization."},
		{"a second value of a signed header", withHeader("x-amz-target", "DynamoDB_20120810.DeleteTable"),
			dynamo.CodeInvalidSignature, "x-amz-target:DynamoDB_20120810.ListTables,DynamoDB_20120810.DeleteTable\n"},
		{"host and another header not signed", func(r *http.Request) { edit("host;", "")(r); withHeader("X-Amz-Later", "x")(r) },
			dynamo.CodeInvalidSignature, "'Host' must be a 'SignedHeader' in the AWS Authorization."},
		{"another header not signed, and another algorithm", func(r *http.Request) {
			edit("AWS4-HMAC-SHA256", "AWS4-HMAC-MD5")(r)
			withHeader("X-Amz-Later", "x")(r)
		}, dynamo.CodeInvalidSignature, "'X-Amz-Later' must be a 'SignedHeader' in the AWS Authorization."},
		{"algorithm", edit("AWS4-HMAC-SHA256", "AWS4-HMAC-MD5"),
			dynamo.CodeIncompleteSignature, "Unsupported AWS 'algorithm': 'AWS4-HMAC-MD5' (only AWS4-HMAC-SHA256 for now). "},
		{"four pieces", edit("/eu-west-1/", "/"),
			dynamo.CodeIncompleteSignature, "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got 'AKIDALICE/20261121/dynamodb/aws4_request'"},
		{"scope", edit("20261121/eu-west-1/dynamodb/aws4_request", "20261120//s3/aws4"),
			dynamo.CodeInvalidSignature, "Credential should be scoped to a valid region, not ''. Credential should be scoped to correct service: 'dynamodb'. " +
				"Credential should be scoped with a valid terminator: 'aws4_request', not 'aws4'. Date in Credential scope does not match YYYYMMDD " +
				"from ISO-8601 version of date from HTTP: '20261120' != '20261121', from '20261121T013000Z'."},
		{"unknown key", edit("AKIDALICE", "AKIDMALLORY"),
			dynamo.CodeUnrecognizedClient, "The security token included in the request is invalid."},
		{"another's key", edit("AKIDALICE", "AKIDBOB"), dynamo.CodeInvalidSignature, "does not match"},
		{"a signed header changed", func(r *http.Request) { r.Header.Set("X-Amz-Target", "DynamoDB_20120810.DeleteTable") },
			dynamo.CodeInvalidSignature, "does not match"},
		{"another method", func(r *http.Request) { r.Method = "PUT" }, dynamo.CodeInvalidSignature, "'PUT\n/\n\ncontent-length:11\n"},
		{"another path", func(r *http.Request) { r.URL.Path = "/x" }, dynamo.CodeInvalidSignature, "'POST\n/x\n\n"},
		{"another query", func(r *http.Request) { r.URL.RawQuery = "b&a" }, dynamo.CodeInvalidSignature, "'POST\n/\na=&b=\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := post(t, "/", body)
			sign(t, r, body, alice, testNow)
			test.spoil(r)
			wantCode(t, newTestVerifier().Verify(arrived(r, body), testNow, testNow), test.code, test.text)
		})
	}
}

// withHeader adds a header to a request that is already signed.
func withHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func edit(old, new string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), old, new, 1))
	}
}

func TestRefusesIncompleteQuery(t *testing.T) {
	r := post(t, "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20261121T013000Z", "")
	wantCode(t, newTestVerifier().Verify(arrived(r, ""), testNow, testNow), dynamo.CodeIncompleteSignature,
		"AWS query-string parameters must include 'X-Amz-Credential'. AWS query-string parameters must include 'X-Amz-Signature'. "+
			"AWS query-string parameters must include 'X-Amz-SignedHeaders'. Re-examine the query-string parameters.")
}

// A signature is valid for one service.
func TestRefusesAnotherService(t *testing.T) {
	r := post(t, "/schedules/a", "{}")
	sign(t, r, "{}", alice, testNow)
	in := arrived(r, "{}")
	in.Service = "scheduler"
	wantCode(t, newTestVerifier().Verify(in, testNow, testNow), dynamo.CodeInvalidSignature, "Credential should be scoped to correct service: 'scheduler'. ")
}

func TestRefusesAnotherBody(t *testing.T) {
	r := post(t, "/", "{}")
	sign(t, r, "{}", alice, testNow)
	wantCode(t, newTestVerifier().Verify(arrived(r, "[]"), testNow, testNow), dynamo.CodeInvalidSignature, "The String-to-Sign should have been\n'AWS4-HMAC-SHA256\n20261121T013000Z\n20261121/eu-west-1/dynamodb/aws4_request\n")
}

func TestSessionTokenMustBeTheConfiguredOne(t *testing.T) {
	for _, test := range []struct {
		credential Credential
		token      string
	}{{bob, ""}, {bob, "other"}, {bob, bob.SessionToken + "="}, {alice, "any"}} {
		r := post(t, "/", "{}")
		sign(t, r, "{}", Credential{AccessKey: test.credential.AccessKey, SecretKey: test.credential.SecretKey, SessionToken: test.token}, testNow)
		err := newTestVerifier().Verify(arrived(r, "{}"), testNow, testNow)
		wantCode(t, err, dynamo.CodeUnrecognizedClient, "The security token included in the request is invalid")
		if strings.HasSuffix(err.Error(), ".") {
			t.Errorf("this text has no full stop: %v", err)
		}
	}
}

func TestRegion(t *testing.T) {
	r := post(t, "/", "{}")
	sign(t, r, "{}", alice, testNow)
	for header, want := range map[string]string{
		r.Header.Get("Authorization"): "eu-west-1", "": "", "AWS4-HMAC-SHA256 Credential=a/b/c": "", "Bearer x": "", "Credential=a/b/c/d": "c",
		"Credential=a/b/EU/d": "", "Credential=a/b/eu\n/d": "", "Credential=a/b//d": "", "Credential=a/b/" + strings.Repeat("e", 33) + "/d": "",
	} {
		if got := Region(header); got != want {
			t.Errorf("%q: %q", header, got)
		}
	}
}

func TestService(t *testing.T) {
	r := post(t, "/", "{}")
	sign(t, r, "{}", alice, testNow)
	for header, want := range map[string]string{
		r.Header.Get("Authorization"): "dynamodb", "": "", "AWS4-HMAC-SHA256 Credential=a/b/c/d": "", "Bearer x": "", "Credential=a/b/c/s3/e": "s3",
		"Credential=a/b/c/S3/e": "", "Credential=a/b/c/s\n3/e": "", "Credential=a/b/c//e": "", "Credential=a/b/c/" + strings.Repeat("e", 33) + "/f": "",
	} {
		if got := Service(header); got != want {
			t.Errorf("%q: %q", header, got)
		}
	}
}

// A header that is named repeatedly is signed, and stored, once.
func TestRepeatedSignedHeaders(t *testing.T) {
	r := post(t, "/", "{}")
	sign(t, r, "{}", alice, testNow)
	edit("SignedHeaders=", "SignedHeaders="+strings.Repeat("x-amz-date;", 10000))(r)
	if err := newTestVerifier().Verify(arrived(r, "{}"), testNow, testNow); err != nil {
		t.Error(err)
	}
}

// Only a valid signature caches its derived key, and the cache is bounded.
func TestKeyCache(t *testing.T) {
	v := newTestVerifier()
	r := post(t, "/", "{}")
	sign(t, r, "{}", alice, testNow)
	in := arrived(r, "{}")
	in.Body = []byte("spoilt")
	if err := v.Verify(in, testNow, testNow); err == nil || len(v.mu.keys) != 0 {
		t.Fatalf("error %v, %d keys cached", err, len(v.mu.keys))
	}
	in.Body = []byte("{}")
	for range 2 {
		if err := v.Verify(in, testNow, testNow); err != nil || len(v.mu.keys) != 1 {
			t.Fatalf("error %v, %d keys cached", err, len(v.mu.keys))
		}
	}
	for i := range 3 * keysMax {
		v.remember(keyScope{region: strings.Repeat("r", i)}, new(signingKey))
		if len(v.mu.keys) > keysMax {
			t.Fatalf("%d keys cached", len(v.mu.keys))
		}
	}
}

func wantCode(t *testing.T, err error, code dynamo.Code, text string) {
	t.Helper()
	var refused *dynamo.Error
	if !errors.As(err, &refused) || refused.Code != code || !strings.Contains(refused.Message, text) {
		t.Errorf("error %v\nwant  %s: %s", err, code, text)
	}
}

// FuzzAuthorization checks any header and query: no panic, and no unsigned request is accepted.
func FuzzAuthorization(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential=AKIDALICE/20261121/eu-west-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=00", "20261121T013000Z", "")
	f.Add("AWS4- = , ,,==;;", "", "X-Amz-Algorithm=%zz&=&X-Amz-Signature")
	f.Add("", "20261121T013000Z", "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDALICE/20261121/r/dynamodb/aws4_request&X-Amz-Signature=0&X-Amz-SignedHeaders=host&X-Amz-Date=20261121T013000Z")
	f.Add("AWS4-HMAC-SHA256 Credential=AKIDALICE/20301121/r/dynamodb/aws4_request, SignedHeaders=host;x-amz-date;x-amz-\u017f, Signature=0", "20301121T013000Z", "")
	f.Add("AWS4-HMAC-SHA256 Credential=AKIDBOB/20261121/r/dynamodb/aws4_request, SignedHeaders=;host;;X-AMZ-DATE, Signature=0", "20261121T013000Z", "a=%zz")
	f.Add("AWS4-HMAC-SHA256 Credential=AKIDALICE/20281121/r/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0", "20281121T013000Z", "")
	f.Add("", "20261121T013000Z", "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDALICE/20261121/r/dynamodb/aws4_request&X-Amz-Signature=0&X-Amz-SignedHeaders=host&x-amz-date=&X-Amz-Date=20261121T013000Z&X-Amz-Content-Sha256=STREAMING-")
	v := newTestVerifier()
	f.Fuzz(func(t *testing.T, authorization, date, query string) {
		h := http.Header{}
		h.Set("Authorization", authorization)
		h.Set("X-Amz-Date", date)
		err := v.Verify(&Request{Service: "dynamodb", Method: "POST", Path: "/", Query: query, Host: "h", Headers: h}, testNow, testNow.AddDate(4, 0, 0))
		if _, ok := errors.AsType[*dynamo.Error](err); !ok {
			t.Fatalf("got %v, want a refusal", err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	r, body := benchmarkRequest()
	v := newTestVerifier()
	in := arrived(r, body)
	b.ReportAllocs()
	for b.Loop() {
		if err := v.Verify(in, testNow, testNow); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResign measures the alternative to this verifier: sign again with AWS's signer and
// compare.
func BenchmarkResign(b *testing.B) {
	r, body := benchmarkRequest()
	want := r.Header.Get("Authorization")
	signer := v4.NewSigner()
	creds := aws.Credentials{AccessKeyID: alice.AccessKey, SecretAccessKey: alice.SecretKey}
	b.ReportAllocs()
	for b.Loop() {
		again := r.Clone(context.Background())
		again.Header.Del("Authorization")
		if err := signer.SignHTTP(context.Background(), creds, again, hash(body), "dynamodb", "eu-west-1", testNow); err != nil {
			b.Fatal(err)
		}
		if again.Header.Get("Authorization") != want {
			b.Fatal("signatures differ")
		}
	}
}

func benchmarkRequest() (*http.Request, string) {
	body := strings.Repeat("x", 400)
	r, _ := http.NewRequest(http.MethodPost, "http://localhost:8000/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
	r.Header.Set("Amz-Sdk-Invocation-Id", "d4f4b7ae-1111-2222-3333-444444444444")
	creds := aws.Credentials{AccessKeyID: alice.AccessKey, SecretAccessKey: alice.SecretKey}
	v4.NewSigner().SignHTTP(context.Background(), creds, r, hash(body), "dynamodb", "eu-west-1", testNow)
	return r, body
}
