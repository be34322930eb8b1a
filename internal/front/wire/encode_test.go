package wire

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// encoded returns the JSON that one encode function writes for out, after a check of its syntax.
func encoded[Out any](t *testing.T, encode func(*writer, *Out), out Out) string {
	t.Helper()
	w := writer{}
	object(&w, &out, encode)
	if !json.Valid(w.buf) {
		t.Errorf("not JSON: %s", w.buf)
	}
	return string(w.buf)
}

func TestEncodeItems(t *testing.T) {
	a := item(t, `{"a":{"S":"<\"é\u0001>"}}`)
	want(t, encoded(t, encodeWrite, service.WriteOutput{}), `{}`)
	want(t, encoded(t, encodeWrite, service.WriteOutput{
		Attributes: a, Capacity: &service.Capacity{TableName: "T", Units: 1},
		Collection: &service.CollectionMetrics{Key: a, Hi: 1},
	}), `{"Attributes":{"a":{"S":"<\"é\u0001>"}},"ConsumedCapacity":{"TableName":"T","CapacityUnits":1.0},`+
		`"ItemCollectionMetrics":{"ItemCollectionKey":{"a":{"S":"<\"é\u0001>"}},"SizeEstimateRangeGB":[0.0,1.0]}}`)
	want(t, encoded(t, encodeGetItem, service.GetItemOutput{}), `{}`)
	want(t, encoded(t, encodeGetItem, service.GetItemOutput{Item: dynamo.Item{0}, Capacity: &service.Capacity{Units: 0.5}}),
		`{"Item":{},"ConsumedCapacity":{"TableName":"","CapacityUnits":0.5}}`)
	k := item(t, `{"k":{"N":"1"}}`)
	want(t, encoded(t, encodePage, service.PageOutput{Items: []dynamo.Item{k, k}, Count: 2, ScannedCount: 3, LastEvaluatedKey: k}),
		`{"Items":[{"k":{"N":"1"}},{"k":{"N":"1"}}],"Count":2,"ScannedCount":3,"LastEvaluatedKey":{"k":{"N":"1"}}}`)
	want(t, encoded(t, encodePage, service.PageOutput{}), `{"Items":[],"Count":0,"ScannedCount":0}`)
	want(t, encoded(t, encodePage, service.PageOutput{CountOnly: true, Count: 7, ScannedCount: 8}), `{"Count":7,"ScannedCount":8}`)
}

func TestEncodeCapacity(t *testing.T) {
	want(t, encoded(t, encodeGetItem, service.GetItemOutput{Capacity: &service.Capacity{
		TableName: "T", Units: 12.5, Read: service.Some(12.5), Detail: true,
		Table:  service.CapacityPart{Units: 10, Read: service.Some(10.0)},
		Local:  map[string]service.CapacityPart{"b": {Units: 1}, "a": {Units: 1e15}},
		Global: map[string]service.CapacityPart{"c": {Units: 0.1, Write: service.Some(0.1)}},
	}}), `{"ConsumedCapacity":{"TableName":"T","CapacityUnits":12.5,"ReadCapacityUnits":12.5,"Table":{"CapacityUnits":10.0,"ReadCapacityUnits":10.0},`+
		`"LocalSecondaryIndexes":{"a":{"CapacityUnits":1000000000000000.0},"b":{"CapacityUnits":1.0}},`+
		`"GlobalSecondaryIndexes":{"c":{"CapacityUnits":0.1,"WriteCapacityUnits":0.1}}}}`)
}

func TestEncodeBatches(t *testing.T) {
	k := arg(t, `{"k":{"S":"a"}}`)
	want(t, encoded(t, encodeBatchGetItem, service.BatchGetItemOutput{}), `{"Responses":{},"UnprocessedKeys":{}}`)
	unprocessed := service.BatchGetTable{Table: "T", Keys: []service.ItemArg{k}, Projection: text("#a"),
		Names: service.Names{"#a": "a"}, ConsistentRead: service.Some(true), Legacy: service.Legacy{AttributesToGet: []string{"a"}}}
	got := encoded(t, encodeBatchGetItem, service.BatchGetItemOutput{
		Responses:   []service.TableItems{{Table: "T", Items: []dynamo.Item{k.Item}}, {Table: "U"}},
		Unprocessed: []service.BatchGetTable{unprocessed}, Capacity: []*service.Capacity{{TableName: "T"}},
	})
	const again = `{"T":{"Keys":[{"k":{"S":"a"}}],"ProjectionExpression":"#a","ExpressionAttributeNames":{"#a":"a"},"AttributesToGet":["a"],"ConsistentRead":true}}`
	want(t, got, `{"Responses":{"T":[{"k":{"S":"a"}}],"U":[]},"UnprocessedKeys":`+again+`,"ConsumedCapacity":[{"TableName":"T","CapacityUnits":0.0}]}`)
	want(t, decodeAs(t, decodeBatchGetItem, `{"RequestItems":`+again+`}`).RequestItems, []service.BatchGetTable{unprocessed})

	want(t, encoded(t, encodeBatchWriteItem, service.BatchWriteItemOutput{
		Unprocessed: []service.BatchWriteTable{{Table: "T", Requests: []service.WriteRequest{{Put: &k}, {Delete: &k}}}},
		Collections: []service.TableCollections{{Table: "T", Metrics: []*service.CollectionMetrics{{Key: k.Item, Hi: 1}}}},
	}), `{"UnprocessedItems":{"T":[{"PutRequest":{"Item":{"k":{"S":"a"}}}},{"DeleteRequest":{"Key":{"k":{"S":"a"}}}}]},`+
		`"ItemCollectionMetrics":{"T":[{"ItemCollectionKey":{"k":{"S":"a"}},"SizeEstimateRangeGB":[0.0,1.0]}]}}`)
	want(t, encoded(t, encodeTransactGetItems, service.TransactGetItemsOutput{Responses: []dynamo.Item{k.Item, nil}}),
		`{"Responses":[{"Item":{"k":{"S":"a"}}},{}]}`)
	want(t, encoded(t, encodeTransactWriteItems, service.TransactWriteItemsOutput{}), `{}`)
}

func TestEncodeTableDescription(t *testing.T) {
	at := time.UnixMilli(1479499740123)
	want(t, encoded(t, encodeTableDescription, service.TableDescription{
		TableName: "T", TableID: "id", ARN: "arn", Status: "ACTIVE", Created: at, BillingMode: "PROVISIONED",
		Attributes: [][2]string{{"k", "S"}}, KeySchema: [][2]string{{"k", "HASH"}}, Read: 5, Write: 6,
	}), `{"TableDescription":{"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}],"TableName":"T",`+
		`"KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],"TableStatus":"ACTIVE","CreationDateTime":1479499740.123,`+
		`"ProvisionedThroughput":{"NumberOfDecreasesToday":0,"ReadCapacityUnits":5,"WriteCapacityUnits":6},"TableSizeBytes":0,"ItemCount":0,`+
		`"TableArn":"arn","TableId":"id","DeletionProtectionEnabled":false}}`)
	want(t, encoded(t, encodeDescribeTable, service.TableDescription{
		TableName: "T", Status: "ACTIVE", Created: at, BillingMode: "PAY_PER_REQUEST", OnDemandSince: at.Add(time.Second),
		LastIncrease: at, LastDecrease: at, Decreases: 2, ItemCount: 3, SizeBytes: 4,
		OnDemand:       &service.OnDemandThroughput{MaxRead: service.Some[int64](1), MaxWrite: service.Some[int64](2)},
		StreamViewType: "KEYS_ONLY", StreamARN: "stream", StreamLabel: "label", TableClass: "STANDARD", DeletionProtection: true, SSEEnabled: true,
		Local: []service.IndexDescription{{Name: "L", ARN: "l", ProjectionType: "INCLUDE", NonKey: []string{"a"}, ItemCount: 1, SizeBytes: 2}},
		Global: []service.IndexDescription{{Name: "G", ARN: "g", Status: "CREATING", ProjectionType: "ALL", Read: 7, Write: 8,
			KeySchema: [][2]string{{"x", "HASH"}}, Backfilling: service.Some(true),
			OnDemand: &service.OnDemandThroughput{MaxRead: service.Some[int64](3)}, Warm: service.WarmDescription{Read: 1, Write: 2, Status: "ACTIVE"}}},
		Warm: service.WarmDescription{Read: 3, Write: 4, Status: "UPDATING"},
	}), `{"Table":{"TableName":"T","TableStatus":"ACTIVE","CreationDateTime":1479499740.123,`+
		`"ProvisionedThroughput":{"LastIncreaseDateTime":1479499740.123,"LastDecreaseDateTime":1479499740.123,"NumberOfDecreasesToday":2,`+
		`"ReadCapacityUnits":0,"WriteCapacityUnits":0},"TableSizeBytes":4,"ItemCount":3,"TableArn":"","TableId":"",`+
		`"BillingModeSummary":{"BillingMode":"PAY_PER_REQUEST","LastUpdateToPayPerRequestDateTime":1479499741.123},`+
		`"OnDemandThroughput":{"MaxReadRequestUnits":1,"MaxWriteRequestUnits":2},`+
		`"WarmThroughput":{"ReadUnitsPerSecond":3,"WriteUnitsPerSecond":4,"Status":"UPDATING"},`+
		`"LocalSecondaryIndexes":[{"IndexName":"L","Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["a"]},`+
		`"IndexSizeBytes":2,"ItemCount":1,"IndexArn":"l"}],`+
		`"GlobalSecondaryIndexes":[{"IndexName":"G","KeySchema":[{"AttributeName":"x","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"},`+
		`"IndexStatus":"CREATING","Backfilling":true,"ProvisionedThroughput":{"NumberOfDecreasesToday":0,"ReadCapacityUnits":7,"WriteCapacityUnits":8},`+
		`"OnDemandThroughput":{"MaxReadRequestUnits":3},"WarmThroughput":{"ReadUnitsPerSecond":1,"WriteUnitsPerSecond":2,"Status":"ACTIVE"},`+
		`"IndexSizeBytes":0,"ItemCount":0,"IndexArn":"g"}],`+
		`"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"},"LatestStreamLabel":"label","LatestStreamArn":"stream",`+
		`"SSEDescription":{"Status":"ENABLED","SSEType":"KMS"},"TableClassSummary":{"TableClass":"STANDARD"},"DeletionProtectionEnabled":true}}`)
}

func TestEncodeOtherOperations(t *testing.T) {
	want(t, encoded(t, encodeListTables, service.ListTablesOutput{Names: []string{"A", "B"}, Last: "B"}),
		`{"TableNames":["A","B"],"LastEvaluatedTableName":"B"}`)
	want(t, encoded(t, encodeListTables, service.ListTablesOutput{}), `{"TableNames":[]}`)
	want(t, encoded(t, encodeUpdateTimeToLive, service.UpdateTimeToLiveOutput{Enabled: true, Attribute: "a"}),
		`{"TimeToLiveSpecification":{"Enabled":true,"AttributeName":"a"}}`)
	want(t, encoded(t, encodeDescribeTimeToLive, service.DescribeTimeToLiveOutput{Status: "DISABLED"}),
		`{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`)
	want(t, encoded(t, encodeDescribeTimeToLive, service.DescribeTimeToLiveOutput{Status: "ENABLED", Attribute: "a"}),
		`{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"a"}}`)
	want(t, encoded(t, encodeListTags, service.ListTagsOutput{Tags: [][2]string{{"k", "v"}}, NextToken: "n"}),
		`{"Tags":[{"Key":"k","Value":"v"}],"NextToken":"n"}`)
	want(t, encoded(t, encodeGetResourcePolicy, service.GetResourcePolicyOutput{Policy: `{"Id": 1}`, RevisionID: "7"}),
		`{"Policy":"{\"Id\": 1}","RevisionId":"7"}`)
	want(t, encoded(t, encodeRevision, service.RevisionOutput{RevisionID: "7"}), `{"RevisionId":"7"}`)
	want(t, encoded(t, encodeRevision, service.RevisionOutput{}), `{}`)
	s := newTestServer(t, Options{})
	call(s, "CreateTable", createT)
	tagged := call(s, "TagResource", `{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Tab","Tags":[{"Key":"a","Value":"b"}]}`)
	want(t, tagged.status, 200)
	want(t, tagged.body, ``)
	want(t, encoded(t, encodeDescribeLimits, service.DescribeLimitsOutput{AccountRead: 1, AccountWrite: 2, TableRead: 3, TableWrite: 4}),
		`{"AccountMaxReadCapacityUnits":1,"AccountMaxWriteCapacityUnits":2,"TableMaxReadCapacityUnits":3,"TableMaxWriteCapacityUnits":4}`)
	want(t, encoded(t, encodeDescribeEndpoints, service.DescribeEndpointsOutput{Address: "localhost:8000", CacheMinutes: 1440}),
		`{"Endpoints":[{"Address":"localhost:8000","CachePeriodInMinutes":1440}]}`)
}

func TestEncodeStreams(t *testing.T) {
	ref := service.StreamRef{ARN: "arn", Table: "T", Label: "label"}
	want(t, encoded(t, encodeListStreams, service.ListStreamsOutput{Streams: []service.StreamRef{ref}, LastARN: "arn"}),
		`{"Streams":[{"StreamArn":"arn","TableName":"T","StreamLabel":"label"}],"LastEvaluatedStreamArn":"arn"}`)
	want(t, encoded(t, encodeDescribeStream, service.StreamDescription{StreamRef: ref, Status: "ENABLED", ViewType: "KEYS_ONLY",
		Created: time.UnixMilli(5), KeySchema: [][2]string{{"k", "HASH"}}, LastShardID: "b",
		Shards: []service.ShardDescription{{ID: "a", Start: "1", End: "2"}, {ID: "b", Parent: "a", Start: "3"}}}),
		`{"StreamDescription":{"StreamArn":"arn","TableName":"T","StreamLabel":"label","StreamStatus":"ENABLED","StreamViewType":"KEYS_ONLY",`+
			`"CreationRequestDateTime":0.005,"KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],"Shards":[`+
			`{"ShardId":"a","SequenceNumberRange":{"StartingSequenceNumber":"1","EndingSequenceNumber":"2"}},`+
			`{"ShardId":"b","SequenceNumberRange":{"StartingSequenceNumber":"3"},"ParentShardId":"a"}],"LastEvaluatedShardId":"b"}}`)
	want(t, encoded(t, encodeGetShardIterator, service.GetShardIteratorOutput{Iterator: "i"}), `{"ShardIterator":"i"}`)
	want(t, encoded(t, encodeGetRecords, service.GetRecordsOutput{}), `{"Records":[]}`)
	k := item(t, `{"k":{"S":"a"}}`)
	want(t, encoded(t, encodeGetRecords, service.GetRecordsOutput{Next: "n", Records: []service.StreamRecord{
		{EventID: "e", EventName: "REMOVE", Region: "r", Created: time.UnixMilli(1479499740000), Keys: k, Old: k, Sequence: "7", SizeBytes: 4,
			ViewType: "OLD_IMAGE", Service: true},
		{EventID: "f", EventName: "INSERT", Created: time.UnixMilli(999), Keys: k, New: k},
	}}), `{"Records":[{"eventID":"e","eventName":"REMOVE","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"r","dynamodb":{`+
		`"ApproximateCreationDateTime":1479499740,"Keys":{"k":{"S":"a"}},"OldImage":{"k":{"S":"a"}},"SequenceNumber":"7","SizeBytes":4,`+
		`"StreamViewType":"OLD_IMAGE"},"userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}},`+
		`{"eventID":"f","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"","dynamodb":{`+
		`"ApproximateCreationDateTime":0.9995,"Keys":{"k":{"S":"a"}},"NewImage":{"k":{"S":"a"}},"SequenceNumber":"","SizeBytes":0,`+
		`"StreamViewType":""}}],"NextShardIterator":"n"}`)
}

func TestEncodeErrors(t *testing.T) {
	k := item(t, `{"k":{"S":"a"}}`)
	for _, test := range []struct {
		err  dynamo.Error
		body string
	}{
		{dynamo.Error{Code: dynamo.CodeValidation, Message: `"x"`}, `{"__type":"com.amazon.coral.validate#ValidationException","message":"\"x\""}`},
		{*errSerialization, `{"__type":"com.amazon.coral.service#SerializationException"}`},
		{dynamo.Error{Code: dynamo.CodeSerialization, Message: "m"}, `{"__type":"com.amazon.coral.service#SerializationException","Message":"m"}`},
		{*errUnknownOperation, `{"__type":"com.amazon.coral.service#UnknownOperationException"}`},
		{dynamo.Error{Code: dynamo.CodeResourceNotFound, Message: "m"}, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"m"}`},
		{dynamo.Error{Code: dynamo.CodeExpiredIterator, Message: "m"}, `{"__type":"com.amazonaws.dynamodb.v20120810#ExpiredIteratorException","message":"m"}`},
		{dynamo.Error{Code: dynamo.CodeMissingAuthToken, Message: "m"}, `{"__type":"com.amazon.coral.service#MissingAuthenticationTokenException","message":"m"}`},
		{dynamo.Error{Code: dynamo.CodeConditionalCheckFailed, Message: "m", Item: k},
			`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"m","Item":{"k":{"S":"a"}}}`},
		{dynamo.Error{Code: dynamo.CodeTransactionCanceled, Message: "m", Reasons: []dynamo.Reason{{Code: "None"}, {Code: "ConditionalCheckFailed", Message: "f", Item: k}}},
			`{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[{"Code":"None"},` +
				`{"Code":"ConditionalCheckFailed","Message":"f","Item":{"k":{"S":"a"}}}],"Message":"m"}`},
		{dynamo.Error{Code: dynamo.CodeTransactionInProgress, Message: "m"}, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionInProgressException","Message":"m"}`},
		{dynamo.Error{Code: dynamo.CodeIdempotentMismatch, Message: "m"}, `{"__type":"com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException","Message":"m"}`},
		{*errFault, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"Internal server error"}`},
	} {
		want(t, encoded(t, encodeError, test.err), test.body)
	}
}
