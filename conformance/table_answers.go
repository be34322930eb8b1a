package conformance

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tableAnswerChecks are details of answers about tables that captures of 2026 show.
var tableAnswerChecks = []check{
	{"BadNames", badTableNames},
	{"Deleting", deletingAnswer},
	{"IndexesCounted", indexesCounted},
	{"ScanUnits", scanUnitsOfPartitions},
}

var streamAnswerChecks = []check{
	{"Limits", streamLimits},
	{"ShardFilter", incompleteShardFilter},
}

// A name that no table can have is invalid, and not missing, in every operation.
func badTableNames(t *testing.T, e *Endpoint) {
	names := []string{"ab", "a b", "tab/le", strings.Repeat("x", 256)}
	key := `"Key":{"pk":{"S":"a"}}`
	for operation, rest := range map[string]string{
		"DescribeTable": ``, "DeleteTable": ``, "UpdateTable": `,"DeletionProtectionEnabled":true`, "DescribeTimeToLive": ``, "DescribeContributorInsights": ``,
		"GetItem": `,` + key, "DeleteItem": `,` + key, "UpdateItem": `,` + key, "PutItem": `,"Item":{"pk":{"S":"a"}}`,
		"Query": `,"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"a"}}`, "Scan": ``,
	} {
		for _, name := range names {
			e.refuse(t, operation, `{"TableName":"`+name+`"`+rest+`}`, validation, "")
		}
	}
	for _, name := range names {
		e.refuse(t, "BatchGetItem", `{"RequestItems":{"`+name+`":{"Keys":[{"pk":{"S":"a"}}]}}}`, validation, "")
		e.refuse(t, "TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"`+name+`",`+key+`}}]}`, validation, "")
		e.refuse(t, "CreateTable", `{"TableName":"`+name+`","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`, validation, "")
	}
}

// The answer to DeleteTable describes a table without a schema.
func deletingAnswer(t *testing.T, e *Endpoint) {
	for _, billing := range []string{"on demand", "provisioned"} {
		options := []tableOption{local("byL", "pk:S l:S", "ALL"), global("byG", "g:S", "ALL"), stream(types.StreamViewTypeKeysOnly)}
		want := []string{"TableName", "TableStatus", "TableId", "TableArn", "ItemCount", "TableSizeBytes", "ProvisionedThroughput", "DeletionProtectionEnabled",
			"LocalSecondaryIndexes", "GlobalSecondaryIndexes"}
		if billing == "on demand" {
			want = append(want, "BillingModeSummary")
		} else {
			options = append(options, provisioned(3, 4), func(in *dynamodb.CreateTableInput) {
				in.GlobalSecondaryIndexes[0].ProvisionedThroughput = in.ProvisionedThroughput
			})
		}
		tb := newTable(t, e, "pk:S sk:S", options...)
		a := tb.ok(t, "DeleteTable", `{}`)
		described := answer(a.at("TableDescription").(map[string]any))
		described.wantOnly(t, want...)
		described.want(t, "TableStatus", `"DELETING"`)
		for _, list := range []string{"LocalSecondaryIndexes", "GlobalSecondaryIndexes"} {
			for _, x := range described[list].([]any) {
				ix := answer(x.(map[string]any))
				ix.wantAbsent(t, "KeySchema")
				ix.wantAbsent(t, "Projection")
			}
		}
		tb.awaitGone(t)
	}
}

// Two changes of indexes in one call are too many, whether the indexes exist or not. A table is looked for before
// the bounds of an index's throughput are.
func indexesCounted(t *testing.T, e *Endpoint) {
	const tooMany = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	create := func(name, attribute string) string {
		return `{"Create":{"IndexName":"` + name + `","KeySchema":[{"AttributeName":"` + attribute + `","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}`
	}
	remove := func(name string) string { return `{"Delete":{"IndexName":"` + name + `"}}` }
	for _, list := range [][]string{
		{create("byA", "a"), create("byB", "a")},
		{create("byG", "g"), create("byB", "b")}, // byG exists
		{create("byA", "undefined"), remove("byG")},
		{remove("none"), remove("byG")},
		{remove("none"), create("byA", "a")},
	} {
		tb.refuse(t, "UpdateTable", `{"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}],"GlobalSecondaryIndexUpdates":[`+strings.Join(list, ",")+`]}`, limitExceeded, tooMany)
	}
	const much = `"ProvisionedThroughput":{"ReadCapacityUnits":1000000000001,"WriteCapacityUnits":1}`
	e.refuse(t, "UpdateTable", `{"TableName":"no-such-table","GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"byG",`+much+`}}]}`, notFound,
		"Requested resource not found: Table: no-such-table not found")
	for _, kind := range []string{"CreateTable", "UpdateTable"} {
		ix := `"IndexName":"byA","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["x","y","x"]}}`
		body := `{"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],`
		if kind == "CreateTable" {
			body += `"TableName":"` + uniqueName(t) + `","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"GlobalSecondaryIndexes":[{` + ix + `]}`
		} else {
			body += `"TableName":"` + tb.name + `","GlobalSecondaryIndexUpdates":[{"Create":{` + ix + `}]}`
		}
		e.refuse(t, kind, body, validation, invalid+"Duplicate element in NonKeyAttributes: x")
	}
}

// A scan of a whole table on demand visits each of its four partitions, which cost a block each.
func scanUnitsOfPartitions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a"))
	for _, row := range []struct {
		consistent bool
		want       float64
	}{{true, 4}, {false, 2}} {
		out, err := tb.DB.Scan(t.Context(), &dynamodb.ScanInput{TableName: &tb.name, ConsistentRead: &row.consistent, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
		if err != nil || out.ConsumedCapacity == nil || aws.ToFloat64(out.ConsumedCapacity.CapacityUnits) != row.want {
			t.Errorf("consistent %v: %+v, %v, want %v units", row.consistent, out.ConsumedCapacity, err, row.want)
		}
	}
}

func streamLimits(t *testing.T, e *Endpoint) {
	for limit, bound := range map[string]string{"0": "greater than or equal to 1", "-1": "greater than or equal to 1", "1001": "less than or equal to 1000"} {
		e.refuse(t, "GetRecords", `{"ShardIterator":"x","Limit":`+limit+`}`, validation, "1 validation error detected: Value '"+limit+"' at 'limit' failed to satisfy constraint: Member must have value "+bound)
	}
}

// A ShardFilter has a type and a shard.
func incompleteShardFilter(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	const null = " failed to satisfy constraint: Member must not be null"
	for filter, members := range map[string][]string{
		`{}`: {"type", "shardId"}, `{"Type":"CHILD_SHARDS"}`: {"shardId"}, `{"ShardId":"shardId-00000000000000000001-00000001"}`: {"type"},
	} {
		var want []string
		for _, member := range members {
			want = append(want, "Value null at 'shardFilter."+member+"'"+null)
		}
		count := "1 validation error detected: "
		if len(want) > 1 {
			count = "2 validation errors detected: "
		}
		e.refuse(t, "DescribeStream", `{"StreamArn":"`+arn+`","ShardFilter":`+filter+`}`, validation, count+strings.Join(want, "; "))
	}
}
