package mayfly

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly/conformance"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

func open(t testing.TB, dir string, options Options) *DB {
	t.Helper()
	db, err := Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// makeTable creates a table with the key pk, TTL on the attribute ttl, and a stream of keys.
func makeTable(t testing.TB, api *dynamodb.Client, name string) {
	t.Helper()
	makeTableWithView(t, api, name, types.StreamViewTypeKeysOnly)
}

func makeTableWithView(t testing.TB, api *dynamodb.Client, name string, view types.StreamViewType) {
	t.Helper()
	_, err := api.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            &name,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("ttl")},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func putUntil(t testing.TB, api *dynamodb.Client, table, pk string, deadline time.Time) {
	t.Helper()
	_, err := api.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"pk":  &types.AttributeValueMemberS{Value: pk},
		"ttl": &types.AttributeValueMemberN{Value: fmt.Sprint(deadline.Unix())},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// send sends a plain HTTP request without a signature.
func send(t testing.TB, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	status, text, _ := sendFor(t, method, url, body, "", headers...)
	return status, text
}

// sendFor is send, and also returns one header of the answer.
func sendFor(t testing.TB, method, url, body, answered string, headers ...string) (status int, text, header string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(all), answer.Header.Get(answered)
}

// With credentials, every request of the API and of the clock must be signed; probes and metrics
// are open.
func TestCredentials(t *testing.T) {
	db := open(t, "", Options{Credentials: []Credential{{AccessKey: "ours", SecretKey: "secret"}}})
	url := serve(t, db)
	list := func(key, secret string) error {
		client := dynamodb.New(dynamodb.Options{
			Region: "eu-central-1", BaseEndpoint: &url, HTTPClient: conformance.HTTPClient(), Retryer: aws.NopRetryer{},
			Credentials: credentials.NewStaticCredentialsProvider(key, secret, ""),
		})
		_, err := client.ListTables(t.Context(), nil)
		return err
	}
	if err := list("ours", "secret"); err != nil {
		t.Errorf("ours: %v", err)
	}
	if err := list("ours", "guess"); err == nil || !strings.Contains(err.Error(), "InvalidSignatureException") {
		t.Errorf("a wrong secret: %v", err)
	}
	if err := list("theirs", "secret"); err == nil || !strings.Contains(err.Error(), "UnrecognizedClientException") {
		t.Errorf("a wrong key: %v", err)
	}
	status, body := send(t, "POST", url+"/_mayfly/clock/freeze", "")
	if status != http.StatusBadRequest || !strings.Contains(body, "MissingAuthenticationToken") {
		t.Errorf("the clock, unsigned: %d %s", status, body)
	}
	if db.Clock().State().Frozen {
		t.Error("an unsigned request froze the clock")
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body := send(t, "GET", url+path, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	// Nothing crosses a network on the way from our own clients.
	if _, err := db.DynamoDB().ListTables(t.Context(), nil); err != nil {
		t.Errorf("in process: %v", err)
	}
}

// An advance over the wire expires items on its way, and returns their number.
func TestClockOverHTTP(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	db := open(t, "", Options{Start: start, Frozen: true})
	makeTable(t, db.DynamoDB(), "events")
	for i := range 3 {
		putUntil(t, db.DynamoDB(), "events", fmt.Sprint(i), start.Add(time.Duration(i+1)*time.Hour))
	}
	url := serve(t, db)
	status, body := send(t, "POST", url+"/_mayfly/clock/advance", `{"by":"2h30m"}`)
	if status != http.StatusOK || !strings.Contains(body, `"expired":2,"unfinished":false`) {
		t.Errorf("got %d %s", status, body)
	}
	out, err := db.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("events")})
	if err != nil || out.Count != 1 {
		t.Errorf("%d items are left, %v", out.Count, err)
	}
	status, body = send(t, "POST", url+"/_mayfly/clock/set", `{"to":"2030-01-01T01:00:00Z"}`)
	if status != http.StatusConflict || !strings.Contains(body, "only goes forward") {
		t.Errorf("backwards: %d %s", status, body)
	}
	status, body = send(t, "POST", url+"/_mayfly/clock/set", `{"to":"2030-01-01T03:00:00Z"}`)
	if status != http.StatusOK || !strings.Contains(body, `"now":"2030-01-01T03:00:00.000Z"`) || !strings.Contains(body, `"expired":1`) {
		t.Errorf("forwards: %d %s", status, body)
	}
	status, body = send(t, "POST", url+"/_mayfly/clock/rate", `{"rate":-1}`)
	if status != http.StatusConflict {
		t.Errorf("a negative rate: %d %s", status, body)
	}
}

func TestSetBeyondADuration(t *testing.T) {
	db := open(t, "", Options{})
	if _, err := db.Clock().Set(t.Context(), time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)); err == nil || !strings.Contains(err.Error(), "292 years") {
		t.Errorf("got %v", err)
	}
	if _, err := db.Clock().Advance(t.Context(), -time.Second); !errors.Is(err, ErrBackward) {
		t.Errorf("got %v", err)
	}
}

// The metrics count requests and expiries by table, and measure lateness.
func TestMetricsTellOfExpiry(t *testing.T) {
	testMetricsTellOfExpiry(t, Options{}, `mayfly_table_expiry{TableName="events",delay="",mode="strict",seed=""} 1`)
	testMetricsTellOfExpiry(t, Options{Expiry: ExpiryAWS, ExpiryDelay: "fixed:90s", ExpirySeed: 7},
		`mayfly_table_expiry{TableName="events",delay="fixed:1m30s",mode="aws",seed="7"} 1`)
}

// A scrape has the mistakes in TTL values of existing tables.
func TestMetricsTellOfSuspicions(t *testing.T) {
	db := open(t, "", Options{})
	makeTable(t, db.DynamoDB(), "events")
	putUntil(t, db.DynamoDB(), "events", "a", time.UnixMilli(4e15)) // in seconds 4e12, the milliseconds of the year 2096
	url := serve(t, db)
	const want = `mayfly_ttl_suspicious_values_total{reason="milliseconds",table="events"} 1`
	if _, body := send(t, "GET", url+"/metrics", ""); !strings.Contains(body, want) {
		t.Errorf("no %s in\n%s", want, body)
	}
	if _, err := db.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("events")}); err != nil {
		t.Fatal(err)
	}
	if _, body := send(t, "GET", url+"/metrics", ""); strings.Contains(body, "mayfly_ttl_suspicious_values_total{") {
		t.Errorf("a deleted table has a series:\n%s", body)
	}
}

// Lateness counts from the instant at which the item should be removed.
func testMetricsTellOfExpiry(t *testing.T, options Options, wantExpiry string) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	options.Start, options.Frozen = start, true
	db := open(t, "", options)
	makeTable(t, db.DynamoDB(), "events")
	putUntil(t, db.DynamoDB(), "events", "a", start.Add(time.Hour))
	if _, err := db.Clock().Advance(t.Context(), 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	url := serve(t, db)
	_, body := send(t, "GET", url+"/metrics", "")
	for _, want := range []string{
		wantExpiry,
		`TimeToLiveDeletedItemCount{TableName="events"} 1`,
		`mayfly_lateness_commit_seconds_bucket{le="0.0005"} 1`,
		`mayfly_lateness_stream_seconds_count 1`,
		`mayfly_backlog_items 0`,
		`mayfly_consumed_units_total{TableName="events",index="",kind="read"} 0`,
		`mayfly_consumed_units_total{TableName="events",index="",kind="write"} 1`, // called in the process, and its expiry is free
		`mayfly_requests_total{code="OK",operation="PutItem"} 1`,
		`mayfly_store_failed 0`,
		`mayfly_disk_full 0`,
		`mayfly_clock_standing 0`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// Open checks its options and the directory.
func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	db, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	makeTable(t, db.DynamoDB(), "events")
	putUntil(t, db.DynamoDB(), "events", "kept", time.Now().Add(time.Hour))
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("a second one: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if _, err := db.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("events")}); err == nil {
		t.Error("a closed database answers")
	}
	again := open(t, dir, Options{})
	out, err := again.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("events")})
	if err != nil || out.Count != 1 {
		t.Errorf("%d items after opening again, %v", out.Count, err)
	}
}

// A directory whose clock was moved ahead opens only with clock control, and continues from its own
// instant.
func TestDirectoryAheadOfTheMachine(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	makeTable(t, db.DynamoDB(), "events")
	moved, err := db.Clock().Advance(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	putUntil(t, db.DynamoDB(), "events", "a", moved.To.Add(time.Hour))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrClockAhead) {
		t.Fatalf("got %v", err)
	}
	again := open(t, dir, Options{ClockControl: ClockControlOn})
	if now := again.Clock().Now(); now.Before(moved.To) {
		t.Errorf("the clock went back from %v to %v", moved.To, now)
	}
}

func TestDamagedDirectory(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	makeTable(t, db.DynamoDB(), "events")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no manifest in %s: %v", dir, err)
	}
	for _, m := range manifests {
		if err := os.WriteFile(m, []byte("not what was written here"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

// If the disk fails, the database stops by itself, returns the reason, and serves nothing that it
// could not keep.
func TestDiskFailureStopsTheDatabase(t *testing.T) {
	disk := kv.NewCrashFS()
	db, err := Open("data", Options{fs: disk})
	if err != nil {
		t.Fatal(err)
	}
	makeTable(t, db.DynamoDB(), "events")
	server := httptest.NewServer(db.Handler())
	defer server.Close()
	disk.CutNow()
	_, err = db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("events"), Item: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
	})
	if err == nil {
		t.Error("a write that cannot be kept was acknowledged")
	}
	<-db.Failed()
	if db.Err() == nil {
		t.Error("Err does not say why")
	}
	if status, body := send(t, "GET", server.URL+"/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if db.Close() == nil {
		t.Error("Close does not say that the database had failed")
	}
}

// No goroutine runs after Close.
func TestCloseLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	for range 3 {
		db, err := Open("", Options{})
		if err != nil {
			t.Fatal(err)
		}
		makeTable(t, db.DynamoDB(), "events")
		putUntil(t, db.DynamoDB(), "events", "a", time.Now().Add(time.Hour))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	goleak.VerifyNone(t, before)
}
