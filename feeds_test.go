package mayfly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/internal/store/service"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/target"
)

const kinesisOrders = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"

// kinesisStream is a target that stores the records for a Kinesis stream.
type kinesisStream struct {
	mu     sync.Mutex
	got    []target.Delivery
	refuse atomic.Bool
}

func (k *kinesisStream) options() Options {
	return Options{Targets: []target.Mapping{{ARN: "arn:aws:kinesis:*:*:stream/ord*", Target: target.Func(k.take)}}}
}

func (k *kinesisStream) take(_ context.Context, d target.Delivery) error {
	if k.refuse.Load() {
		return errors.New("throttled")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.got = append(k.got, d)
	return nil
}

// kinesisRecord is the body of a delivery: a change of an item, as Amazon writes it to a Kinesis
// stream.
type kinesisRecord struct {
	AWSRegion, EventID, EventName, RecordFormat, TableName, EventSource string

	UserIdentity *struct{ Type, PrincipalID string }
	DynamoDB     struct {
		At                       int64  `json:"ApproximateCreationDateTime"`
		Precision                string `json:"ApproximateCreationDateTimePrecision"`
		Keys, NewImage, OldImage map[string]map[string]string
		SizeBytes                int64
	}
}

// drain returns the deliveries so far, and removes them.
func (k *kinesisStream) drain() []target.Delivery {
	k.mu.Lock()
	defer k.mu.Unlock()
	got := k.got
	k.got = nil
	return got
}

// seen returns each record as its key, event and the numbers n of its images, in the order of their
// arrival.
func (k *kinesisStream) seen(t *testing.T) (all []string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.got {
		var r kinesisRecord
		if err := json.Unmarshal(d.Body, &r); err != nil {
			t.Fatalf("%s: %v", d.Body, err)
		}
		who := ""
		if r.UserIdentity != nil {
			who = " by " + r.UserIdentity.Type
		}
		all = append(all, fmt.Sprintf("%s %s %s>%s%s", r.DynamoDB.Keys["pk"]["S"], r.EventName, r.DynamoDB.OldImage["n"]["N"], r.DynamoDB.NewImage["n"]["N"], who))
	}
	return all
}

func (k *kinesisStream) want(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := k.seen(t); !slices.Equal(got, want) {
		t.Errorf("%s: the stream has %q, want %q", when, got, want)
	}
}

// feedTable is a table for changes. Its destination is kinesisOrders.
type feedTable struct {
	t    *testing.T
	db   *DB
	name string
}

func newFeedTable(t *testing.T, db *DB, view types.StreamViewType) feedTable {
	t.Helper()
	return newNamedFeedTable(t, db, "orders", view)
}

func newNamedFeedTable(t *testing.T, db *DB, name string, view types.StreamViewType) feedTable {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	}
	if view != "" {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view}
	}
	if _, err := db.DynamoDB().CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	_, err := db.DynamoDB().UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: in.TableName, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return feedTable{t, db, name}
}

func (f feedTable) put(pk string, n int, ttl ...time.Duration) {
	f.t.Helper()
	item := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}, "n": &types.AttributeValueMemberN{Value: strconv.Itoa(n)}}
	for _, after := range ttl {
		item["ttl"] = &types.AttributeValueMemberN{Value: fmt.Sprint(f.db.Clock().Now().Add(after).Unix())}
	}
	if _, err := f.db.DynamoDB().PutItem(f.t.Context(), &dynamodb.PutItemInput{TableName: &f.name, Item: item}); err != nil {
		f.t.Error(err) // several goroutines write
	}
}

func (f feedTable) enable(precision types.ApproximateCreationDateTimePrecision) {
	f.t.Helper()
	if err := f.tryEnable(precision); err != nil {
		f.t.Fatal(err)
	}
}

// tryEnable is enable for a goroutine, which cannot end the test.
func (f feedTable) tryEnable(precision types.ApproximateCreationDateTimePrecision) error {
	in := &dynamodb.EnableKinesisStreamingDestinationInput{TableName: &f.name, StreamArn: aws.String(kinesisOrders)}
	if precision != "" {
		in.EnableKinesisStreamingConfiguration = &types.EnableKinesisStreamingConfiguration{ApproximateCreationDateTimePrecision: precision}
	}
	_, err := f.db.DynamoDB().EnableKinesisStreamingDestination(f.t.Context(), in)
	return err
}

func (f feedTable) disable() {
	f.t.Helper()
	in := &dynamodb.DisableKinesisStreamingDestinationInput{TableName: &f.name, StreamArn: aws.String(kinesisOrders)}
	if _, err := f.db.DynamoDB().DisableKinesisStreamingDestination(f.t.Context(), in); err != nil {
		f.t.Fatal(err)
	}
}

func (f feedTable) streams() int {
	f.t.Helper()
	out, err := f.db.Streams().ListStreams(f.t.Context(), &dynamodbstreams.ListStreamsInput{TableName: &f.name})
	if err != nil {
		f.t.Fatal(err)
	}
	return len(out.Streams)
}

// A destination gets every change from its enabling to its disabling, with both images, beside
// a stream of any view type and without one. An advance of the clock waits for the deliveries.
func TestKinesisDestinationGetsChanges(t *testing.T) {
	for _, view := range []types.StreamViewType{"", types.StreamViewTypeKeysOnly, types.StreamViewTypeNewImage, types.StreamViewTypeNewAndOldImages} {
		t.Run("view "+string(view), func(t *testing.T) {
			k := &kinesisStream{}
			db := openAtMidnight(t, k.options())
			schedule(t, db, "work", "at(2031-01-01T00:00:00)", func(in *scheduler.CreateScheduleInput) {
				in.Target.Arn, in.Target.KinesisParameters = aws.String(kinesisOrders), &schedulertypes.KinesisParameters{PartitionKey: aws.String("a")}
			}) // the work has begun
			tb := newFeedTable(t, db, view)
			tb.put("a", 1)
			tb.enable("")
			tb.put("a", 2)
			tb.put("a", 3, time.Minute)
			advance(t, db, time.Hour)
			want := []string{"a MODIFY 1>2", "a MODIFY 2>3", "a REMOVE 3> by Service"}
			k.want(t, "enabled", want...)
			tb.put("a", 4)
			tb.disable()
			tb.put("a", 5)
			want = append(want, "a INSERT >4")
			within(t, "the change before the disabling", func() bool { return len(k.seen(t)) == len(want) })
			advance(t, db, time.Minute)
			k.want(t, "disabled", want...)
			tb.enable("")
			tb.put("a", 6)
			advance(t, db, time.Minute)
			k.want(t, "enabled again", append(want, "a MODIFY 5>6")...)
			if got := tb.streams(); got != min(len(view), 1) {
				t.Errorf("%d streams are shown", got)
			}
		})
	}
}

// The record has Amazon's members in Amazon's order, and its time has the precision that is set at
// its delivery.
func TestKinesisRecord(t *testing.T) {
	k := &kinesisStream{}
	db := openAtMidnight(t, k.options())
	tb := newFeedTable(t, db, "")
	tb.enable("")
	start := db.Clock().Now()
	for ms := range 100 { // a fraction without an exact binary form keeps its milliseconds
		tb.put("ms", ms)
		advance(t, db, time.Millisecond)
	}
	advance(t, db, time.Second)
	got := k.drain()
	if len(got) != 100 {
		t.Errorf("%d records of 100", len(got))
	}
	for i, d := range got {
		var r kinesisRecord
		if err := json.Unmarshal(d.Body, &r); err != nil || r.DynamoDB.At != start.UnixMilli()+int64(i) {
			t.Errorf("a record of %s and %d ms is of %d, %v", start, i, r.DynamoDB.At, err)
		}
	}
	tb.put("a", 1, time.Minute)
	advance(t, db, time.Hour)
	update := func(precision types.ApproximateCreationDateTimePrecision) {
		t.Helper()
		_, err := db.DynamoDB().UpdateKinesisStreamingDestination(t.Context(), &dynamodb.UpdateKinesisStreamingDestinationInput{
			TableName: aws.String("orders"), StreamArn: aws.String(kinesisOrders),
			UpdateKinesisStreamingConfiguration: &types.UpdateKinesisStreamingConfiguration{ApproximateCreationDateTimePrecision: precision},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	update(types.ApproximateCreationDateTimePrecisionMicrosecond)
	tb.put("b", 2)
	advance(t, db, time.Minute)
	update(types.ApproximateCreationDateTimePrecisionMillisecond)
	tb.put("b", 3)
	advance(t, db, time.Minute)
	written := db.Clock().Now().Add(-time.Hour - 2*time.Minute)
	removed := written.Truncate(time.Second).Add(time.Minute)
	want := []string{
		fmt.Sprintf(`{"awsRegion":"us-east-1","eventID":"…","eventName":"INSERT","userIdentity":null,"recordFormat":"application/json","tableName":"orders",`+
			`"dynamodb":{"ApproximateCreationDateTime":%d,"Keys":{"pk":{"S":"a"}},"NewImage":{"n":{"N":"1"},"pk":{"S":"a"},"ttl":{"N":"%d"}},"SizeBytes":18},"eventSource":"aws:dynamodb"}`,
			written.UnixMilli(), removed.Unix()),
		fmt.Sprintf(`{"awsRegion":"us-east-1","eventID":"…","eventName":"REMOVE","userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},"recordFormat":"application/json","tableName":"orders",`+
			`"dynamodb":{"ApproximateCreationDateTime":%d,"Keys":{"pk":{"S":"a"}},"OldImage":{"n":{"N":"1"},"pk":{"S":"a"},"ttl":{"N":"%d"}},"SizeBytes":18},"eventSource":"aws:dynamodb"}`,
			removed.UnixMilli(), removed.Unix()),
		fmt.Sprintf(`{"awsRegion":"us-east-1","eventID":"…","eventName":"INSERT","userIdentity":null,"recordFormat":"application/json","tableName":"orders",`+
			`"dynamodb":{"ApproximateCreationDateTime":%d,"Keys":{"pk":{"S":"b"}},"NewImage":{"n":{"N":"2"},"pk":{"S":"b"}},"SizeBytes":9,"ApproximateCreationDateTimePrecision":"MICROSECOND"},"eventSource":"aws:dynamodb"}`,
			written.Add(time.Hour).UnixMicro()),
		fmt.Sprintf(`{"awsRegion":"us-east-1","eventID":"…","eventName":"MODIFY","userIdentity":null,"recordFormat":"application/json","tableName":"orders",`+
			`"dynamodb":{"ApproximateCreationDateTime":%d,"Keys":{"pk":{"S":"b"}},"NewImage":{"n":{"N":"3"},"pk":{"S":"b"}},"OldImage":{"n":{"N":"2"},"pk":{"S":"b"}},"SizeBytes":15,"ApproximateCreationDateTimePrecision":"MILLISECOND"},"eventSource":"aws:dynamodb"}`,
			written.Add(time.Hour+time.Minute).UnixMilli()),
	}
	if got = k.drain(); len(got) != len(want) {
		t.Fatalf("%d records of %d: %+v", len(got), len(want), got)
	}
	for i, d := range got {
		var r kinesisRecord
		if err := json.Unmarshal(d.Body, &r); err != nil || len(r.EventID) != 36 {
			t.Fatalf("%s: %v", d.Body, err)
		}
		if got := strings.Replace(string(d.Body), r.EventID, "…", 1); got != want[i] {
			t.Errorf("record %d is\n%s, want\n%s", i, got, want[i])
		}
		if d.ID != strings.ReplaceAll(r.EventID, "-", "") || d.Key == "" || d.Source != "arn:aws:dynamodb:us-east-1:000000000000:table/orders" || d.TargetARN != kinesisOrders {
			t.Errorf("delivery %d: %+v", i, d)
		}
	}
}

// Changes that were not delivered survive a restart, also if their destination was disabled
// meanwhile, and come in the order of their keys.
func TestKinesisDestinationSurvivesRestarts(t *testing.T) {
	k, dir := &kinesisStream{}, t.TempDir()
	open := func(o Options) *DB {
		t.Helper()
		o.ClockControl = ClockControlOn
		db, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	closeDB := func(db *DB) {
		t.Helper()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	k.refuse.Store(true)
	db := open(k.options())
	tb := newFeedTable(t, db, "")
	tb.enable("")
	tb.put("a", 1)
	closeDB(db)

	db = open(Options{}) // without a target the changes are kept
	tb.db = db
	tb.put("a", 2)
	closeDB(db)

	db = open(k.options())
	tb.db = db
	tb.put("a", 3)
	tb.disable()
	tb.put("a", 4)
	closeDB(db)

	k.refuse.Store(false)
	db = open(k.options())
	want := []string{"a INSERT >1", "a MODIFY 1>2", "a MODIFY 2>3"}
	within(t, "the changes", func() bool { return len(k.seen(t)) >= len(want) })
	within(t, "the feed to end", func() bool { return !db.work.delivers(t) })
	closeDB(db) // perhaps before its checkpoints are deleted
	db = open(k.options())
	defer closeDB(db)
	within(t, "the end of the checkpoints", func() bool {
		rows, err := db.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{
			TableName: aws.String("mayfly.leases"), FilterExpression: aws.String("begins_with(consumer, :k)"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":k": &types.AttributeValueMemberS{Value: "kinesis."}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return rows.Count == 0
	})
	k.want(t, "after all", want...)
}

// delivers reports whether a feed is not finished.
func (w *work) delivers(t *testing.T) bool {
	t.Helper()
	feeds, err := w.db.service.Feeds()
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(feeds, func(f service.Feed) bool { return !f.Finished })
}

// A failing destination is tried again as the clock moves on. After a day its changes are dead
// letters.
func TestKinesisDestinationFails(t *testing.T) {
	k := &kinesisStream{}
	k.refuse.Store(true)
	db := openAtMidnight(t, k.options())
	tb := newFeedTable(t, db, "")
	tb.enable("")
	tb.put("a", 1)
	advance(t, db, time.Hour)
	k.refuse.Store(false)
	advance(t, db, time.Hour)
	k.want(t, "after an hour", "a INSERT >1")
	k.refuse.Store(true)
	tb.put("a", 2)
	advance(t, db, 25*time.Hour)
	dead, err := db.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("mayfly.deadletters")})
	if err != nil || dead.Count != 1 {
		t.Fatalf("%+v, %v", dead, err)
	}
	if body, _ := attr.AsString(dead.Items[0]["body"]); !strings.Contains(body, `"recordFormat"`) {
		t.Errorf("the dead letter %v", slices.Collect(maps.Keys(dead.Items[0])))
	}
	k.refuse.Store(false)
	tb.put("a", 3)
	advance(t, db, time.Hour)
	k.want(t, "after the dead letter", "a INSERT >1", "a MODIFY 2>3")
	if metrics := get(t, db, "/metrics"); !strings.Contains(metrics, `mayfly_trigger_deliveries_total{trigger="kinesis:orders"} 2`) {
		t.Error("/metrics lacks the deliveries")
	}
}

// Without a target, a destination is only stored: no work begins, and no table is made.
func TestKinesisDestinationWithoutTarget(t *testing.T) {
	for name, o := range map[string]Options{"none": {}, "database only": {DatabaseOnly: true}, "recorded": {Unmapped: UnmappedAccept}} {
		t.Run(name, func(t *testing.T) {
			db := openAtMidnight(t, o)
			tb := newFeedTable(t, db, "")
			tb.enable("")
			tb.put("a", 1)
			advance(t, db, time.Hour)
			if got := tables(t, db); !slices.Equal(got, []string{"orders"}) {
				t.Errorf("tables %v", got)
			}
			if db.work.begun.Load() || db.work.hasFeeds() {
				t.Error("the work has begun")
			}
		})
	}
}

// A table's deletion ends its feed after the last delivery, and a new table of the name has none.
func TestKinesisDestinationOfDeletedTable(t *testing.T) {
	k := &kinesisStream{}
	db := openAtMidnight(t, k.options())
	tb := newFeedTable(t, db, "")
	tb.enable("")
	tb.put("a", 1)
	if _, err := db.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("orders")}); err != nil {
		t.Fatal(err)
	}
	newFeedTable(t, db, "").put("a", 2)
	within(t, "the feed to end", func() bool { return !db.work.delivers(t) })
	advance(t, db, time.Hour)
	k.want(t, "after the deletion", "a INSERT >1")
}

// Many writers change few items while the destination fails again and again. Every change arrives,
// in the order of its item.
func TestKinesisDestinationKeepsOrder(t *testing.T) {
	const keys, versions = 8, 40
	k := &kinesisStream{}
	var calls atomic.Int64
	o := k.options()
	o.Targets[0].Target = target.Func(func(ctx context.Context, d target.Delivery) error {
		if calls.Add(1)%3 == 0 {
			return errors.New("throttled")
		}
		return k.take(ctx, d)
	})
	db := openAtMidnight(t, o)
	tb := newFeedTable(t, db, types.StreamViewTypeKeysOnly)
	tb.enable("")
	var writers sync.WaitGroup
	for key := range keys {
		writers.Go(func() {
			for n := 1; n <= versions; n++ {
				tb.put(fmt.Sprint("k", key), n)
			}
		})
	}
	writers.Wait()
	advance(t, db, time.Hour)
	byKey := map[string][]string{}
	for _, text := range k.seen(t) {
		key, change, _ := strings.Cut(text, " ")
		byKey[key] = append(byKey[key], change)
	}
	want := []string{"INSERT >1"}
	for n := 2; n <= versions; n++ {
		want = append(want, fmt.Sprintf("MODIFY %d>%d", n-1, n))
	}
	for key := range keys {
		if got := byKey[fmt.Sprint("k", key)]; !slices.Equal(got, want) {
			t.Errorf("the changes of k%d are %q", key, got)
		}
	}
}
