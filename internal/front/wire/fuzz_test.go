package wire

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// FuzzRequest sends any body to any operation. The answer must have a status of the protocol and a
// body that is JSON. It is never a fault, because no request can cause one.
func FuzzRequest(f *testing.F) {
	var log bytes.Buffer
	s := newTestServer(f, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	names := operationNames()
	seed := func(operation, body string) { f.Add(uint8(slices.Index(names, operation)), []byte(body)) }
	seed("PutItem", `{"TableName":"Tab","Item":{"k":{"S":"a"},"l":{"L":[{"M":{"x":{"NS":["1","2"]}}},{"B":"AQI="}]}},"ConditionExpression":"size(#a) > :v OR k IN (:v)","ExpressionAttributeNames":{"#a":"a"},"ExpressionAttributeValues":{":v":{"N":"1"}},"ReturnValues":"ALL_OLD"}`)
	seed("PutItem", `{"TableName":"Tab","Item":{"k":{"S":"a"}},"Expected":{"a":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"N":"1"},{"N":"2"}]}},"ConditionalOperator":"OR"}`)
	seed("UpdateItem", `{"TableName":"Tab","Key":{"k":{"S":"a"}},"UpdateExpression":"SET a.b[1] = if_not_exists(c, :v), n = n - :v REMOVE d ADD s :s DELETE t :s","ExpressionAttributeValues":{":v":{"N":"1E2"},":s":{"SS":["a"]}},"ReturnValues":"UPDATED_OLD"}`)
	seed("UpdateItem", `{"TableName":"Tab","Key":{"k":{"S":"a"}},"AttributeUpdates":{"a":{"Action":"ADD","Value":{"N":"1"}}}}`)
	seed("GetItem", `{"TableName":"Tab","Key":{"k":{"S":"a"}},"ProjectionExpression":"a.b[1],c","ConsistentRead":true}`)
	seed("DeleteItem", `{"TableName":"Tab","Key":{"k":{"S":"a"}},"ReturnValues":"ALL_OLD"}`)
	seed("Query", `{"TableName":"Tab","KeyConditionExpression":"k = :k","FilterExpression":"attribute_type(a, :t)","ExpressionAttributeValues":{":k":{"S":"a"},":t":{"S":"SS"}},"Limit":1,"ExclusiveStartKey":{"k":{"S":"a"}}}`)
	seed("Query", `{"TableName":"Tab","KeyConditions":{"k":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"a"}]}},"QueryFilter":{"a":{"ComparisonOperator":"IN","AttributeValueList":[{"N":"1"},{"N":"2"}]}},"Select":"COUNT"}`)
	seed("Scan", `{"TableName":"Tab","Segment":1,"TotalSegments":3,"ScanFilter":{"a":{"ComparisonOperator":"NOT_CONTAINS","AttributeValueList":[{"S":""}]}}}`)
	seed("BatchGetItem", `{"RequestItems":{"Tab":{"Keys":[{"k":{"S":"a"}},{"k":{"S":"b"}}],"AttributesToGet":["k"]}}}`)
	seed("BatchWriteItem", `{"RequestItems":{"Tab":[{"PutRequest":{"Item":{"k":{"S":"a"}}}},{"DeleteRequest":{"Key":{"k":{"S":"b"}}}}]},"ReturnItemCollectionMetrics":"SIZE"}`)
	seed("TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"Tab","Item":{"k":{"S":"a"}}}},{"ConditionCheck":{"TableName":"Tab","Key":{"k":{"S":"b"}},"ConditionExpression":"attribute_not_exists(k)"}}],"ClientRequestToken":"t"}`)
	seed("TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"Tab","Key":{"k":{"S":"a"}}}}]}`)
	seed("CreateTable", createT)
	seed("CreateTable", `{"TableName":"Tac","AttributeDefinitions":[{"AttributeName":"k","AttributeType":"N"},{"AttributeName":"s","AttributeType":"B"}],"KeySchema":[{"AttributeName":"k","KeyType":"HASH"},{"AttributeName":"s","KeyType":"RANGE"}],"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1},"GlobalSecondaryIndexes":[{"IndexName":"Gsi","KeySchema":[{"AttributeName":"s","KeyType":"HASH"}],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["x"]},"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}}]}`)
	seed("UpdateTable", `{"TableName":"Tab","BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1},"StreamSpecification":{"StreamEnabled":false}}`)
	seed("UpdateTimeToLive", `{"TableName":"Tab","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"ttl"}}`)
	seed("TagResource", `{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Tab","Tags":[{"Key":"a","Value":"b"}]}`)
	seed("PutResourcePolicy", `{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Tab","Policy":"{\"Statement\":{\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"*\",\"Resource\":\"*\"}}","ExpectedRevisionId":"NO_POLICY"}`)
	seed("GetResourcePolicy", `{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Tab"}`)
	seed("DeleteResourcePolicy", `{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Tab/stream/2015-05-11T21:21:33.291"}`)
	seed("ListTables", `{"Limit":1,"ExclusiveStartTableName":"A"}`)
	seed("DescribeStream", `{"StreamArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Tab/stream/2015-05-11T21:21:33.291"}`)
	seed("GetShardIterator", `{"StreamArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Tab/stream/2015-05-11T21:21:33.291","ShardId":"shardId-00000001573689847184-864758bb","ShardIteratorType":"AT_SEQUENCE_NUMBER","SequenceNumber":"800000000003126276362"}`)
	seed("GetRecords", `{"ShardIterator":"AAAA","Limit":1}`)
	seed("GetRecords", `{"ShardIterator":`)

	call(s, "CreateTable", createT)
	f.Fuzz(func(t *testing.T, operation uint8, body []byte) {
		name := names[int(operation)%len(names)]
		prefix := targetTables
		if _, streams := streamOperations[name]; streams {
			prefix = targetStreams
		}
		log.Reset()
		got := call(s, prefix+name, string(body))
		switch {
		case got.status != 200 && got.status != 400:
			t.Errorf("%s %q: %d %s\n%s", name, body, got.status, got.body, &log)
		case got.status == 200 && strings.Contains(got.body, `"__type"`) && strings.HasPrefix(got.body, `{"__type"`):
			t.Errorf("%s %q: an error with status 200: %s", name, body, got.body)
		case len(got.body) > 0 && !json.Valid([]byte(got.body)):
			t.Errorf("%s %q: not JSON: %s", name, body, got.body)
		case got.status == 200 && !dynamo.ValidJSON(body):
			t.Errorf("%s %q: accepted", name, body)
		}
	})
}
