package wire

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// decodeAs reads body with one decode function and fails the test on an error.
func decodeAs[In any](t *testing.T, decode func(*decoder, *In), body string, header ...string) In {
	t.Helper()
	in, err := tryDecode(decode, body, header...)
	if err != nil {
		t.Fatalf("decode %s: %v", body, err)
	}
	return in
}

func tryDecode[In any](decode func(*decoder, *In), body string, header ...string) (In, error) {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	out := newResponse()
	defer out.Release()
	d := newDecoder(&Request{Header: h, Body: []byte(body)}, out, []byte(body))
	defer d.release()
	var in In
	d.Struct("")
	decode(d, &in)
	if err := d.End(); err != nil {
		return in, err
	}
	return in, d.invalid
}

// item returns the item of a JSON text.
func item(t *testing.T, text string) dynamo.Item {
	t.Helper()
	out, invalid, fatal := dynamo.NewJSON([]byte(text)).AppendItem(nil)
	if invalid != nil || fatal != nil {
		t.Fatal(text, invalid, fatal)
	}
	return out
}

func value(t *testing.T, text string) dynamo.Value {
	t.Helper()
	out, invalid, fatal := dynamo.NewJSON([]byte(text)).AppendValue(nil)
	if invalid != nil || fatal != nil {
		t.Fatal(text, invalid, fatal)
	}
	return out
}

func arg(t *testing.T, text string) service.ItemArg { return service.ItemArg{Item: item(t, text)} }

func text(s string) service.Opt[string] { return service.Some(s) }

func want[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b error) bool {
		return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
	}), cmpopts.IgnoreUnexported(service.GetItemInput{}, service.QueryInput{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestDecodePutItem(t *testing.T) {
	got := decodeAs(t, decodePutItem, `{"TableName":"T","Item":{"b":{"N":"1.50"},"a":{"S":"x"}},"ConditionExpression":"#a = :v",
		"ExpressionAttributeNames":{"#a":"a"},"ExpressionAttributeValues":{":v":{"L":[{"BOOL":true},{"NULL":true}]}},
		"ReturnValues":"ALL_OLD","ReturnValuesOnConditionCheckFailure":"NONE","ReturnConsumedCapacity":"TOTAL",
		"ReturnItemCollectionMetrics":"SIZE","Unknown":{"x":[1,{}]},"ConditionalOperator":null}`)
	want(t, got, service.WriteInput{
		TableName: text("T"), Item: arg(t, `{"a":{"S":"x"},"b":{"N":"1.5"}}`), Condition: text("#a = :v"),
		Names:        service.Names{"#a": "a"},
		Values:       service.Values{V: map[string]dynamo.Value{":v": value(t, `{"L":[{"BOOL":true},{"NULL":true}]}`)}},
		ReturnValues: text("ALL_OLD"), ReturnValuesOnConditionFail: text("NONE"), ReturnConsumedCapacity: text("TOTAL"),
		ReturnItemCollectionMetrics: text("SIZE"),
	})
}

func TestDecodeDistinguishesEmptyFromAbsent(t *testing.T) {
	want(t, decodeAs(t, decodePutItem, `{"Item":{},"ExpressionAttributeNames":{},"ExpressionAttributeValues":{},"ConditionExpression":""}`),
		service.WriteInput{Item: service.ItemArg{Item: dynamo.Item{0}}, Names: service.Names{},
			Values: service.Values{V: map[string]dynamo.Value{}}, Condition: text("")})
	want(t, decodeAs(t, decodePutItem, `{"Item":null,"ExpressionAttributeNames":null,"ExpressionAttributeValues":null,"ConditionExpression":null}`),
		service.WriteInput{})
	want(t, decodeAs(t, decodeCreateTable, `{"LocalSecondaryIndexes":[],"Tags":null}`),
		service.CreateTableInput{Local: []service.IndexSpec{}})
}

// A bad value does not end the reading; the service reports it after its own earlier checks.
func TestDecodeDefersInvalidValues(t *testing.T) {
	const notNumber = "The parameter cannot be converted to a numeric value: x"
	got := decodeAs(t, decodeUpdateItem, `{"Key":{"k":{"N":"x"},"l":{"N":""}},
		"ExpressionAttributeValues":{":a":{"S":"ok"},":b":{"N":"x"},":c":{}},
		"Expected":{"a":{"Value":{"N":"x"}}},"TableName":"T"}`)
	want(t, got.Item.Err, error(dynamo.Invalid(notNumber)))
	want(t, got.Values.Err, error(dynamo.Invalid("ExpressionAttributeValues contains invalid value: "+notNumber+" for key :b")))
	want(t, got.Legacy.Err, error(dynamo.Invalid(notNumber)))
	want(t, got.TableName, text("T"))
}

func TestDecodeLegacyParameters(t *testing.T) {
	got := decodeAs(t, decodeUpdateItem, `{"AttributeUpdates":{"a":{"Action":"PUT","Value":{"S":"x"}},"b":{"Action":"DELETE"},"c":null},
		"Expected":{"a":{"Exists":false},"b":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]},"c":{"Value":{"S":"x"}}},
		"ConditionalOperator":"OR"}`)
	x := value(t, `{"S":"x"}`)
	want(t, got.Legacy, service.Legacy{
		AttributeUpdates: map[string]service.AttributeUpdate{"a": {Action: text("PUT"), Value: x}, "b": {Action: text("DELETE")}, "c": {}},
		Expected: map[string]service.ExpectedValue{
			"a": {Exists: service.Some(false)}, "b": {Operator: text("EQ"), List: []dynamo.Value{x}}, "c": {Value: x},
		},
		ConditionalOperator: text("OR"),
	})
	query := decodeAs(t, decodeQuery, `{"KeyConditions":{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]}},
		"QueryFilter":{"b":{"ComparisonOperator":"NULL"}},"AttributesToGet":["a","b"],"ConditionalOperator":"AND"}`)
	want(t, query.Legacy, service.Legacy{
		KeyConditions:   map[string]service.LegacyCondition{"a": {Operator: text("EQ"), List: []dynamo.Value{x}}},
		QueryFilter:     map[string]service.LegacyCondition{"b": {Operator: text("NULL")}},
		AttributesToGet: []string{"a", "b"}, ConditionalOperator: text("AND"),
	})
	scan := decodeAs(t, decodeScan, `{"ScanFilter":{"b":{"ComparisonOperator":"NULL"}},"AttributesToGet":[]}`)
	want(t, scan.Legacy, service.Legacy{
		ScanFilter: map[string]service.LegacyCondition{"b": {Operator: text("NULL")}}, AttributesToGet: []string{},
	})
}

func TestDecodeReads(t *testing.T) {
	want(t, decodeAs(t, decodeGetItem, `{"TableName":"T","Key":{"k":{"B":"AQI="}},"ProjectionExpression":"a.b","ExpressionAttributeNames":{"#a":"a"},
		"ConsistentRead":"yes","ReturnConsumedCapacity":"INDEXES"}`),
		service.GetItemInput{TableName: text("T"), Key: arg(t, `{"k":{"B":"AQI="}}`), Projection: text("a.b"),
			Names: service.Names{"#a": "a"}, ConsistentRead: service.Some(true), ReturnConsumedCapacity: text("INDEXES")})
	want(t, decodeAs(t, decodeQuery, `{"TableName":"T","IndexName":"I","KeyConditionExpression":"k = :k","FilterExpression":"f","ProjectionExpression":"p",
		"ExpressionAttributeValues":{":k":{"S":"x"}},"Select":"COUNT","Limit":3.7,"ConsistentRead":true,"ScanIndexForward":false,
		"ExclusiveStartKey":{"k":{"S":"x"}},"ReturnConsumedCapacity":"NONE"}`),
		service.QueryInput{TableName: text("T"), IndexName: text("I"), KeyCondition: text("k = :k"), Filter: text("f"), Projection: text("p"),
			Values: service.Values{V: map[string]dynamo.Value{":k": value(t, `{"S":"x"}`)}}, Select: text("COUNT"),
			Limit: service.Some[int64](3), ConsistentRead: service.Some(true), ScanIndexForward: service.Some(false),
			ExclusiveStartKey: arg(t, `{"k":{"S":"x"}}`), ReturnConsumedCapacity: text("NONE")})
	want(t, decodeAs(t, decodeScan, `{"TableName":"T","IndexName":"I","FilterExpression":"f","Segment":0,"TotalSegments":4,"Limit":-1}`),
		service.ScanInput{TableName: text("T"), IndexName: text("I"), Filter: text("f"), Segment: service.Some[int64](0),
			TotalSegments: service.Some[int64](4), Limit: service.Some[int64](-1)})
}

func TestDecodeBatches(t *testing.T) {
	want(t, decodeAs(t, decodeBatchGetItem, `{"RequestItems":{"T":{"Keys":[{"k":{"S":"a"}},{"k":{"N":"x"}}],"ConsistentRead":true,
		"AttributesToGet":["a"],"ProjectionExpression":"p","ExpressionAttributeNames":{"#a":"a"}},"U":{},"V":null,"U":{"Keys":[]}},"ReturnConsumedCapacity":"TOTAL"}`),
		service.BatchGetItemInput{RequestItems: []service.BatchGetTable{
			{Table: "T", ConsistentRead: service.Some(true), Projection: text("p"), Names: service.Names{"#a": "a"},
				Legacy: service.Legacy{AttributesToGet: []string{"a"}},
				Keys: []service.ItemArg{arg(t, `{"k":{"S":"a"}}`), {
					Item: decodeAs(t, decodePutItem, `{"Item":{"k":{"N":"x"}}}`).Item.Item,
					Err:  dynamo.Invalid("The parameter cannot be converted to a numeric value: x")}}},
			{Table: "V"},
			{Table: "U", Keys: []service.ItemArg{}},
		}, ReturnConsumedCapacity: text("TOTAL")})
	a := arg(t, `{"k":{"S":"a"}}`)
	want(t, decodeAs(t, decodeBatchWriteItem, `{"RequestItems":{"T":[{"PutRequest":{"Item":{"k":{"S":"a"}}}},{"DeleteRequest":{"Key":{"k":{"S":"a"}}}},{},
		{"PutRequest":{},"DeleteRequest":{}}],"U":[]},"ReturnItemCollectionMetrics":"SIZE"}`),
		service.BatchWriteItemInput{RequestItems: []service.BatchWriteTable{
			{Table: "T", Requests: []service.WriteRequest{{Put: &a}, {Delete: &a}, {}, {Put: &service.ItemArg{}, Delete: &service.ItemArg{}}}},
			{Table: "U", Requests: []service.WriteRequest{}},
		}, ReturnItemCollectionMetrics: text("SIZE")})
}

// A body of many small members does not become an input many times its size.
func TestDecodeLimitsMembers(t *testing.T) {
	in := decodeAs(t, decodeTransactGetItems, `{"TransactItems":[`+strings.Repeat("{},", 1e5)+`{}]}`)
	want(t, len(in.Items), keepMembers)
	var tables strings.Builder
	for i := range 100000 {
		fmt.Fprintf(&tables, `"%d":{},`, i)
	}
	got := decodeAs(t, decodeBatchGetItem, `{"RequestItems":{`+tables.String()+`"x":{}}}`)
	want(t, len(got.RequestItems), keepMembers)
	writes := decodeAs(t, decodeBatchWriteItem, `{"RequestItems":{`+strings.ReplaceAll(tables.String(), "{}", "[]")+`"x":[]}}`)
	want(t, len(writes.RequestItems), keepMembers)
}

func TestDecodeTransactions(t *testing.T) {
	key := arg(t, `{"k":{"S":"a"}}`)
	want(t, decodeAs(t, decodeTransactGetItems, `{"TransactItems":[{"Get":{"TableName":"T","Key":{"k":{"S":"a"}},"ProjectionExpression":"p",
		"ExpressionAttributeNames":{"#a":"a"}}},{}],"ReturnConsumedCapacity":"TOTAL"}`),
		service.TransactGetItemsInput{Items: []service.TransactGet{
			{Present: true, TableName: text("T"), Key: key, Projection: text("p"), Names: service.Names{"#a": "a"}}, {}},
			ReturnConsumedCapacity: text("TOTAL")})
	want(t, decodeAs(t, decodeTransactWriteItems, `{"TransactItems":[
		{"ConditionCheck":{"TableName":"T","Key":{"k":{"S":"a"}},"ConditionExpression":"c","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}},
		{"Put":{"TableName":"T","Item":{"k":{"S":"a"}}}},
		{"Update":{"TableName":"T","Key":{"k":{"S":"a"}},"UpdateExpression":"u"}},
		{"Delete":{"TableName":"T","Key":{"k":{"S":"a"}}},"Put":{}}]}`),
		service.TransactWriteItemsInput{Items: []service.TransactAction{
			{Check: &service.WriteInput{TableName: text("T"), Item: key, Condition: text("c"), ReturnValuesOnConditionFail: text("ALL_OLD")}},
			{Put: &service.WriteInput{TableName: text("T"), Item: key}},
			{Update: &service.WriteInput{TableName: text("T"), Item: key, Update: text("u")}},
			{Delete: &service.WriteInput{TableName: text("T"), Item: key}, Put: &service.WriteInput{}},
		}})
}

// An application that repeats a transaction may write the members of maps in another order. The
// content is the same.
func TestDigestIgnoresOrder(t *testing.T) {
	digestOf := func(items string) [32]byte {
		in := decodeAs(t, decodeTransactWriteItems, `{"ClientRequestToken":"t","TransactItems":[`+items+`]}`)
		if in.Digest == ([32]byte{}) {
			t.Errorf("no digest of %s", items)
		}
		return in.Digest
	}
	same := digestOf(`{"Put":{"TableName":"T","Item":{"a":{"N":"1"},"b":{"SS":["x","y"]}},"ConditionExpression":"c",
		"ExpressionAttributeValues":{":a":{"S":"1"},":b":{"S":"2"}}}}`)
	want(t, digestOf(`{"Put":{"ExpressionAttributeValues":{":b":{"S":"2"},":a":{"S":"1"}},"Item":{"b":{"SS":["y","x"]},"a":{"N":"1.0"}},
		"TableName":"T","ConditionExpression":"c"}}`), same)
	seen := map[[32]byte]string{same: "the first"}
	for _, other := range []string{
		``,
		`{"Put":{"TableName":"T","Item":{"a":{"N":"1"}}}}`,
		`{"Delete":{"TableName":"T","Key":{"a":{"N":"1"}}}}`,
		`{"Delete":{"TableName":"T","Key":{"a":{"N":"1"}},"ConditionExpression":""}}`,
		`{"Update":{"TableName":"T","Key":{"a":{"N":"1"}},"UpdateExpression":"u"}}`,
		`{"Update":{"TableName":"T","Key":{"a":{"N":"1"}},"ConditionExpression":"u"}}`,
		`{"ConditionCheck":{"TableName":"T","Key":{"a":{"N":"1"}},"ConditionExpression":"u"}}`,
		`{"Put":{"TableName":"U","Item":{"a":{"N":"1"}}}}`,
		`{"Put":{"TableName":"U","Item":{"a":{"N":"1"}},"ExpressionAttributeNames":{"#a":"b"}}}`,
		`{"Put":{"TableName":"U","Item":{"a":{"N":"1"}},"ExpressionAttributeNames":{"#a":"c"}}}`,
	} {
		d := digestOf(other)
		if before, found := seen[d]; found {
			t.Errorf("%s has the digest of %s", other, before)
		}
		seen[d] = other
	}
}

func TestDecodeCreateTable(t *testing.T) {
	want(t, decodeAs(t, decodeCreateTable, `{"TableName":"T","AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],"BillingMode":"PROVISIONED",
		"ProvisionedThroughput":{"ReadCapacityUnits":5,"WriteCapacityUnits":1000000000000000},
		"LocalSecondaryIndexes":[{"IndexName":"L","KeySchema":[],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["a"]}}],
		"GlobalSecondaryIndexes":[{"IndexName":"G","Projection":{},"ProvisionedThroughput":{"ReadCapacityUnits":1},"OnDemandThroughput":{"MaxReadRequestUnits":-1},"WarmThroughput":{"ReadUnitsPerSecond":1}}],
		"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"},"Tags":[{"Key":"a","Value":"b"}],"TableClass":"STANDARD",
		"DeletionProtectionEnabled":true,"SSESpecification":{"Enabled":true,"SSEType":"KMS"},"OnDemandThroughput":{"MaxWriteRequestUnits":7},"WarmThroughput":{}}`),
		service.CreateTableInput{
			TableName: text("T"), Attributes: []service.AttributeDefinition{{Name: text("k"), Type: text("S")}},
			KeySchema:   []service.KeySchemaElement{{Name: text("k"), Type: text("HASH")}},
			BillingMode: text("PROVISIONED"), Throughput: &service.Throughput{Read: service.Some[int64](5), Write: service.Some[int64](1e15)},
			Local: []service.IndexSpec{{IndexName: text("L"), KeySchema: []service.KeySchemaElement{},
				Projection: service.ProjectionSpec{Present: true, Type: text("INCLUDE"), NonKey: []string{"a"}}}},
			Global: []service.IndexSpec{{IndexName: text("G"), Projection: service.ProjectionSpec{Present: true},
				Throughput: &service.Throughput{Read: service.Some[int64](1)}, OnDemand: &service.OnDemandThroughput{MaxRead: service.Some[int64](-1)}, Warm: &service.WarmThroughput{Read: service.Some[int64](1)}}},
			Stream: &service.StreamSpec{Enabled: service.Some(true), ViewType: text("KEYS_ONLY")},
			Tags:   []service.Tag{{Key: text("a"), Value: text("b")}}, TableClass: text("STANDARD"),
			DeletionProtection: service.Some(true), SSEEnabled: service.Some(true), SSEType: text("KMS"),
			OnDemand: &service.OnDemandThroughput{MaxWrite: service.Some[int64](7)}, Warm: &service.WarmThroughput{},
		})
}

func TestDecodeUpdateTable(t *testing.T) {
	index := text("G")
	want(t, decodeAs(t, decodeUpdateTable, `{"TableName":"T","AttributeDefinitions":[],"BillingMode":"PAY_PER_REQUEST",
		"StreamSpecification":{"StreamEnabled":false},"DeletionProtectionEnabled":false,"TableClass":"X","SSESpecification":{},
		"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"G"}},{"Update":{"IndexName":"G","ProvisionedThroughput":{},"OnDemandThroughput":{},"WarmThroughput":{"WriteUnitsPerSecond":2}},"Delete":{"IndexName":"G"}},{}],
		"ReplicaUpdates":[],"VectorIndexUpdates":[],"WarmThroughput":{"ReadUnitsPerSecond":1},"MultiRegionConsistency":null}`),
		service.UpdateTableInput{
			TableName: text("T"), Attributes: []service.AttributeDefinition{}, BillingMode: text("PAY_PER_REQUEST"),
			Stream: &service.StreamSpec{Enabled: service.Some(false)}, DeletionProtection: service.Some(false), TableClass: text("X"),
			GlobalUpdates: []service.IndexUpdate{
				{Create: &service.IndexSpec{IndexName: index}, Actions: 1},
				{Update: &service.IndexThroughput{IndexName: index, Throughput: &service.Throughput{}, OnDemand: &service.OnDemandThroughput{}, Warm: &service.WarmThroughput{Write: service.Some[int64](2)}}, Delete: &index, Actions: 2}, {},
			},
			Warm:         &service.WarmThroughput{Read: service.Some[int64](1)},
			Replicas:     service.ReplicaChange{Updates: []service.ReplicaUpdate{}},
			OtherMembers: []string{"VectorIndexUpdates"},
		})
}

// denyAll is a resource policy.
const denyAll = `{"Statement": {"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}}`

func TestDecodeOtherOperations(t *testing.T) {
	want(t, decodeAs(t, decodeTableName, `{"TableName":"T","x":1}`), service.TableNameInput{TableName: text("T")})
	want(t, decodeAs(t, decodeEmpty, `{"x":{"y":[]}}`), service.Empty{})
	want(t, decodeAs(t, decodeListTables, `{"Limit":5,"ExclusiveStartTableName":"S"}`),
		service.ListTablesInput{Limit: service.Some[int64](5), Start: text("S")})
	want(t, decodeAs(t, decodeUpdateTimeToLive, `{"TableName":"T","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"a"}}`),
		service.UpdateTimeToLiveInput{TableName: text("T"), Present: true, Enabled: service.Some(true), Attribute: text("a")})
	want(t, decodeAs(t, decodeUpdateTimeToLive, `{"TimeToLiveSpecification":{}}`), service.UpdateTimeToLiveInput{Present: true})
	want(t, decodeAs(t, decodeTagResource, `{"ResourceArn":"arn","Tags":[{"Key":"a","Value":""},null]}`),
		service.TagResourceInput{ARN: text("arn"), Tags: []service.Tag{{Key: text("a"), Value: text("")}, {}}})
	want(t, decodeAs(t, decodeUntagResource, `{"ResourceArn":"arn","TagKeys":["a"]}`),
		service.UntagResourceInput{ARN: text("arn"), Keys: []string{"a"}})
	want(t, decodeAs(t, decodeListTags, `{"ResourceArn":"arn","NextToken":"n"}`), service.ListTagsInput{ARN: text("arn"), NextToken: text("n")})
	want(t, decodeAs(t, decodePutResourcePolicy, `{"ResourceArn":"arn","Policy":"{\"Statement\": {\"Effect\": \"Deny\", \"Principal\": \"*\", \"Action\": \"*\", \"Resource\": \"*\"}}",
		"ExpectedRevisionId":"1","ConfirmRemoveSelfResourceAccess":true}`),
		service.PutResourcePolicyInput{ARN: text("arn"), Policy: service.PolicyArg{Text: text(denyAll)}, Expected: text("1")})
	want(t, decodeAs(t, decodePutResourcePolicy, `{"Policy":null}`), service.PutResourcePolicyInput{})
	want(t, decodeAs(t, decodeGetResourcePolicy, `{"ResourceArn":"arn","ExpectedRevisionId":"1"}`), service.ResourcePolicyInput{ARN: text("arn")})
	want(t, decodeAs(t, decodeDeleteResourcePolicy, `{"ResourceArn":"arn","ExpectedRevisionId":"1"}`),
		service.ResourcePolicyInput{ARN: text("arn"), Expected: text("1")})
	want(t, decodeAs(t, decodeListStreams, `{"TableName":"T","Limit":1,"ExclusiveStartStreamArn":"arn"}`),
		service.ListStreamsInput{TableName: text("T"), Limit: service.Some[int64](1), StartARN: text("arn")})
	want(t, decodeAs(t, decodeDescribeStream, `{"StreamArn":"arn","Limit":1,"ExclusiveStartShardId":"s","ShardFilter":{"Type":"CHILD_SHARDS","ShardId":"p"}}`),
		service.DescribeStreamInput{ARN: text("arn"), Limit: service.Some[int64](1), StartShardID: text("s"), Filtered: true, FilterType: text("CHILD_SHARDS"), ParentOnly: text("p")})
	// a member that is repeated counts the last time only
	want(t, decodeAs(t, decodeDescribeStream, `{"StreamArn":"arn","ShardFilter":{"Type":"CHILD_SHARDS","ShardId":"p"},"ShardFilter":{"Type":"CHILD_SHARDS"}}`),
		service.DescribeStreamInput{ARN: text("arn"), Filtered: true, FilterType: text("CHILD_SHARDS")})
	want(t, decodeAs(t, decodeGetShardIterator, `{"StreamArn":"arn","ShardId":"s","ShardIteratorType":"LATEST","SequenceNumber":"1"}`),
		service.GetShardIteratorInput{ARN: text("arn"), ShardID: text("s"), Type: text("LATEST"), Sequence: text("1")})
}

func TestDecodeWait(t *testing.T) {
	const body = `{"ShardIterator":"i","Limit":9}`
	for _, test := range []struct {
		header string
		wait   time.Duration
	}{{"", 0}, {"0", 0}, {"1500", 1500 * time.Millisecond}, {"20001", 20 * time.Second}, {"4294967295", 20 * time.Second}} {
		want(t, decodeAs(t, decodeGetRecords, body, headerWait, test.header),
			service.GetRecordsInput{Iterator: text("i"), Limit: service.Some[int64](9), Wait: test.wait})
	}
	for _, header := range []string{"-1", "1.5", "soon", "4294967296"} {
		_, err := tryDecode(decodeGetRecords, body, headerWait, header)
		wantError(t, err, dynamo.CodeValidation, "X-Mayfly-Wait-Ms must be a number of milliseconds: "+header)
	}
	_, err := tryDecode(decodeGetRecords, `{"ShardIterator":1}`, headerWait, "soon")
	wantError(t, err, dynamo.CodeSerialization, "NUMBER_VALUE cannot be converted to String")
}

func TestDecodeExpired(t *testing.T) {
	want(t, decodeAs(t, decodeGetItem, `{}`), service.GetItemInput{})
	want(t, decodeAs(t, decodeGetItem, `{}`, headerExpired, "only"), service.GetItemInput{Expired: service.ExpiredOnly})
	want(t, decodeAs(t, decodeQuery, `{}`, headerExpired, "hide"), service.QueryInput{Expired: service.ExpiredHidden})
	want(t, decodeAs(t, decodeScan, `{}`, headerExpired, "only"), service.ScanInput{Expired: service.ExpiredOnly})
	want(t, decodeAs(t, decodeBatchGetItem, `{}`, headerExpired, "only"), service.BatchGetItemInput{Expired: service.ExpiredOnly})
	want(t, decodeAs(t, decodeTransactGetItems, `{}`, headerExpired, "hide"), service.TransactGetItemsInput{Expired: service.ExpiredHidden})
	for _, header := range []string{"show", "ONLY", "only,hide", "1"} {
		_, err := tryDecode(decodeScan, `{}`, headerExpired, header)
		wantError(t, err, dynamo.CodeValidation, "X-Mayfly-Expired must be only or hide: "+header)
	}
}

func wantError(t *testing.T, err error, code dynamo.Code, message string) {
	t.Helper()
	var answer *dynamo.Error
	if !errors.As(err, &answer) || answer.Code != code || answer.Message != message {
		t.Errorf("error %v\nwant  %s: %s", err, code, message)
	}
}

// The texts are those of AWS.
func TestSerializationErrors(t *testing.T) {
	const structure = "Unrecognized collection type class com.amazonaws.dynamodb.v20120810."
	const unexpected = "Start of structure or map found where not expected"
	const generic = "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class " +
		"(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base of loader 'bootstrap')"
	for _, test := range []struct{ operation, body, message string }{
		{"GetItem", `{"TableName":true}`, "TRUE_VALUE cannot be converted to String"},
		{"GetItem", `{"TableName":false}`, "FALSE_VALUE cannot be converted to String"},
		{"GetItem", `{"TableName":1}`, "NUMBER_VALUE cannot be converted to String"},
		{"GetItem", `{"TableName":1.5}`, "DECIMAL_VALUE cannot be converted to String"},
		{"GetItem", `{"TableName":[]}`, "Unrecognized collection type class java.lang.String"},
		{"GetItem", `{"TableName":{}}`, unexpected},
		{"GetItem", `{"ConsistentRead":1}`, "NUMBER_VALUE cannot be converted to Boolean"},
		{"GetItem", `{"ConsistentRead":"maybe"}`, "Unexpected token received from parser"},
		{"GetItem", `{"ConsistentRead":[]}`, "Unrecognized collection type class java.lang.Boolean"},
		{"GetItem", `{"ConsistentRead":{}}`, unexpected},
		{"Query", `{"Limit":"1"}`, "STRING_VALUE cannot be converted to Integer"},
		{"Query", `{"Limit":true}`, "TRUE_VALUE cannot be converted to Integer"},
		{"Query", `{"Limit":[]}`, "Unrecognized collection type class java.lang.Integer"},
		{"CreateTable", `{"ProvisionedThroughput":{"ReadCapacityUnits":"1"}}`, "STRING_VALUE cannot be converted to Long"},
		{"CreateTable", `{"ProvisionedThroughput":{"WriteCapacityUnits":false}}`, "FALSE_VALUE cannot be converted to Long"},
		{"PutItem", `{"Item":{"a":{"B":1}}}`, "only base-64-encoded strings are convertible to bytes"},
		{"PutItem", `{"Item":{"a":{"B":[]}}}`, "Unrecognized collection type class java.nio.ByteBuffer"},
		{"PutItem", `{"Item":{"a":{"B":"AAA"}}}`, "Base64 encoded length is expected a multiple of 4 bytes but found: 3"},
		{"GetItem", `{"AttributesToGet":"a"}`, "Unexpected field type"},
		{"GetItem", `{"AttributesToGet":{}}`, unexpected},
		{"GetItem", `{"Key":"a"}`, "Unexpected field type"},
		{"GetItem", `{"Key":[]}`, "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>"},
		{"GetItem", `{"ExpressionAttributeNames":[]}`, "Unrecognized collection type java.util.Map<java.lang.String, java.lang.String>"},
		{"GetItem", `{"Key":{"a":"x"}}`, "Unexpected value type in payload"},
		{"GetItem", `{"Key":{"a":[]}}`, structure + "AttributeValue"},
		{"PutItem", `{"Expected":{"a":1}}`, "Unexpected value type in payload"},
		{"PutItem", `{"Expected":{"a":{"Value":1}}}`, "Unexpected field type"},
		{"UpdateItem", `{"AttributeUpdates":[]}`, "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValueUpdate>"},
		{"CreateTable", `{"ProvisionedThroughput":1}`, "Unexpected field type"},
		{"CreateTable", `{"ProvisionedThroughput":[]}`, structure + "ProvisionedThroughput"},
		{"CreateTable", `{"KeySchema":[[]]}`, structure + "KeySchemaElement"},
		{"BatchGetItem", `{"RequestItems":[]}`, "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.KeysAndAttributes>"},
		{"BatchGetItem", `{"RequestItems":{"T":{"Keys":["x"]}}}`, generic},
		{"BatchWriteItem", `{"RequestItems":{"T":"x"}}`, generic},
		{"BatchWriteItem", `{"RequestItems":[]}`, "Unrecognized collection type java.util.Map<java.lang.String, java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>>"},
		{"BatchWriteItem", `{"RequestItems":{"T":[{"PutRequest":[]}]}}`, structure + "PutRequest"},
		{"TransactWriteItems", `{"TransactItems":[{"Put":"x"}]}`, "Unexpected field type"},
		{"TransactGetItems", `{"TransactItems":["x"]}`, "Unexpected value type in payload"},
		// The error for a body that is no JSON object has no text, and precedes every type error.
		{"GetItem", `{"TableName":1`, ""},
		{"GetItem", `{"TableName":1} {}`, ""},
		{"GetItem", `[]`, ""},
		{"GetItem", `"x"`, ""},
		{"GetItem", `null`, ""},
		{"GetItem", ``, ""},
		{"GetItem", strings.Repeat("{", 10000), ""},
		{"PutItem", strings.Repeat(`{"a":`, 10000), ""},
	} {
		target, _ := lookUp(targetTables + test.operation)
		out := newResponse()
		_, err := (&Server{Options: Options{Service: new(service.Service)}}).checkAndRun(t.Context(), &Request{Method: "POST", Header: http.Header{"X-Amz-Target": {targetTables + test.operation}}}, out, []byte(test.body))
		wantError(t, err, dynamo.CodeSerialization, test.message)
		if t.Failed() {
			t.Fatalf("%s %s", target.name, test.body)
		}
	}
}
