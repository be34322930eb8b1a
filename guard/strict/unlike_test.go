package strict_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/guard/strict"
)

// TestUnlikeStrict shows the differences from a strict database that docs/guard-proxy.md lists.
func TestUnlikeStrict(t *testing.T) {
	t.Run("PagesAndCounts", testPagesAndCounts)
	t.Run("Records", testRecords)
	t.Run("AfterDisabling", testAfterDisabling)
	t.Run("AfterFiveYears", testAfterFiveYears)
}

// Limit and ScannedCount include expired items, so a page can be empty before the last.
func testPagesAndCounts(t *testing.T) {
	db := open(t, lateOptions)
	putExpired(t, db)
	out, err := guarded(db, plainRules).Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String("plain"), Limit: aws.Int32(1),
		KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": str("p")}})
	if err != nil {
		t.Fatal(err)
	}
	if out.Count != 0 || out.ScannedCount != 1 || out.LastEvaluatedKey == nil {
		t.Errorf("%d of %d, then %v", out.Count, out.ScannedCount, out.LastEvaluatedKey)
	}
}

// The stream records of writes over expired items are those of ordinary writes.
func testRecords(t *testing.T) {
	db := open(t, lateOptions)
	makeTables(t, db.DynamoDB())
	c := guarded(db, plainRules)
	if _, err := db.DynamoDB().UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String("plain"),
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: item{"pk": str("p"), "sk": num("0"), "ttl": num("1767225595")}}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Clock().Advance(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: item{"pk": str("p"), "sk": num("0"), "ttl": num("1767225596")}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: expiredKey}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range records(t, db.Streams()) {
		names = append(names, string(r.EventName))
		if r.UserIdentity != nil {
			t.Errorf("%s is marked as the service's", r.EventName)
		}
	}
	if want := []string{"INSERT", "MODIFY", "MODIFY", "MODIFY", "REMOVE", "INSERT"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// records returns the records of the only stream, of one item collection in order.
func records(t *testing.T, c *dynamodbstreams.Client) (all []streamtypes.Record) {
	t.Helper()
	streams, err := c.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{})
	if err != nil || len(streams.Streams) != 1 {
		t.Fatalf("%v, %v", streams, err)
	}
	arn := streams.Streams[0].StreamArn
	d, err := c.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range d.StreamDescription.Shards {
		it, err := c.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, out.Records...)
	}
	return all
}

// Without TTL, the table is no longer guarded.
func testAfterDisabling(t *testing.T) {
	db := open(t, lateOptions)
	putExpired(t, db)
	c := guarded(db, strict.Rules{All: true})
	get := &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: expiredKey}
	if out, err := c.GetItem(t.Context(), get); err != nil || out.Item != nil {
		t.Errorf("%v, %v", out.Item, err)
	}
	if _, err := db.Clock().Advance(t.Context(), time.Hour); err != nil { // between two changes of TTL
		t.Fatal(err)
	}
	if _, err := c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("plain"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(false), AttributeName: aws.String("ttl")}}); err != nil {
		t.Fatal(err)
	}
	if out, err := c.GetItem(t.Context(), get); err != nil || out.Item == nil {
		t.Errorf("after disabling: %v, %v", out.Item, err)
	}
}

// An item that is not removed is visible again after five years. Only the rules' clock moves here:
// the endpoint would remove it sooner.
func testAfterFiveYears(t *testing.T) {
	db := open(t, lateOptions)
	putExpired(t, db)
	now := start
	rules := plainRules
	rules.Now = func() time.Time { return now }
	c := dynamodb.New(db.DynamoDB().Options(), strict.Middleware(rules))
	for _, step := range []struct {
		at    time.Time
		shown bool
	}{{start, false}, {start.Add(5*365*24*time.Hour - 6*time.Second), false}, {start.Add(5 * 365 * 24 * time.Hour), true}} {
		now = step.at
		out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: expiredKey})
		if err != nil || (out.Item != nil) != step.shown {
			t.Errorf("at %v: %v, %v", step.at, out.Item, err)
		}
	}
}
