package timeseries

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/testkit"
)

// startDynalite starts dynalite from .ci/clients, an independent implementation of DynamoDB.
func startDynalite(t *testing.T) *dynamodb.Client {
	t.Helper()
	url := testkit.Dynalite(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), BaseEndpoint: &url,
		HTTPClient: &http.Client{Transport: transport},
	})
}

// elsewhere returns a series at dynalite, which has neither TTL nor a clock to move: the test sets
// the time.
func elsewhere(t *testing.T, spec Spec, now *time.Time) *world {
	t.Helper()
	x := &world{t: t}
	spec.Table, spec.Now = "weather", func() time.Time { return *now }
	x.open(startDynalite(t), spec)
	return x
}

// Part of a year's readings makes the round trip through another implementation over HTTP. Readers
// omit expired samples although the endpoint removes none.
func TestDynalite(t *testing.T) {
	t.Parallel()
	now := time.Date(2010, 3, 1, 0, 0, 0, 0, time.UTC)
	const retention = 90 * Day
	x := elsewhere(t, Spec{Retention: retention, Metrics: []string{"temperature"}, MetricShards: 2, CacheFor: time.Minute}, &now)
	if x.Lacks() == "" {
		t.Error("dynalite has no TTL, and Create does not say so")
	}
	lines := strings.SplitAfter(seattle(t), "\n")[:1001]
	text := strings.Join(lines, "")
	o := IngestOptions{Format: CSV, Mapping: Mapping{As: "seattle"}, Checkpoint: "year"}
	_, err := Ingest(t.Context(), x.w, stops{strings.NewReader(text[:len(text)/2])}, o)
	if err == nil {
		t.Fatal("the end of the disk was not noticed")
	}
	if _, err = x.SetShards(t.Context(), "seattle", 3); err != nil {
		t.Fatal(err)
	}
	now = now.Add(3 * time.Minute)
	report, err := Ingest(t.Context(), x.w, strings.NewReader(text), o)
	must(t, err)
	if report.Written != 1000 || report.Rejected != 0 || report.Resumed == 0 {
		t.Errorf("reports %+v", report)
	}
	want := plainly(t, text)
	got := all(t, x.r.Range(t.Context(), Query{Device: "seattle"}))
	if len(got) != len(want) {
		t.Fatalf("%d samples, want %d", len(got), len(want))
	}
	for i, s := range got {
		if w := want[i]; !s.Time.Equal(w.at) || s.Values["temperature"] != w.temperature || s.Values["pressure"] != w.pressure {
			t.Fatalf("sample %d is %v, want %v", i, s, w)
		}
	}
	compareRollups(t, got, want)
	if n := len(all(t, x.r.Metric(t.Context(), MetricQuery{Metric: "temperature", From: want[0].at, To: want[24].at}))); n != 24 {
		t.Errorf("the index has %d samples of a day", n)
	}
	for _, i := range []int{10, 990} {
		now = want[i].at.Add(retention)
		if n := len(all(t, x.r.Range(t.Context(), Query{Device: "seattle", Newest: true}))); n != len(want)-i-1 {
			t.Errorf("%d samples, want %d", n, len(want)-i-1)
		}
	}
	latest, err := x.r.Latest(t.Context(), "seattle", "nobody")
	must(t, err)
	if s := latest["seattle"]; len(latest) != 1 || !s.Time.Equal(want[999].at) {
		t.Errorf("the latest is %v", s)
	}
	now = now.Add(10 * Day)
	if latest, err = x.r.Latest(t.Context(), "seattle"); err != nil || len(latest) != 0 {
		t.Errorf("an expired sample is the latest: %v, %v", latest, err)
	}
}
