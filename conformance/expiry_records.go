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

// expiryRecordChecks move the clock and read the stream records of the removals.
var expiryRecordChecks = []check{
	{"MarkedAsService", expiryRecordMarked},
	{"OnePerExpiry", expiryRecordOnePerExpiry},
	{"NoneForTheRenewed", expiryRecordNoneForTheRenewed},
	{"UserDeletesAreNotMarked", expiryRecordUserDeletes},
	{"BornExpired", expiryRecordBornExpired},
	{"KeptForADay", expiryRecordKeptForADay},
}

// strictExpiryRecordChecks apply to endpoints that hide expired items from their deadlines on.
var strictExpiryRecordChecks = []check{
	{"BeforeTheInsert", expiryRecordBeforeTheInsert},
	{"ManyShortLives", expiryRecordManyShortLives},
	{"OneForTheExpiredThatIsDeleted", expiryRecordDeleted},
}

// awaitRecords reads the table's stream until it has n records, and returns them all. More than n
// are an error of the check, and are returned too.
func (tb *table) awaitRecords(t *testing.T, n int) []streamtypes.Record {
	t.Helper()
	var records []streamtypes.Record
	tb.await(t, fmt.Sprintf("%d stream records", n), func() bool {
		records = tb.records(t)
		return len(records) >= n
	})
	if len(records) > n {
		t.Errorf("the stream has %d records, want %d", len(records), n)
	}
	return records
}

// isService reports whether a record is a removal by TTL.
func isService(r streamtypes.Record) bool {
	return r.UserIdentity != nil && aws.ToString(r.UserIdentity.Type) == "Service" && aws.ToString(r.UserIdentity.PrincipalId) == "dynamodb.amazonaws.com"
}

// The removal's record has the old image, no new one, and names the service as its author.
func expiryRecordMarked(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S", stream(types.StreamViewTypeNewAndOldImages))
	it := item("pk", "a", "v", "last words", "ttl", e.in(time.Minute))
	tb.put(t, item("pk", "a", "v", "first words"))
	tb.put(t, it)
	e.Advance(2 * time.Minute)
	records := tb.awaitRecords(t, 3)
	last := records[2]
	if last.EventName != streamtypes.OperationTypeRemove || !isService(last) {
		t.Errorf("the last record is %s with userIdentity %+v", last.EventName, last.UserIdentity)
	}
	wantItem(t, "OldImage", fromStream(last.Dynamodb.OldImage), it)
	wantItem(t, "NewImage", fromStream(last.Dynamodb.NewImage), nil)
	for _, r := range records[:2] {
		if r.UserIdentity != nil {
			t.Errorf("%s has userIdentity %+v", r.EventName, r.UserIdentity)
		}
	}
}

// Each expiry makes one record, and none of them is early.
func expiryRecordOnePerExpiry(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:N", stream(types.StreamViewTypeOldImage))
	const n = 60
	var items []attributes
	for i := range n {
		items = append(items, item("pk", i, "ttl", e.in(time.Duration(i)*time.Second)+300))
	}
	tb.load(t, items)
	tb.awaitRecords(t, n)
	e.Advance(10 * time.Minute)
	removed := map[string]int{}
	for _, r := range tb.awaitRecords(t, 2*n)[:2*n] {
		if r.EventName != streamtypes.OperationTypeRemove {
			continue
		}
		old := fromStream(r.Dynamodb.OldImage)
		removed[itemText(old)]++
		if deadline := old["ttl"].(*types.AttributeValueMemberN).Value; fmt.Sprint(r.Dynamodb.ApproximateCreationDateTime.Unix()) < deadline {
			t.Errorf("%s was removed at %v", itemText(old), r.Dynamodb.ApproximateCreationDateTime)
		}
	}
	for _, it := range items {
		if got := removed[itemText(it)]; got != 1 {
			t.Errorf("%s has %d removals", itemText(it), got)
		}
	}
}

// A write over an expired item comes after the item's end: REMOVE, marked, then INSERT; never
// MODIFY.
func expiryRecordBeforeTheInsert(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S", stream(types.StreamViewTypeNewAndOldImages))
	for _, pk := range []string{"put", "update", "transaction"} {
		tb.put(t, item("pk", pk, "life", 1, "ttl", e.in(time.Minute)))
	}
	e.Advance(2 * time.Minute)
	tb.put(t, item("pk", "put", "life", 2))
	if _, err := e.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &tb.name, Key: item("pk", "update"),
		UpdateExpression: aws.String("SET life = :l"), ExpressionAttributeValues: item(":l", 2)}); err != nil {
		t.Fatal(err)
	}
	if err := e.transact(t, types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", "transaction", "life", 2)}}); err != nil {
		t.Fatal(err)
	}
	lives := map[string]string{}
	for _, r := range tb.awaitRecords(t, 9) {
		pk := column([]attributes{fromStream(r.Dynamodb.Keys)}, "pk")
		event := string(r.EventName)
		if isService(r) {
			event += "(service)"
		}
		lives[pk] += event + " "
	}
	for pk, got := range lives {
		if got != "INSERT REMOVE(service) INSERT " {
			t.Errorf("%s: %s", pk, got)
		}
	}
}

// An item that is renewed before its deadline has no REMOVE record.
func expiryRecordNoneForTheRenewed(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	tb.put(t, item("pk", "a", "ttl", e.in(time.Minute)))
	tb.put(t, item("pk", "a", "ttl", e.in(time.Hour)))
	tb.put(t, item("pk", "b", "ttl", e.in(time.Minute))) // its end shows that the reaper came by
	e.Advance(2 * time.Minute)
	for _, r := range tb.awaitRecords(t, 4) {
		if pk := column([]attributes{fromStream(r.Dynamodb.Keys)}, "pk"); r.EventName == streamtypes.OperationTypeRemove && pk != "b" {
			t.Errorf("%s was removed", pk)
		}
	}
}

// A delete by a user does not name the service as its author, however close it is to the deadline.
func expiryRecordUserDeletes(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	tb.put(t, item("pk", "a", "ttl", e.in(time.Minute)))
	tb.delete(t, item("pk", "a"))
	e.Advance(2 * time.Minute)
	records := tb.awaitRecords(t, 2)
	if last := records[1]; last.EventName != streamtypes.OperationTypeRemove || last.UserIdentity != nil {
		t.Errorf("the last record is %s with userIdentity %+v", last.EventName, last.UserIdentity)
	}
}

// An item that is written with a past deadline has two records: INSERT, then REMOVE.
func expiryRecordBornExpired(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S", stream(types.StreamViewTypeNewAndOldImages))
	tb.put(t, item("pk", "a", "ttl", e.in(-time.Hour)))
	tb.awaitGoneItem(t, item("pk", "a"))
	records := tb.awaitRecords(t, 2)
	if records[0].EventName != streamtypes.OperationTypeInsert || !isService(records[1]) {
		t.Errorf("got %s, then %s with userIdentity %+v", records[0].EventName, records[1].EventName, records[1].UserIdentity)
	}
}

// Deleting an expired item adds no second record, and neither does a refused write.
func expiryRecordDeleted(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	tb.put(t, item("pk", "a", "ttl", e.in(time.Minute)))
	e.Advance(2 * time.Minute)
	tb.delete(t, item("pk", "a"))
	tb.refuse(t, "DeleteItem", `{"Key":{"pk":{"S":"a"}},"ConditionExpression":"attribute_exists(pk)"}`, conditionFailed, "")
	tb.put(t, item("pk", "b")) // the last record: all before it have had their time
	removals := 0
	for _, r := range tb.awaitRecords(t, 3) {
		if r.EventName == streamtypes.OperationTypeRemove {
			removals++
			if !isService(r) {
				t.Errorf("the removal has userIdentity %+v", r.UserIdentity)
			}
		}
	}
	if removals != 1 {
		t.Errorf("got %d removals, want 1", removals)
	}
}

// Records are kept for 24 hours. Later the endpoint may delete them at any moment; then a read from
// before its oldest record is refused.
func expiryRecordKeptForADay(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	tb.put(t, item("pk", "a", "n", 1))
	first := *tb.awaitRecords(t, 1)[0].Dynamodb.SequenceNumber
	shard := tb.shardOf(t, arn, first)
	e.Advance(23 * time.Hour)
	tb.awaitRecords(t, 1)
	e.Advance(2 * time.Hour)
	tb.await(t, "trimming", func() bool { return len(tb.records(t)) == 0 })
	tb.put(t, item("pk", "a", "n", 2))
	tb.awaitRecords(t, 1)
	_, err := e.Streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &arn, ShardId: &shard, ShardIteratorType: streamtypes.ShardIteratorTypeAtSequenceNumber, SequenceNumber: &first})
	wantError(t, err, "TrimmedDataAccessException", "")
}

// An item is written again and again, always with a past deadline. Each version has its INSERT and
// its marked REMOVE, whether the next write removed it or the endpoint itself.
func expiryRecordManyShortLives(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S", stream(types.StreamViewTypeNewAndOldImages))
	const lives = 60
	for n := range lives {
		tb.put(t, item("pk", "a", "n", n, "ttl", e.in(-time.Hour)))
	}
	for i, r := range tb.awaitRecords(t, 2*lives) {
		image, born := r.Dynamodb.NewImage, i%2 == 0
		if !born {
			image = r.Dynamodb.OldImage
		}
		n := column([]attributes{fromStream(image)}, "n")
		if born != (r.EventName == streamtypes.OperationTypeInsert) || isService(r) == born || n != fmt.Sprint(i/2) {
			t.Fatalf("record %d is %s of life %s with userIdentity %+v", i, r.EventName, n, r.UserIdentity)
		}
	}
}
