package mayfly

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// setTags sets mayfly's tags on a table, as KEY=VALUE without the prefix.
func setTags(t testing.TB, db *DB, table string, tags ...string) {
	t.Helper()
	d, err := db.DynamoDB().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	in := &dynamodb.TagResourceInput{ResourceArn: d.Table.TableArn}
	for _, tag := range tags {
		key, value, _ := strings.Cut(tag, "=")
		in.Tags = append(in.Tags, types.Tag{Key: aws.String("mayfly:" + key), Value: &value})
	}
	if _, err := db.DynamoDB().TagResource(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// scanned returns the keys of a Scan, with the header X-Mayfly-Expired unless it is "".
func scanned(t testing.TB, db *DB, table, header string) string {
	t.Helper()
	out, err := db.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: &table}, func(o *dynamodb.Options) {
		if header != "" {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("X-Mayfly-Expired", header))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, it := range out.Items {
		keys = append(keys, it["pk"].(*types.AttributeValueMemberS).Value)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// A directory that is opened with another expiry changes the tables without a tag for it, logs
// their names, and brings no item back. With the same expiry nothing changes.
func TestExpiryOverRestarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var log bytes.Buffer
	reopen := func(db *DB, options Options) *DB {
		t.Helper()
		if db != nil {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		log.Reset()
		options.Frozen, options.ClockControl = true, ClockControlOn
		options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		db, err := Open(dir, options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		if _, err := db.Clock().Advance(t.Context(), 0); err != nil { // waits for the backfill
			t.Fatal(err)
		}
		return db
	}
	want := func(db *DB, plain, strict, late string, logged ...string) {
		t.Helper()
		for table, want := range map[string]string{"plain": plain, "strict": strict, "late": late} {
			if got := scanned(t, db, table, ""); got != want {
				t.Errorf("%s shows %q, want %q", table, got, want)
			}
		}
		if n := strings.Count(log.String(), "the expiry of a table's items has changed"); n != len(logged) {
			t.Errorf("%d changes are logged, want %d: %s", n, len(logged), log.String())
		}
		for _, text := range logged {
			if !strings.Contains(log.String(), text) {
				t.Errorf("the log lacks %s:\n%s", text, log.String())
			}
		}
	}

	start := time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC)
	db := reopen(nil, Options{Start: start})
	for _, table := range []string{"plain", "strict", "late"} {
		makeTable(t, db.DynamoDB(), table)
	}
	setTags(t, db, "strict", "expiry=strict")
	setTags(t, db, "late", "expiry=aws", "expiry-delay=fixed:1h")
	for _, table := range []string{"plain", "strict", "late"} {
		for i, pk := range []string{"a", "b", "c"} {
			putUntil(t, db.DynamoDB(), table, pk, start.Add(time.Duration(1+i)*time.Minute))
		}
	}
	advance := func(d time.Duration) {
		t.Helper()
		if _, err := db.Clock().Advance(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	advance(time.Minute)
	want(db, "b c", "b c", "a b c")

	late := Options{Expiry: ExpiryAWS, ExpiryDelay: "fixed:10m", ExpirySeed: 7}
	db = reopen(db, late)
	want(db, "b c", "b c", "a b c", `table=plain from=strict to="aws, fixed:10m, seed 7"`, `table=late from="aws, fixed:1h, seed 0" to="aws, fixed:1h, seed 7"`)
	advance(time.Minute)
	want(db, "b c", "c", "a b c", "plain", "late")
	db = reopen(db, late)
	want(db, "b c", "c", "a b c")
	if got := scanned(t, db, "plain", "only"); got != "b" {
		t.Errorf("expired and there: %q", got)
	}

	db = reopen(db, Options{ExpirySeed: 7})
	want(db, "c", "c", "a b c", `table=plain from="aws, fixed:10m, seed 7" to=strict`)
	advance(2 * time.Hour)
	want(db, "", "", "", "plain")
}

// The header X-Mayfly-Expired narrows a read over HTTP, the answer repeats it, and an unknown value
// is refused.
func TestExpiredHeaderOverHTTP(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	db := open(t, "", Options{Start: start, Frozen: true, Expiry: ExpiryAWS})
	makeTable(t, db.DynamoDB(), "events")
	putUntil(t, db.DynamoDB(), "events", "expired", start.Add(time.Minute))
	putUntil(t, db.DynamoDB(), "events", "living", start.Add(time.Hour))
	if _, err := db.Clock().Advance(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(db.Handler())
	defer server.Close()
	call := func(operation, body, header string) (status int, text, echo string) {
		t.Helper()
		return sendFor(t, "POST", server.URL, body, "X-Mayfly-Expired", "X-Amz-Target", "DynamoDB_20120810."+operation,
			"Content-Type", "application/x-amz-json-1.0", "X-Mayfly-Expired", header)
	}
	key := func(pk string) string { return `{"pk":{"S":"` + pk + `"}}` }
	for _, c := range []struct{ operation, body string }{
		{"GetItem", `{"TableName":"events","Key":` + key("expired") + `}`},
		{"Query", `{"TableName":"events","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"expired"}}}`},
		{"Scan", `{"TableName":"events"}`},
		{"BatchGetItem", `{"RequestItems":{"events":{"Keys":[` + key("expired") + `,` + key("living") + `]}}}`},
		{"TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"events","Key":` + key("expired") + `}}]}`},
	} {
		for header, want := range map[string]bool{"": true, "only": true, "hide": false} {
			status, text, echo := call(c.operation, c.body, header)
			if status != 200 || strings.Contains(text, "expired") != want || echo != header {
				t.Errorf("%s, %q: %d, header %q, %s", c.operation, header, status, echo, text)
			}
			if header == "only" && strings.Contains(text, "living") {
				t.Errorf("%s, only: %s", c.operation, text)
			}
		}
		status, text, echo := call(c.operation, c.body, "show")
		if status != 400 || !strings.Contains(text, `ValidationException","message":"X-Mayfly-Expired must be only or hide: show"`) || echo != "" {
			t.Errorf("%s, show: %d, header %q, %s", c.operation, status, echo, text)
		}
	}
}

// Servers with the same seed have the same delays, and servers with other seeds have others.
func TestExpirySeed(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	left := func(seed uint64, delay string) (out []string) {
		db := open(t, "", Options{Start: start, Frozen: true, Expiry: ExpiryAWS, ExpirySeed: seed, ExpiryDelay: delay})
		makeTable(t, db.DynamoDB(), "events")
		for i := range 20 {
			putUntil(t, db.DynamoDB(), "events", fmt.Sprint(i), start)
		}
		for range 30 {
			if _, err := db.Clock().Advance(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			out = append(out, scanned(t, db, "events", ""))
		}
		return out
	}
	first := left(1, "")
	if full := first[6]; len(strings.Fields(full)) != 20 || first[29] != "" {
		t.Errorf("after 7 minutes: %q, after 30: %q", full, first[29])
	}
	if again := left(1, "observed"); !slices.Equal(first, again) {
		t.Errorf("the same seed gave\n%q and\n%q", first, again)
	}
	if other := left(2, ""); slices.Equal(first, other) {
		t.Errorf("another seed gave the same: %q", other)
	}
}
