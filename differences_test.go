package mayfly

import (
	"fmt"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// TestDifferences shows the entries of docs/differences.md that have no other test.
func TestDifferences(t *testing.T) {
	t.Run("ThroughputIsNotEnforced", testThroughputIsNotEnforced)
	t.Run("RegionsShareTables", testRegionsShareTables)
	t.Run("IndexesAreConsistent", testIndexesAreConsistent)
	t.Run("TransactionsWait", testTransactionsWait)
	t.Run("ManyReadersOfAShard", testManyReadersOfAShard)
}

func testThroughputIsNotEnforced(t *testing.T) {
	api := open(t, "", Options{}).DynamoDB()
	_, err := api.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:             aws.String("narrow"),
		AttributeDefinitions:  []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:             []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 { // beyond the burst of five minutes at Amazon
		if _, err := api.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("narrow"), Item: keyOf(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
}

func testRegionsShareTables(t *testing.T) {
	db := open(t, "", Options{Region: "eu-central-1"})
	url := serve(t, db)
	in := func(region string) *dynamodb.Client {
		return dynamodb.New(dynamodb.Options{
			Region: region, BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider(region, "any", ""),
		})
	}
	makeTable(t, in("us-west-2"), "shared")
	out, err := in("ap-south-1").DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("shared")})
	if err != nil {
		t.Fatal(err)
	}
	if arn := aws.ToString(out.Table.TableArn); arn != "arn:aws:dynamodb:eu-central-1:000000000000:table/shared" {
		t.Errorf("the table is called %s", arn)
	}
}

// A read of a global index finds every write that was acknowledged before.
func testIndexesAreConsistent(t *testing.T) {
	api := open(t, "", Options{}).DynamoDB()
	_, err := api.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("indexed"),
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("g"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String("byG"),
			KeySchema:  []types.KeySchemaElement{{AttributeName: aws.String("g"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
		BillingMode: types.BillingModePayPerRequest,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int32(50) {
		item := keyOf(fmt.Sprint(i))
		item["g"] = &types.AttributeValueMemberS{Value: "g"}
		if _, err := api.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("indexed"), Item: item}); err != nil {
			t.Fatal(err)
		}
		out, err := api.Query(t.Context(), &dynamodb.QueryInput{
			TableName: aws.String("indexed"), IndexName: aws.String("byG"), KeyConditionExpression: aws.String("g = :g"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":g": item["g"]}, Select: types.SelectCount,
		})
		if err != nil || out.Count != i+1 {
			t.Fatalf("%d items in the index after %d writes, %v", out.Count, i+1, err)
		}
	}
}

// Many concurrent transactions on the same two items all succeed, and none of their additions is
// lost.
func testTransactionsWait(t *testing.T) {
	api := open(t, "", Options{}).DynamoDB()
	makeTable(t, api, "contended")
	add := func(pk string) types.TransactWriteItem {
		return types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String("contended"), Key: keyOf(pk), UpdateExpression: aws.String("ADD n :one"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		}}
	}
	const writers, each = 8, 20
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for range each {
				_, err := api.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
					TransactItems: []types.TransactWriteItem{add("a"), add("b")},
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	for _, pk := range []string{"a", "b"} {
		out, err := api.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("contended"), Key: keyOf(pk)})
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := out.Item["n"].(*types.AttributeValueMemberN); !ok || n.Value != fmt.Sprint(writers*each) {
			t.Errorf("%s counts %v", pk, out.Item["n"])
		}
	}
}

func testManyReadersOfAShard(t *testing.T) {
	db := open(t, "", Options{Shards: 1})
	makeTable(t, db.DynamoDB(), "read")
	list, err := db.Streams().ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: aws.String("read")})
	if err != nil {
		t.Fatal(err)
	}
	arn := list.Streams[0].StreamArn
	description, err := db.Streams().DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	if err != nil {
		t.Fatal(err)
	}
	iterator, err := db.Streams().GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: arn, ShardId: description.StreamDescription.Shards[0].ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for range 10 {
		running.Go(func() {
			for range 20 {
				_, err := db.Streams().GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterator.ShardIterator})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
}

func keyOf(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}
}
