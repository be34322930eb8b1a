package mayfly

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/front/admin"
)

// askDeadlines sends a GET for deadlines, and returns status and body.
func askDeadlines(t *testing.T, url, query string) string {
	t.Helper()
	status, text := send(t, "GET", url+"/_mayfly/deadlines?"+query, "")
	return fmt.Sprint(status, " ", strings.TrimSpace(text))
}

func TestDeadlines(t *testing.T) {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	db := open(t, "", Options{Start: start, Frozen: true, ClockControl: ClockControlOn})
	url, api := serve(t, db), db.DynamoDB()
	for _, name := range []string{"bbb", "aaa", "off"} {
		makeTable(t, api, name)
	}
	_, err := api.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String("off"), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(false)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"aaa", "bbb", "off"} {
		putUntil(t, api, table, "one", start.Add(10*time.Second))
		putUntil(t, api, table, "two", start.Add(90*time.Second))
	}
	putUntil(t, api, "bbb", "three", start.Add(80*time.Second))
	ms := start.UnixMilli()
	key := func(table, pk string, s int64) string {
		return fmt.Sprintf(`{"table":"%s","key":{"pk":{"S":"%s"}},"at_ms":%d}`, table, pk, ms+s*1000)
	}
	rangeOf := func(s int64) string { return fmt.Sprintf("from_ms=%d&to_ms=%d", ms, ms+s*1000) }
	for _, c := range []struct{ query, want string }{
		{
			"table=aaa&" + rangeOf(100) + "&steps=10&keys=1", `200 {"table":"aaa","attribute":"ttl",` + fmt.Sprintf(`"from_ms":%d,"to_ms":%d,`, ms, ms+100_000) +
				`"counts":[0,1,0,0,0,0,0,0,0,1],` + fmt.Sprintf(`"counted_until_ms":%d,"first_ms":%d,"last_ms":%d,`, ms+100_000, ms+10_000, ms+90_000) +
				`"keys":[` + key("aaa", "one", 10) + `],"removed":[]}`,
		},
		{
			rangeOf(95) + "&keys=4", `200 {` + fmt.Sprintf(`"from_ms":%d,"to_ms":%d,`, ms, ms+95_000) +
				`"counts":[5],` + fmt.Sprintf(`"counted_until_ms":%d,"first_ms":%d,"last_ms":%d,`, ms+95_000, ms+10_000, ms+90_000) +
				`"keys":[` + key("aaa", "one", 10) + "," + key("bbb", "one", 10) + "," + key("bbb", "three", 80) + "," + key("aaa", "two", 90) + `],"removed":[]}`,
		},
		{"table=off&to_ms=10", `200 {"table":"off","from_ms":0,"to_ms":10,"counts":[0],"counted_until_ms":10,"keys":[],"removed":[]}`},
		{"table=none", `404 {"error":"there is no table \"none\""}`},
		{"table=%00%3C", `404 {"error":"there is no table \"\\x00\u003c\""}`},
	} {
		if got := askDeadlines(t, url, c.query); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.query, got, c.want)
		}
	}
	if _, err := db.Clock().Advance(t.Context(), 82*time.Second); err != nil {
		t.Fatal(err)
	}
	now := ms + 82_000
	for query, want := range map[string]string{
		"":          fmt.Sprintf(`[{"minute_ms":%d,"items":2},{"minute_ms":%d,"items":1}]`, ms, ms+60_000),
		"table=aaa": fmt.Sprintf(`[{"minute_ms":%d,"items":1}]`, ms),
	} {
		got := askDeadlines(t, url, fmt.Sprintf("%s&from_ms=%d&minutes=60", query, now))
		if !strings.HasSuffix(got, `"removed":`+want+"}") {
			t.Errorf("%s after 82 seconds: %s, want removals %s", query, got, want)
		}
	}
}

// All tables together are counted up to one limit, and completely before the instant in the answer.
func TestDeadlinesAreLimited(t *testing.T) {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	db := open(t, "", Options{Start: start, Frozen: true, ClockControl: ClockControlOn})
	for _, table := range []string{"aaa", "bbb"} {
		makeTable(t, db.DynamoDB(), table)
		for i := range 10 {
			putUntil(t, db.DynamoDB(), table, fmt.Sprint(i), start.Add(time.Duration(i+1)*time.Second))
		}
	}
	for most, want := range map[int]time.Duration{0: time.Second, 7: 4 * time.Second, 10: 6 * time.Second, 15: 8 * time.Second, 19: 10 * time.Second, 20: time.Minute} {
		found, err := db.countDeadlines(t.Context(), admin.DeadlineRange{From: start, To: start.Add(time.Minute), Steps: 60}, most)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for i, n := range found.Counts {
			total += int(n)
			if step := start.Add(time.Duration(i+1) * time.Second); !step.After(found.Until) && 1 <= i && i <= 10 && n != 2 {
				t.Errorf("limit %d: %d in second %d, before %v", most, n, i, found.Until)
			}
		}
		if total > most || most < 20 && total != most || !found.Until.Equal(start.Add(want)) {
			t.Errorf("limit %d: %v, until %v", most, found.Counts, found.Until)
		}
	}
}

// A key needs mayfly:ReadDeadlines.
func TestDeadlinesNeedAnAction(t *testing.T) {
	policy := func(action string) []Policy {
		return []Policy{{Name: "p", JSON: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"` + action + `","Resource":"*"}]}`}}
	}
	url := serve(t, open(t, "", Options{Credentials: []Credential{
		{AccessKey: "counts", SecretKey: "secret", User: "ann", Policies: policy("mayfly:ReadDeadlines")},
		{AccessKey: "reads", SecretKey: "secret", User: "bob", Policies: policy("mayfly:ReadClock")},
	}}))
	for who, want := range map[string]string{
		"counts": `200 {"from_ms":0`,
		"reads":  `AccessDeniedException","Message":"User: arn:aws:iam::000000000000:user/bob is not authorized to perform: mayfly:ReadDeadlines on resource: *`,
		"":       "MissingAuthenticationToken",
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/_mayfly/deadlines", nil)
		if err != nil {
			t.Fatal(err)
		}
		if who != "" {
			empty := sha256.Sum256(nil)
			key := aws.Credentials{AccessKeyID: who, SecretAccessKey: "secret"}
			if err := v4.NewSigner().SignHTTP(t.Context(), key, r, hex.EncodeToString(empty[:]), "dynamodb", "us-east-1", time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if got := answered(t, r); !strings.Contains(strings.Replace(got, `{"from_ms"`, `200 {"from_ms"`, 1), want) {
			t.Errorf("%q: %s, want %s", who, got, want)
		}
	}
}

// The keys of items also need a Scan of their table. The counts do not.
func TestDeadlinesKeysNeedScan(t *testing.T) {
	allow := func(statements string) []Policy {
		return []Policy{{Name: "p", JSON: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"mayfly:Read*","Resource":"*"}` + statements + `]}`}}
	}
	const scan = `,{"Effect":"Allow","Action":"dynamodb:Scan","Resource":"arn:aws:dynamodb:*:*:table/`
	db := open(t, "", Options{Credentials: []Credential{
		{AccessKey: "root", SecretKey: "secret"},
		{AccessKey: "monitor", SecretKey: "secret", User: "ann", Policies: allow("")},
		{AccessKey: "reader", SecretKey: "secret", User: "bob", Policies: allow(scan + `bbb"}`)},
		{AccessKey: "denied", SecretKey: "secret", User: "cat", Policies: allow(scan + `*"},{"Effect":"Deny","Action":"dynamodb:Scan","Resource":"*","Condition":{"Bool":{"dynamodb:FullTableScan":"true"}}}`)},
	}})
	url := serve(t, db)
	for _, name := range []string{"aaa", "bbb"} {
		makeTable(t, db.DynamoDB(), name)
		putUntil(t, db.DynamoDB(), name, "one", time.Now().Add(time.Hour))
	}
	for who, want := range map[string][]string{"root": {"aaa", "bbb"}, "monitor": nil, "reader": {"bbb"}, "denied": {"aaa", "bbb"}} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/_mayfly/deadlines?keys=5", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(who, "secret")
		var said struct {
			Counts   []int
			Withheld int `json:"keys_withheld"`
			Keys     []struct{ Table string }
		}
		text := answered(t, r)
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			t.Fatal(err)
		}
		var tables []string
		for _, k := range said.Keys {
			tables = append(tables, k.Table)
		}
		if !slices.Equal(tables, want) || said.Withheld != 2-len(want) || !slices.Equal(said.Counts, []int{2}) {
			t.Errorf("%s: %s, want keys of %q", who, text, want)
		}
	}
}

// A large table does not hide what is next in another one, nor its counts.
func TestDeadlinesBehindALargeTable(t *testing.T) {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	db := open(t, "", Options{Start: start, Frozen: true, ClockControl: ClockControlOn})
	for _, table := range []string{"aaa", "bbb", "ccc"} {
		makeTable(t, db.DynamoDB(), table)
	}
	for i := range 30 {
		putUntil(t, db.DynamoDB(), "aaa", fmt.Sprint(i), start.Add(time.Hour))
	}
	putUntil(t, db.DynamoDB(), "bbb", "one", start.Add(time.Minute))
	putUntil(t, db.DynamoDB(), "ccc", "one", start.Add(2*time.Minute))
	for _, steps := range []int{0, 3} {
		found, err := db.countDeadlines(t.Context(), admin.DeadlineRange{From: start, To: start.Add(3 * time.Hour), Steps: steps, Keys: 3}, 10)
		if err != nil {
			t.Fatal(err)
		}
		var tables []string
		for _, k := range found.Keys {
			tables = append(tables, k.Table)
		}
		if !slices.Equal(tables, []string{"bbb", "ccc", "aaa"}) || !found.First.Equal(start.Add(time.Minute)) {
			t.Errorf("%d steps: the first is at %v, keys of %q", steps, found.First, tables)
		}
		if steps > 0 && (!slices.Equal(found.Counts, []int64{2, 8, 0}) || !found.Until.Equal(start.Add(time.Hour))) {
			t.Errorf("counts are %v until %v", found.Counts, found.Until)
		}
		if steps == 0 && !found.Until.Equal(start.Add(3*time.Hour)) {
			t.Errorf("keys are complete until %v", found.Until)
		}
	}
}

// Separate data has separate deadlines and metrics.
func TestDeadlinesOfSeparateData(t *testing.T) {
	_, url := openServer(t, "", Options{}, ServerOptions{Separate: true})
	as(t, url, "bob/us-east-1", "CreateTable", sessionsTable)
	get := func(who, path string) string {
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+who+"/20300101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
		return answered(t, r)
	}
	for who, want := range map[string]string{"bob": `"table":"sessions"`, "ann": `404 {"error":"there is no table`} {
		if got := get(who, "/_mayfly/deadlines?table=sessions"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", who, got)
		}
		if got := get(who, "/metrics"); strings.Contains(got, `operation="CreateTable"`) != (who == "bob") {
			t.Errorf("%s: the metrics are %s", who, got)
		}
	}
	var said struct{ Error string }
	_, text := send(t, "GET", url+"/_mayfly/deadlines", "")
	if err := json.Unmarshal([]byte(text), &said); err != nil || !strings.Contains(said.Error, "access key") {
		t.Errorf("without a key: %s", text)
	}
}
