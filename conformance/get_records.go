package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

var getRecordsChecks = []check{
	{"ViewTypes", recordsViewTypes},
	{"Members", recordsMembers},
	{"EveryWrite", recordsEveryWrite},
	{"NoneForNoChange", recordsNoneForNoChange},
	{"Batches", recordsBatches},
	{"Transactions", recordsTransactions},
	{"Pages", recordsPages},
	{"IteratorsAreReusable", recordsIteratorsAreReusable},
	{"Refused", recordsRefused},
}

// records returns all records of the table's latest stream.
func (tb *table) records(t *testing.T) []streamtypes.Record {
	t.Helper()
	arn := aws.ToString(tb.awaitActive(t).LatestStreamArn)
	records, err := (&StreamReader{Client: tb.Streams, StreamARN: arn}).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// The images of each view type for an item's creation, change and removal.
func recordsViewTypes(t *testing.T, e *Endpoint) {
	first, second := item("pk", "a", "n", 1), item("pk", "a", "n", 2, "b", []byte{1}, "m", item("l", []any{true, nil}), "s", stringSet{"x"})
	for _, row := range []struct {
		view     types.StreamViewType
		old, new bool
	}{
		{types.StreamViewTypeKeysOnly, false, false}, {types.StreamViewTypeNewImage, false, true},
		{types.StreamViewTypeOldImage, true, false}, {types.StreamViewTypeNewAndOldImages, true, true},
	} {
		t.Run(string(row.view), func(t *testing.T) {
			tb := newTable(t, e, "pk:S", stream(row.view))
			tb.awaitStream(t)
			tb.put(t, first, second)
			tb.delete(t, item("pk", "a"))
			records := tb.awaitRecords(t, 3)
			show := func(shown bool, image attributes) attributes {
				if !shown {
					return nil
				}
				return image
			}
			for i, want := range []struct {
				event    streamtypes.OperationType
				old, new attributes
			}{
				{streamtypes.OperationTypeInsert, nil, show(row.new, first)},
				{streamtypes.OperationTypeModify, show(row.old, first), show(row.new, second)},
				{streamtypes.OperationTypeRemove, show(row.old, second), nil},
			} {
				r := records[i]
				if r.EventName != want.event || string(r.Dynamodb.StreamViewType) != string(row.view) {
					t.Errorf("record %d: %s %s, want %s", i, r.EventName, r.Dynamodb.StreamViewType, want.event)
				}
				wantItem(t, string(want.event)+" Keys", fromStream(r.Dynamodb.Keys), item("pk", "a"))
				wantItem(t, string(want.event)+" OldImage", fromStream(r.Dynamodb.OldImage), want.old)
				wantItem(t, string(want.event)+" NewImage", fromStream(r.Dynamodb.NewImage), want.new)
			}
		})
	}
}

// The members of a record other than its images have the forms on which clients depend.
func recordsMembers(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeNewImage))
	arn := tb.awaitStream(t)
	before := e.now().Add(-2 * time.Second)
	tb.put(t, item("pk", "a"), item("pk", "b"))
	seen := map[string]bool{}
	for _, r := range tb.awaitRecords(t, 2) {
		if !eventID.MatchString(aws.ToString(r.EventID)) || seen[*r.EventID] {
			t.Errorf("eventID: %s", aws.ToString(r.EventID))
		}
		seen[*r.EventID] = true
		if aws.ToString(r.EventSource) != "aws:dynamodb" || aws.ToString(r.AwsRegion) == "" || aws.ToString(r.EventVersion) == "" || r.UserIdentity != nil {
			t.Errorf("eventSource %q, awsRegion %q, eventVersion %q, userIdentity %v", aws.ToString(r.EventSource), aws.ToString(r.AwsRegion), aws.ToString(r.EventVersion), r.UserIdentity)
		}
		if !sequenceNumber.MatchString(aws.ToString(r.Dynamodb.SequenceNumber)) || aws.ToInt64(r.Dynamodb.SizeBytes) <= 0 {
			t.Errorf("SequenceNumber %q, SizeBytes %d", aws.ToString(r.Dynamodb.SequenceNumber), aws.ToInt64(r.Dynamodb.SizeBytes))
		}
		at := aws.ToTime(r.Dynamodb.ApproximateCreationDateTime)
		if at.Nanosecond() != 0 || at.Before(before) || at.After(e.now().Add(time.Minute)) {
			t.Errorf("ApproximateCreationDateTime: %v", at)
		}
	}
	// Each record lies within its shard's range.
	for _, shard := range tb.describeStream(t, arn).Shards {
		for _, r := range tb.from(t, arn, *shard.ShardId, streamtypes.ShardIteratorTypeTrimHorizon, "") {
			if compareSequence(*r.Dynamodb.SequenceNumber, *shard.SequenceNumberRange.StartingSequenceNumber) < 0 {
				t.Errorf("record %s lies before its shard's start, %s", *r.Dynamodb.SequenceNumber, *shard.SequenceNumberRange.StartingSequenceNumber)
			}
		}
	}
}

// compareSequence compares sequence numbers, which are decimals of any length.
func compareSequence(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return compareText(a, b)
}

// The kind of record of each kind of write.
func recordsEveryWrite(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeNewAndOldImages))
	tb.awaitStream(t)
	const key = `{"Key":{"pk":{"S":"a"}}`
	tb.ok(t, "UpdateItem", key+`}`)
	tb.ok(t, "UpdateItem", key+`,"UpdateExpression":"SET n = :n","ExpressionAttributeValues":{":n":{"N":"1"}}}`)
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"},"m":{"N":"1"}}}`)
	tb.ok(t, "UpdateItem", key+`,"UpdateExpression":"REMOVE m"}`)
	tb.ok(t, "DeleteItem", key+`}`)
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"}}}`)
	got := ""
	for _, r := range tb.awaitRecords(t, 6) {
		got += string(r.EventName) + " "
	}
	if want := "INSERT MODIFY MODIFY MODIFY REMOVE INSERT "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A write that leaves everything as it was leaves no record, and neither does one that was refused.
func recordsNoneForNoChange(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeNewAndOldImages))
	tb.awaitStream(t)
	const key = `{"Key":{"pk":{"S":"a"}}`
	it := item("pk", "a", "n", 1, "m", item("x", 1, "y", 2), "s", stringSet{"a", "b"})
	tb.put(t, it)
	tb.put(t, it)
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"},"s":{"SS":["b","a"]},"m":{"M":{"y":{"N":"2.0"},"x":{"N":"1"}}},"n":{"N":"1.00"}}}`)
	tb.ok(t, "UpdateItem", key+`}`)
	tb.ok(t, "UpdateItem", key+`,"UpdateExpression":"SET n = :n REMOVE nope DELETE s :s","ExpressionAttributeValues":{":n":{"N":"1"},":s":{"SS":["z"]}}}`)
	tb.ok(t, "UpdateItem", `{"Key":{"pk":{"S":"none"}},"UpdateExpression":"REMOVE nope"}`)
	tb.ok(t, "DeleteItem", `{"Key":{"pk":{"S":"none"}}}`)
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ConditionExpression":"attribute_not_exists(pk)"}`, conditionFailed, "")
	if err := e.transact(t, types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: it}}); err != nil {
		t.Fatal(err)
	}
	tb.put(t, item("pk", "a", "n", 2)) // the last record: all before it have had their time
	records := tb.awaitRecords(t, 2)
	if records[0].EventName != streamtypes.OperationTypeInsert || records[1].EventName != streamtypes.OperationTypeModify {
		t.Errorf("got %s, %s", records[0].EventName, records[1].EventName)
	}
}

// A batch makes a record for each item that it changes.
func recordsBatches(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	tb.awaitStream(t)
	tb.load(t, []attributes{item("pk", "a"), item("pk", "b")})
	if _, err := e.DB.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
		tb.name: {putRequest(item("pk", "a")), deleteRequest(item("pk", "b")), deleteRequest(item("pk", "none")), putRequest(item("pk", "c"))},
	}}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range tb.awaitRecords(t, 4) {
		got[column([]attributes{fromStream(r.Dynamodb.Keys)}, "pk")] += string(r.EventName) + " "
	}
	if got["a"] != "INSERT " || got["b"] != "INSERT REMOVE " || got["c"] != "INSERT " {
		t.Errorf("got %v", got)
	}
}

// A transaction makes a record for each item that it changes, and none when it is cancelled.
func recordsTransactions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeNewImage))
	tb.awaitStream(t)
	tb.put(t, item("pk", "check"))
	put := func(pk string, n int) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", pk, "n", n)}}
	}
	check := func(condition string) types.TransactWriteItem {
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &tb.name, Key: item("pk", "check"), ConditionExpression: &condition}}
	}
	if err := e.transact(t, put("a", 1), check("attribute_not_exists(pk)")); err == nil {
		t.Fatal("the transaction should have been cancelled")
	}
	if err := e.transact(t, put("a", 2), put("b", 2), check("attribute_exists(pk)")); err != nil {
		t.Fatal(err)
	}
	for _, r := range tb.awaitRecords(t, 3) {
		if image := fromStream(r.Dynamodb.NewImage); image["n"] != nil && column([]attributes{image}, "n") != "2" {
			t.Errorf("a record of the cancelled transaction: %s", itemText(image))
		}
	}
}

// A page has at most Limit records, and at most about 1 MB.
func recordsPages(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", stream(types.StreamViewTypeNewImage))
	arn := tb.awaitStream(t)
	for n := range 12 {
		tb.put(t, item("pk", "a", "sk", n, "v", bigString(200<<10)))
	}
	tb.awaitRecords(t, 12)
	for _, size := range []int32{1, 5, 1000} {
		records, err := (&StreamReader{Client: e.Streams, StreamARN: arn, PageSize: size}).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var keys []attributes
		for _, r := range records {
			keys = append(keys, fromStream(r.Dynamodb.Keys))
		}
		if got := column(keys, "sk"); got != "0 1 2 3 4 5 6 7 8 9 10 11" {
			t.Errorf("pages of %d: got %s", size, got)
		}
	}
	shard := tb.shardOf(t, arn, *tb.awaitRecords(t, 12)[0].Dynamodb.SequenceNumber)
	out, err := e.Streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: &shard, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
	if err != nil {
		t.Fatal(err)
	}
	page, err := e.Streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: out.ShardIterator})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(page.Records); n == 0 || n > 6 {
		t.Errorf("a page has %d records of 200 KB", n)
	}
}

// An iterator can be used again and returns the same records.
func recordsIteratorsAreReusable(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	tb.put(t, item("pk", "a"))
	sequence := *tb.awaitRecords(t, 1)[0].Dynamodb.SequenceNumber
	shard := tb.shardOf(t, arn, sequence)
	out, err := e.Streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: &shard, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		records := tb.drain(t, out.ShardIterator)
		if len(records) != 1 || *records[0].Dynamodb.SequenceNumber != sequence {
			t.Errorf("got %d records", len(records))
		}
	}
}

func recordsRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	shard := tb.describeStream(t, arn).Shards[0].ShardId
	out, err := e.Streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: shard, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
	if err != nil {
		t.Fatal(err)
	}
	iterator := aws.ToString(out.ShardIterator)
	e.refuse(t, "GetRecords", `{}`, validation, "1 validation error detected: Value null at 'shardIterator' failed to satisfy constraint: Member must not be null")
	e.refuse(t, "GetRecords", `{"ShardIterator":"nonsense"}`, validation, "")
	e.refuse(t, "GetRecords", fmt.Sprintf(`{"ShardIterator":%q}`, iterator[:len(iterator)-4]+"AAAA"+"x"), validation, "")
	e.refuse(t, "GetRecords", fmt.Sprintf(`{"ShardIterator":%q,"Limit":0}`, iterator), validation, "…Member must have value greater than or equal to 1")
}
