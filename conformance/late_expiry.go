package conformance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// lateExpiryChecks apply to endpoints that remove expired items some time after their deadlines, as
// Amazon's does. Until then they are ordinary items.
var lateExpiryChecks = []check{
	{"SeenUntilRemoved", lateSeenUntilRemoved},
	{"FilteredByReaders", lateFilteredByReaders},
	{"RenewedWhenExpired", lateRenewed},
	{"WritesDoNotPutOff", lateWritesDoNotPutOff},
	{"BornExpired", lateBornExpired},
}

// lateExpiryRecordChecks read the stream records of late removals.
var lateExpiryRecordChecks = []check{
	{"OverwriteIsAModify", lateRecordOverwrite},
	{"InItsTime", lateRecordInItsTime},
	{"ExpiredAndDeletedByAUser", lateRecordUserDelete},
}

// late returns a table with two items in a collection. sk 1 has expired a second or two ago and is
// not yet removed; sk 2 is live.
func late(t *testing.T, e *Endpoint, options ...tableOption) *table {
	t.Helper()
	tb := ttlTable(t, e, "pk:S sk:N", options...)
	deadline := e.in(10 * time.Second)
	tb.put(t, item("pk", "p", "sk", 1, "g", "x", "l", 1, "ttl", deadline), item("pk", "p", "sk", 2, "g", "x", "l", 2))
	e.Advance(time.Unix(deadline+1, 0).Sub(e.now()))
	return tb
}

// Every kind of read returns an expired item until its removal, and none does afterwards.
func lateSeenUntilRemoved(t *testing.T, e *Endpoint) {
	tb := late(t, e, global("byG", "g:S l:N", "ALL"), local("byL", "pk:S l:N", "KEYS_ONLY"))
	key := item("pk", "p", "sk", 1)
	look := func(want string, n int32) {
		t.Helper()
		if (tb.get(t, key) != nil) != (n == 2) {
			t.Errorf("GetItem: %v", tb.get(t, key))
		}
		for name, items := range map[string][]attributes{
			"query":        tb.query(t, "pk = :p", item(":p", "p")).Items,
			"global index": tb.query(t, "g = :g", item(":g", "x"), onIndex("byG")).Items,
			"local index":  tb.query(t, "pk = :p", item(":p", "p"), onIndex("byL")).Items,
			"scan":         tb.scanAll(t, ""),
			"index scan":   tb.scanAll(t, "byG"),
		} {
			if got := sorted(column(items, "sk")); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		if got := tb.scan(t, func(in *dynamodb.ScanInput) { in.Select = types.SelectCount }); got.Count != n || got.ScannedCount != n {
			t.Errorf("count: %d of %d, want %d", got.Count, got.ScannedCount, n)
		}
		batch, err := e.DB.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			tb.name: {Keys: []attributes{key, item("pk", "p", "sk", 2)}}}})
		if err != nil || len(batch.Responses[tb.name]) != int(n) {
			t.Errorf("batch: %v, %v", batch, err)
		}
		together, err := e.DB.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: &tb.name, Key: key}}}})
		if err != nil || (together.Responses[0].Item != nil) != (n == 2) {
			t.Errorf("transaction: %v, %v", together, err)
		}
	}
	look("1 2", 2)
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"p"},"sk":{"N":"1"}},"ConditionExpression":"attribute_not_exists(pk)"}`, conditionFailed, "")
	err := e.transact(t, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &tb.name, Key: key, ConditionExpression: aws.String("attribute_exists(pk)")}})
	if err != nil {
		t.Errorf("a transaction's condition: %v", err)
	}
	e.Advance(tb.RemovedWithin)
	tb.awaitGoneItem(t, key)
	tb.awaitIndex(t, "byG", 1)
	look("2", 1)
}

// The filter that AWS recommends hides expired items before their removal.
func lateFilteredByReaders(t *testing.T, e *Endpoint) {
	tb := late(t, e)
	const filter = "#t > :now OR attribute_not_exists(#t)"
	names, now := map[string]string{"#t": "ttl"}, e.now().Unix()
	query, err := e.DB.Query(t.Context(), &dynamodb.QueryInput{TableName: &tb.name, KeyConditionExpression: aws.String("pk = :p"), FilterExpression: aws.String(filter),
		ExpressionAttributeNames: names, ExpressionAttributeValues: item(":p", "p", ":now", now)})
	if err != nil {
		t.Fatal(err)
	}
	scan, err := e.DB.Scan(t.Context(), &dynamodb.ScanInput{TableName: &tb.name, FilterExpression: aws.String(filter),
		ExpressionAttributeNames: names, ExpressionAttributeValues: item(":now", now)})
	if err != nil {
		t.Fatal(err)
	}
	if got := column(query.Items, "sk"); got != "2" || query.ScannedCount != 2 {
		t.Errorf("query: %s of %d", got, query.ScannedCount)
	}
	if got := column(scan.Items, "sk"); got != "2" || scan.ScannedCount != 2 {
		t.Errorf("scan: %s of %d", got, scan.ScannedCount)
	}
	// AWS recommends the same condition for writes.
	tb.refuse(t, "UpdateItem", `{"Key":{"pk":{"S":"p"},"sk":{"N":"1"}},"UpdateExpression":"SET n = :now","ConditionExpression":"#t > :now","ExpressionAttributeNames":{"#t":"ttl"},`+
		`"ExpressionAttributeValues":{":now":{"N":"`+fmt.Sprint(now)+`"}}}`, conditionFailed, "")
}

// An expired item stays if its deadline is moved or removed before its removal.
func lateRenewed(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	deadline := e.in(10 * time.Second)
	for _, pk := range []string{"replaced", "updated", "plain", "removed", "left"} {
		tb.put(t, item("pk", pk, "n", 1, "ttl", deadline))
	}
	e.Advance(time.Unix(deadline+1, 0).Sub(e.now()))
	update := func(pk, expression string, values attributes) {
		t.Helper()
		out, err := e.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &tb.name, Key: item("pk", pk), UpdateExpression: &expression,
			ExpressionAttributeNames: map[string]string{"#t": "ttl"}, ExpressionAttributeValues: values, ReturnValues: types.ReturnValueAllOld})
		if err != nil {
			t.Fatal(err)
		}
		wantItem(t, "old", out.Attributes, item("pk", pk, "n", 1, "ttl", deadline))
	}
	tb.put(t, item("pk", "replaced", "ttl", e.in(time.Hour)), item("pk", "plain"))
	update("updated", "SET #t = :t", item(":t", e.in(time.Hour)))
	update("removed", "REMOVE #t", nil)
	e.Advance(tb.RemovedWithin)
	tb.awaitGoneItem(t, item("pk", "left"))
	if got := sorted(column(tb.scanAll(t, ""), "pk")); got != "plain removed replaced updated" {
		t.Errorf("left: %s", got)
	}
	e.Advance(time.Hour + tb.RemovedWithin)
	tb.awaitGoneItem(t, item("pk", "replaced"))
	tb.awaitGoneItem(t, item("pk", "updated"))
	if got := sorted(column(tb.scanAll(t, ""), "pk")); got != "plain removed" {
		t.Errorf("an hour later: %s", got)
	}
}

// Writing to an expired item does not keep it if its deadline stays.
func lateWritesDoNotPutOff(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	deadline := e.in(10 * time.Second)
	it := item("pk", "a", "n", 0, "ttl", deadline)
	tb.put(t, it)
	e.Advance(time.Unix(deadline+1, 0).Sub(e.now()))
	for n := range 3 {
		it["n"] = value(n + 1)
		tb.put(t, it)
		if _, err := e.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &tb.name, Key: item("pk", "a"),
			UpdateExpression: aws.String("ADD m :one"), ExpressionAttributeValues: item(":one", 1)}); err != nil {
			t.Fatal(err)
		}
	}
	e.Advance(time.Unix(deadline, 0).Add(tb.RemovedWithin).Sub(e.now()))
	tb.await(t, "removal in its time", func() bool { return tb.get(t, item("pk", "a")) == nil })
}

// An item that is written with a past deadline is visible until its removal.
func lateBornExpired(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	it := item("pk", "a", "ttl", e.in(-time.Hour))
	tb.put(t, it)
	tb.wantStored(t, item("pk", "a"), it)
	e.Advance(tb.RemovedWithin)
	tb.await(t, "removal", func() bool { return tb.get(t, item("pk", "a")) == nil })
}

// A write changes an expired item before its removal, and a renewed item survives the old deadline.
func lateRecordOverwrite(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S", stream(types.StreamViewTypeNewAndOldImages))
	deadline := e.in(10 * time.Second)
	old := item("pk", "a", "life", 1, "ttl", deadline)
	tb.put(t, old)
	e.Advance(time.Unix(deadline+1, 0).Sub(e.now()))
	tb.put(t, item("pk", "a", "life", 2))
	e.Advance(tb.RemovedWithin)
	records := tb.awaitRecords(t, 2)
	if last := records[1]; last.EventName != streamtypes.OperationTypeModify || last.UserIdentity != nil {
		t.Errorf("the last record is %s with userIdentity %+v", last.EventName, last.UserIdentity)
	}
	wantItem(t, "OldImage", fromStream(records[1].Dynamodb.OldImage), old)
}

// Each expiry makes one marked record, between RemovedAfter and RemovedWithin after the deadline.
func lateRecordInItsTime(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:N", stream(types.StreamViewTypeKeysOnly))
	const n = 30
	deadline := e.in(5 * time.Minute)
	var items []attributes
	for i := range n {
		items = append(items, item("pk", i, "ttl", deadline))
	}
	tb.load(t, items)
	e.Advance(time.Unix(deadline, 0).Add(tb.RemovedWithin).Sub(e.now()))
	var removals []time.Duration
	for _, r := range tb.awaitRecords(t, 2*n) {
		if r.EventName != streamtypes.OperationTypeRemove {
			continue
		}
		if !isService(r) {
			t.Errorf("a removal has userIdentity %+v", r.UserIdentity)
		}
		removals = append(removals, r.Dynamodb.ApproximateCreationDateTime.Sub(time.Unix(deadline, 0)))
	}
	slices.Sort(removals)
	// The time of a record is in whole seconds, and a clock that runs goes on meanwhile.
	if len(removals) != n || removals[0] < tb.RemovedAfter-time.Second || removals[n-1] > tb.RemovedWithin+time.Minute {
		t.Errorf("removed so long after the deadline: %v", removals)
	}
}

// A client that deletes an expired item is the author of its only removal.
func lateRecordUserDelete(t *testing.T, e *Endpoint) {
	tb := late(t, e, stream(types.StreamViewTypeNewAndOldImages))
	out, err := e.DB.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tb.name, Key: item("pk", "p", "sk", 1), ReturnValues: types.ReturnValueAllOld})
	if err != nil || out.Attributes == nil {
		t.Errorf("deleted %v, %v", out, err)
	}
	e.Advance(tb.RemovedWithin)
	for _, r := range tb.awaitRecords(t, 3) {
		if r.UserIdentity != nil {
			t.Errorf("%s has userIdentity %+v", r.EventName, r.UserIdentity)
		}
	}
}
