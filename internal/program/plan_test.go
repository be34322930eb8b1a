package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/planner"
)

// recorded is a mayfly whose /metrics are watched, with a table orders that has an index byDay.
type recorded struct {
	*testing.T
	db     *mayfly.DB
	server *httptest.Server
	down   bool // it never answers
}

func record(t *testing.T) *recorded {
	r := &recorded{T: t}
	r.restart()
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if r.down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		r.db.Handler().ServeHTTP(w, q)
	}))
	t.Cleanup(r.server.Close)
	return r
}

// restart opens another database, which has counted nothing yet.
func (r *recorded) restart() {
	r.Helper()
	db, err := mayfly.Open("", mayfly.Options{})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { db.Close() })
	r.db = db
	text := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS}
	}
	key := func(name string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: aws.String(name), KeyType: types.KeyTypeHash}}
	}
	_, err = db.DynamoDB().CreateTable(r.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest, AttributeDefinitions: []types.AttributeDefinition{text("id"), text("day")}, KeySchema: key("id"),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{IndexName: aws.String("byDay"), KeySchema: key("day"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}}},
	})
	if err != nil {
		r.Fatal(err)
	}
}

// call asks over HTTP.
func (r *recorded) call(operation, body string) {
	r.Helper()
	callDynamoDB(r.T, r.server.URL, operation, body)
}

// order is an item of 1,500 bytes as JSON: two write units, and half a read unit where the read is eventually consistent.
func order(id int) string {
	return fmt.Sprintf(`{"id":{"S":"%d"},"day":{"S":"monday"},"text":{"S":"%s"}}`, id, strings.Repeat("x", 1480))
}

// put writes orders over HTTP, and read reads them in the process.
func (r *recorded) put(n int) {
	r.Helper()
	for i := range n {
		r.call("PutItem", `{"TableName":"orders","Item":`+order(i)+`}`)
	}
}

func (r *recorded) read(n int) {
	r.Helper()
	for i := range n {
		_, err := r.db.DynamoDB().GetItem(r.Context(), &dynamodb.GetItemInput{TableName: aws.String("orders"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}}})
		if err != nil {
			r.Fatal(err)
		}
	}
}

// watch records, a minute for each of the steps.
func (r *recorded) watch(c planRecordCommand, steps ...func()) (shape, log string) {
	r.Helper()
	c.Metrics, c.For, c.Every = r.server.URL+"/metrics", span(time.Duration(len(steps))*time.Minute), span(time.Minute)
	if err := c.check(); err != nil {
		r.Fatal(err)
	}
	now := time.Unix(1_900_000_000, 0)
	var out, complaints bytes.Buffer
	err := c.record(r.Context(), streams{&out, &complaints}, func() time.Time { return now }, func(until time.Time) {
		steps[0]()
		steps, now = steps[1:], until
	})
	if err != nil {
		r.Fatal(err)
	}
	return out.String(), complaints.String()
}

// The units that a live server counts become a shape, and the shape a plan with the same traffic,
// over HTTP and in the process. The plan excludes the index's units, which the planner computes,
// and the minute of the restart.
func TestPlanRecord(t *testing.T) {
	r := record(t)
	r.put(3) // before it is watched
	shape, log := r.watch(planRecordCommand{Table: "orders"},
		func() { r.put(60) },
		func() {
			r.call("BatchWriteItem", `{"RequestItems":{"orders":[{"PutRequest":{"Item":`+order(1)+`}},{"DeleteRequest":{"Key":{"id":{"S":"2"}}}}]}}`) // 2 units each
			r.put(28)
			r.read(30)
			r.call("Query", `{"TableName":"orders","KeyConditionExpression":"id = :a","ExpressionAttributeValues":{":a":{"S":"1"}},"ConsistentRead":true}`)
			r.call("Query", `{"TableName":"orders","IndexName":"byDay","KeyConditionExpression":"#d = :a","ExpressionAttributeNames":{"#d":"day"},"ExpressionAttributeValues":{":a":{"S":"monday"}}}`)
		},
		func() { r.restart(); r.put(5) },
		func() { r.put(6) },
	)
	if want := "minute,ConsumedWriteCapacityUnits,ConsumedReadCapacityUnits\n0,120.000,0.000\n1,60.000,16.000\n2,0.000,0.000\n3,12.000,0.000\n"; shape != want {
		t.Errorf("got\n%swant\n%s", shape, want)
	}
	if !strings.Contains(log, "counters were reset") {
		t.Errorf("it is not said that the counters have counters were reset: %s", log)
	}

	path := filepath.Join(t.TempDir(), "orders.csv")
	if err := os.WriteFile(path, []byte(shape), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, complaints bytes.Buffer
	if code := run(t.Context(), []string{"plan", "--shape", path, "--item-size", "1500", "--reads-eventual", "1", "--index", "byDay=KEYS_ONLY", "--json"}, &out, &complaints); code != 0 {
		t.Fatalf("exit code %d: %s", code, &complaints)
	}
	var plan planner.Report
	if err := json.Unmarshal(out.Bytes(), &plan); err != nil {
		t.Fatal(err)
	}
	const monthS = 30 * 86400
	want := map[string]float64{ // in four minutes 192 write units of the table, 96 writes, and 16 read units
		"writes/s": 0.4, "reads/s": 16.0 / 240 / 0.5, "table": 0.8, "peak": 2, "index": 0.4,
		"on demand": (0.8 + 0.4) * monthS / 1e6 * 0.625, "reads": 16.0 / 240 * monthS / 1e6 * 0.125,
	}
	for what, got := range map[string]float64{
		"writes/s": plan.WritesPerS, "reads/s": plan.ReadsPerS, "table": plan.Tracks[0].Demand, "peak": plan.Tracks[0].Peak, "index": plan.Tracks[2].Demand,
		"on demand": plan.Demands[0].USD + plan.Demands[2].USD, "reads": plan.Demands[1].USD,
	} {
		if math.Abs(got-want[what]) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want[what])
		}
	}
}

// Without a chosen table, all are recorded together. New tables count from their creation, deleted
// ones no longer; counts from a time without answers are spread over it.
func TestPlanRecordOfAllTables(t *testing.T) {
	r := record(t)
	r.put(10)
	shape, log := r.watch(planRecordCommand{},
		func() {
			r.put(3)
			r.call("CreateTable", `{"TableName":"others","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`)
			r.call("PutItem", `{"TableName":"others","Item":{"id":{"S":"a"}}}`)
		},
		func() { r.put(4); r.down = true },
		func() { r.down = false; r.put(2) },
		func() {
			r.call("DeleteTable", `{"TableName":"orders"}`)
			r.call("DeleteItem", `{"TableName":"others","Key":{"id":{"S":"b"}}}`)
		},
	)
	if want := "minute,ConsumedWriteCapacityUnits,ConsumedReadCapacityUnits\n0,7.000,0.000\n1,6.000,0.000\n2,6.000,0.000\n3,1.000,0.000\n"; shape != want {
		t.Errorf("got\n%swant\n%s", shape, want)
	}
	if !strings.Contains(log, "503") {
		t.Errorf("it is not said that the server did not answer: %q", log)
	}
}

// For a table elsewhere, guard's consumed units are recorded. Rows printed before an interruption
// form a shape.
func TestPlanRecordOfGuard(t *testing.T) {
	metrics := admin.NewGuard(func() []admin.GuardTable { return nil })
	metrics.Begin("orders")
	server := httptest.NewServer(metrics.Handler(nil))
	defer server.Close()
	c := planRecordCommand{Metrics: server.URL + "/metrics", Table: "orders", For: span(time.Hour), Every: span(2 * time.Minute)}
	ctx, stop := context.WithCancel(t.Context())
	now, rows := time.Unix(1_900_000_000, 0), 0
	var out bytes.Buffer
	err := c.record(ctx, streams{&out, io.Discard}, func() time.Time { return now }, func(until time.Time) {
		metrics.Consumed("orders", 60, 120)
		metrics.Consumed("others", 1, 1)
		if now, rows = until, rows+1; rows == 3 {
			stop()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "minute,ConsumedWriteCapacityUnits,ConsumedReadCapacityUnits\n0,120.000,60.000\n2,120.000,60.000\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	s, err := planner.ReadShape(&out)
	if err != nil || len(s.Points) != 4 || s.Points[0] != (planner.Point{Writes: 1, Reads: 0.5}) {
		t.Errorf("%v, %v", s, err)
	}
}
