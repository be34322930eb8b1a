package mayfly

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/conformance"
)

// Every answer has the database's clock in its Date header, wherever that was moved, and on every
// way in. Workers beside the database use it as their clock.
func TestDateIsTheDatabaseClock(t *testing.T) {
	start := time.Date(2031, 2, 3, 4, 5, 6, 789e6, time.UTC)
	db := open(t, "", Options{Start: start, Frozen: true})
	handler := httptest.NewServer(db.Handler())
	t.Cleanup(handler.Close)
	served := serve(t, db)
	check := func(t *testing.T) {
		want := db.Clock().Now().Truncate(time.Second).Format(http.TimeFormat)
		for name, to := range map[string]struct {
			url string
			via http.RoundTripper
		}{"Serve": {served, http.DefaultTransport}, "Handler": {handler.URL, http.DefaultTransport}, "Transport": {"http://in.process", db.Transport()}} {
			for what, body := range map[string]string{"ListTables": "{}", "Nonsense": "["} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.url+"/", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+what)
				r.Header.Set("Content-Type", "application/x-amz-json-1.0")
				r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=k/20310203/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=s")
				r.Header.Set("X-Amz-Date", "20310203T040506Z")
				answer, err := to.via.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if got := answer.Header.Values("Date"); len(got) != 1 || got[0] != want {
					t.Errorf("%s by %s: Date %q, want %q", what, name, got, want)
				}
			}
		}
		answer, err := http.Get(served + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := answer.Header.Get("Date"); got != want {
			t.Errorf("healthz: Date %q, want %q", got, want)
		}
	}
	check(t)
	if _, err := db.Clock().Advance(t.Context(), 400*24*time.Hour+300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	check(t)
}

// A client may sign by the Date header of the answer before, as the SDKs do if it is far from their
// own clock, or by the machine's clock. After a move of the database's clock, a client that signs by
// an earlier answer is refused; it signs again by the Date header of the refusal.
func TestSignaturesByTheDatabaseClock(t *testing.T) {
	db := open(t, "", Options{Start: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), Frozen: true, Credentials: []Credential{{AccessKey: "ours", SecretKey: "secret"}}})
	url := serve(t, db)
	client := func(retryer aws.Retryer) *dynamodb.Client {
		return dynamodb.New(dynamodb.Options{
			Region: "us-east-1", BaseEndpoint: &url, HTTPClient: conformance.HTTPClient(), Retryer: retryer,
			Credentials: credentials.NewStaticCredentialsProvider("ours", "secret", ""),
		})
	}
	soon := retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
	impatient, old := client(aws.NopRetryer{}), client(soon)
	list := func(t *testing.T, c *dynamodb.Client) {
		t.Helper()
		if _, err := c.ListTables(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		for range 2 { // the second by the Date of the first
			list(t, old)
			list(t, impatient)
			list(t, client(aws.NopRetryer{}))
		}
		if _, err := db.Clock().Advance(t.Context(), 400*24*time.Hour); err != nil {
			t.Fatal(err)
		}
		_, err := impatient.ListTables(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "Signature expired") {
			t.Errorf("signed by the clock before it was moved: %v", err)
		}
	}
}

// A signature authorizes one operation, near one instant of a clock. Neither a request whose target
// is unsigned is accepted, nor a date between the two clocks.
func TestSignaturesAuthorizeOneRequest(t *testing.T) {
	machine := time.Now()
	database := machine.AddDate(10, 0, 0)
	db := open(t, "", Options{Start: database, Frozen: true, Credentials: []Credential{{AccessKey: "ours", SecretKey: "secret"}}})
	makeTable(t, db.DynamoDB(), "events")
	url := serve(t, db)
	const body = `{"TableName":"events"}`
	sum := sha256.Sum256([]byte(body))
	ours := aws.Credentials{AccessKeyID: "ours", SecretAccessKey: "secret"}
	signer := v4.NewSigner()
	request := func(target string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		if target != "" {
			r.Header.Set("X-Amz-Target", target)
		}
		return r
	}
	sign := func(target string, at time.Time) *http.Request {
		r := request(target)
		if err := signer.SignHTTP(t.Context(), ours, r, hex.EncodeToString(sum[:]), "dynamodb", "us-east-1", at); err != nil {
			t.Fatal(err)
		}
		return r
	}
	presign := func(target, sent string) *http.Request {
		r := request(target)
		signed, _, err := signer.PresignHTTP(t.Context(), ours, r, hex.EncodeToString(sum[:]), "dynamodb", "us-east-1", machine)
		if err != nil {
			t.Fatal(err)
		}
		r = request(sent)
		if r.URL, err = r.URL.Parse(signed); err != nil {
			t.Fatal(err)
		}
		return r
	}
	const describe, scan = "DynamoDB_20120810.DescribeTable", "DynamoDB_20120810.Scan"
	unsigned := sign("", machine)
	unsigned.Header.Set("X-Amz-Target", scan)
	for name, test := range map[string]struct {
		request *http.Request
		want    string // in the answer's body
	}{
		"signed by the machine's clock":      {sign(describe, machine), `"TableName":"events"`},
		"signed by the database's clock":     {sign(describe, database), `"TableName":"events"`},
		"minutes from the database's clock":  {sign(describe, database.Add(-14*time.Minute)), `"TableName":"events"`},
		"half an hour before the database's": {sign(describe, database.Add(-30*time.Minute)), "Signature expired: "},
		"years after the machine's":          {sign(describe, machine.AddDate(2, 0, 0)), "Signature not yet current: "},
		"target not signed":                  {unsigned, "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization."},
		"presigned":                          {presign(describe, describe), `"TableName":"events"`},
		"presigned for another target":       {presign(describe, scan), "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization."},
		"presigned for no target":            {presign("", scan), "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization."},
	} {
		answer, err := conformance.HTTPClient().Do(test.request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.Contains(string(got), test.want) {
			t.Errorf("%s: %d %s, %v", name, answer.StatusCode, got, err)
		}
	}
}
