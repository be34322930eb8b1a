package mayfly

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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
// own clock, or by the machine's clock.
func TestSignaturesByTheDatabaseClock(t *testing.T) {
	db := open(t, "", Options{Start: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), Frozen: true, Credentials: []Credential{{AccessKey: "ours", SecretKey: "secret"}}})
	url := serve(t, db)
	client := func() *dynamodb.Client {
		return dynamodb.New(dynamodb.Options{
			Region: "us-east-1", BaseEndpoint: &url, HTTPClient: conformance.HTTPClient(), Retryer: aws.NopRetryer{},
			Credentials: credentials.NewStaticCredentialsProvider("ours", "secret", ""),
		})
	}
	old := client()
	for range 3 {
		for range 2 { // the second by the Date of the first
			if _, err := old.ListTables(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if _, err := client().ListTables(t.Context(), nil); err != nil {
				t.Error(err)
			}
		}
		if _, err := db.Clock().Advance(t.Context(), 400*24*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
}
