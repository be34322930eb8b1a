package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/sink/aws/lambdatest"
)

// asFunction makes this test's program the command.
const asFunction = "MAIN_AS_FUNCTION"

func TestMain(m *testing.M) {
	if os.Getenv(asFunction) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const role = "arn:aws:iam::000000000000:role/guard"

// world is a database behind HTTP, in which nothing removes expired items, and the command as a
// function.
type world struct {
	t  *testing.T
	db *mayfly.DB
	r  *lambdatest.Runtime
}

func newWorld(t *testing.T, environment ...string) *world {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h"})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	server := httptest.NewServer(db.Handler())
	t.Cleanup(server.Close)
	program, err := os.Executable()
	must(t, err)
	// CI sets them, for other tests
	environment = append(environment, "MAYFLY_ENDPOINT=", "MAYFLY_ENDPOINT_SHARD_BYTES=",
		asFunction+"=1", "MAYFLY_TABLE=items", "MAYFLY_ATTRIBUTE=ttl", "AWS_ENDPOINT_URL="+server.URL,
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
	r, err := lambdatest.Start(map[string]lambdatest.Function{"guard": {Command: []string{program}, Env: environment, Timeout: time.Minute, Output: os.Stderr}})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	_, err = db.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("items"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("window"), AttributeType: "S"}, {AttributeName: aws.String("ttl"), AttributeType: "N"},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String("windows"),
			KeySchema:  []types.KeySchemaElement{{AttributeName: aws.String("window"), KeyType: "HASH"}, {AttributeName: aws.String("ttl"), KeyType: "RANGE"}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	must(t, err)
	return &world{t, db, r}
}

// put writes an item that is due so many seconds from now.
func (w *world) put(name string, seconds int64) string {
	w.t.Helper()
	ttl := w.db.Clock().Now().Unix() + seconds
	_, err := w.db.DynamoDB().PutItem(w.t.Context(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: name}, "ttl": &types.AttributeValueMemberN{Value: fmt.Sprint(ttl)},
		"window": &types.AttributeValueMemberS{Value: guard.Window(ttl, time.Minute)},
	}})
	must(w.t, err)
	return fmt.Sprint(ttl)
}

func (w *world) count() int {
	w.t.Helper()
	out, err := w.db.DynamoDB().Scan(w.t.Context(), &dynamodb.ScanInput{TableName: aws.String("items"), ConsistentRead: aws.Bool(true)})
	must(w.t, err)
	return int(out.Count)
}

// invoke calls the function, and returns its failure or "".
func (w *world) invoke(event any, answer any) (failure string) {
	w.t.Helper()
	body, err := json.Marshal(event)
	must(w.t, err)
	response, err := http.Post(w.r.URL()+"/2015-03-31/functions/guard/invocations", "application/json", strings.NewReader(string(body)))
	must(w.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(w.t, err)
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: %s", response.Status, text)
	}
	if response.Header.Get("X-Amz-Function-Error") != "" {
		return string(text)
	}
	must(w.t, json.Unmarshal(text, answer))
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSweep: the event of a rule sweeps due items, in one process after another and in the same.
func TestSweep(t *testing.T) {
	w := newWorld(t, "MAYFLY_HANDLER=sweep", "MAYFLY_INDEX=windows", "MAYFLY_GRANULARITY=1m", "MAYFLY_ALONE=true")
	for i := range int64(40) {
		w.put(fmt.Sprint("past", i), -i*10)
	}
	w.put("future", 3600)
	var r guard.SweepReport
	if failure := w.invoke(map[string]string{"time": "2030-01-01T00:00:00Z"}, &r); failure != "" || !r.Complete || r.Removed != 40 || w.count() != 1 {
		t.Errorf("%+v, %s, %d items are left", r, failure, w.count())
	}
	w.put("more", -1)
	if failure := w.invoke(map[string]string{}, &r); failure != "" || r.Removed != 1 || w.count() != 1 {
		t.Errorf("again: %+v, %s, %d items are left", r, failure, w.count())
	}
}

// TestStream: records create schedules, expired items are removed at once, and a failure names its
// record.
func TestStream(t *testing.T) {
	w := newWorld(t, "MAYFLY_HANDLER=stream", "MAYFLY_ROLE="+role)
	d, err := w.db.DynamoDB().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("items")})
	must(t, err)
	record := func(sequence, name, ttl string) map[string]any {
		key := map[string]any{"pk": map[string]string{"S": name}}
		return map[string]any{
			"eventID": sequence, "eventName": "INSERT", "eventSource": "aws:dynamodb", "eventSourceARN": *d.Table.LatestStreamArn, "awsRegion": "us-east-1",
			"dynamodb": map[string]any{
				"Keys": key, "NewImage": map[string]any{"pk": key["pk"], "ttl": map[string]string{"N": ttl}}, "SequenceNumber": sequence,
				"ApproximateCreationDateTime": 1.7e9, "StreamViewType": "NEW_AND_OLD_IMAGES", "SizeBytes": 20,
			},
		}
	}
	event := map[string]any{"Records": []any{record("1", "a", w.put("a", 3600)), record("2", "b", w.put("b", -5))}}
	var r events.DynamoDBEventResponse
	if failure := w.invoke(event, &r); failure != "" || len(r.BatchItemFailures) != 0 {
		t.Errorf("%+v, %s", r, failure)
	}
	out, err := w.db.Scheduler().ListSchedules(t.Context(), &scheduler.ListSchedulesInput{GroupName: aws.String("guard.items")})
	if err != nil || len(out.Schedules) != 1 || w.count() != 1 {
		t.Errorf("the schedules are %+v (%v), and %d items are left", out, err, w.count())
	}
	wrong := record("3", "c", "1")
	wrong["eventSourceARN"] = "arn:aws:dynamodb:us-east-1:000000000000:table/others/stream/x"
	if failure := w.invoke(map[string]any{"Records": []any{wrong}}, &r); !strings.Contains(failure, "others") {
		t.Errorf("another table's record: %s", failure)
	}
}

// TestSettings: all faults of the environment are reported at once.
func TestSettings(t *testing.T) {
	for environment, says := range map[string]string{
		"":                                     `MAYFLY_HANDLER: "" is not sweep or stream`,
		"MAYFLY_HANDLER=sweep":                 "Table: missing",
		"MAYFLY_HANDLER=stream MAYFLY_TABLE=t": "MAYFLY_ROLE: it is empty",
		"MAYFLY_HANDLER=sweep MAYFLY_TABLE=t MAYFLY_SHARD=1":                 "MAYFLY_SHARD is no setting",
		"MAYFLY_HANDLER=sweep MAYFLY_TABLE=t MAYFLY_SHARDS=x":                `MAYFLY_SHARDS: "x"`,
		"MAYFLY_HANDLER=sweep MAYFLY_TABLE=t MAYFLY_GRANULARITY=90":          `MAYFLY_GRANULARITY: "90"`,
		"MAYFLY_HANDLER=sweep MAYFLY_TABLE=t MAYFLY_GRANULARITY=1500ms":      "Granularity: 1.5s",
		"MAYFLY_HANDLER=sweep MAYFLY_TABLE=t MAYFLY_AHEAD=1h":                "MAYFLY_AHEAD: 1h",
		"MAYFLY_HANDLER=sweep MAYFLY_TABLE=t MAYFLY_DRY_RUN=ja MAYFLY_X=1":   "MAYFLY_X is no setting",
		"MAYFLY_HANDLER=sweep MAYFLY_TABLE=t MAYFLY_BATCH=25 MAYFLY_MARK=ex": "Batch",
	} {
		if _, err := readSettings(strings.Fields(environment)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", environment, err)
		}
	}
	s, err := readSettings([]string{"MAYFLY_HANDLER=sweep", "MAYFLY_TABLE=t", "MAYFLY_AHEAD=55 seconds", "MAYFLY_MARK=", "HOME=/"})
	if err != nil || s.ahead != 55*time.Second || s.options.Table != "t" {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = readSettings([]string{"MAYFLY_HANDLER=sweep", "MAYFLY_TABLE=t", "MAYFLY_LEASES_TABLE=prod.leases"})
	if err != nil || s.options.Tables.Leases != "prod.leases" {
		t.Errorf("%+v, %v", s, err)
	}
}
