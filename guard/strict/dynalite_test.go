package strict_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/strict"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// TestDynalite checks another implementation, which does not return the item of a failed condition:
// behind the rules it is strict too.
func TestDynalite(t *testing.T) {
	url := testkit.Dynalite(t)
	now := start
	c := dynamodb.New(dial(url, clientPair).Options(), strict.Middleware(strict.Rules{Tables: map[string]string{"plain": "ttl"}, Now: func() time.Time { return now }}))
	plain := aws.String("plain")
	makeDynaliteTable(t, c)
	for _, it := range []item{{"pk": str("a"), "ttl": num("1767225601.5"), "g": str("x"), "n": num("7")}, {"pk": str("b"), "ttl": num("1767229200"), "g": str("x")}, {"pk": str("c"), "g": str("x")}} {
		if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: plain, Item: it}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		at   time.Duration
		want string
	}{{1499 * time.Millisecond, "a b c"}, {1500 * time.Millisecond, "b c"}} {
		now = start.Add(step.at)
		if got := dynaliteReads(t, c); got != step.want {
			t.Errorf("after %v: %s, want %s", step.at, got, step.want)
		}
	}
	_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: plain, Item: item{"pk": str("a")}, ConditionExpression: aws.String("attribute_exists(pk)")})
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); !ok {
		t.Errorf("a condition on what has expired: %v", err)
	}
	out, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: plain, Key: item{"pk": str("a")}, UpdateExpression: aws.String("ADD n :one"),
		ExpressionAttributeValues: item{":one": num("1")}, ReturnValues: types.ReturnValueAllNew})
	if err != nil || printed(out.Attributes) != `{"n":{"Value":"1"},"pk":{"Value":"a"}}` {
		t.Errorf("an update of what has expired: %v, %v", printed(out), err)
	}
	now = start.Add(2 * time.Hour)
	deleted, err := c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: plain, Key: item{"pk": str("b")}, ReturnValues: types.ReturnValueAllOld})
	if err != nil || deleted.Attributes != nil {
		t.Errorf("a deletion shows what had expired: %v, %v", deleted, err)
	}
}

func makeDynaliteTable(t *testing.T, c *dynamodb.Client) {
	t.Helper()
	key := func(name string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &name, KeyType: types.KeyTypeHash}}
	}
	throughput := &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(100), WriteCapacityUnits: aws.Int64(100)}
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: aws.String("plain"), KeySchema: key("pk"), ProvisionedThroughput: throughput,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("g"), AttributeType: "S"}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{IndexName: aws.String("keys"), KeySchema: key("g"), ProvisionedThroughput: throughput,
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(c).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("plain")}, time.Minute,
		func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond }); err != nil {
		t.Fatal(err)
	}
}

// dynaliteReads returns the keys that all kinds of reads return, and fails if they differ.
func dynaliteReads(t *testing.T, c *dynamodb.Client) string {
	t.Helper()
	plain := aws.String("plain")
	var gets, batch []item
	asked := types.KeysAndAttributes{ProjectionExpression: aws.String("pk")}
	for _, pk := range []string{"a", "b", "c"} {
		out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: plain, Key: item{"pk": str(pk)}, ProjectionExpression: aws.String("pk")})
		if err != nil {
			t.Fatal(err)
		}
		if out.Item != nil {
			gets = append(gets, out.Item)
		}
		asked.Keys = append(asked.Keys, item{"pk": str(pk)})
	}
	together, err := c.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"plain": asked}})
	if err != nil {
		t.Fatal(err)
	}
	batch = together.Responses["plain"]
	scan, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: plain})
	if err != nil {
		t.Fatal(err)
	}
	query, err := c.Query(t.Context(), &dynamodb.QueryInput{TableName: plain, IndexName: aws.String("keys"), KeyConditionExpression: aws.String("g = :x"), ExpressionAttributeValues: item{":x": str("x")}})
	if err != nil {
		t.Fatal(err)
	}
	want := keysOf(gets)
	for name, got := range map[string][]item{"batch": batch, "scan": scan.Items, "query": query.Items} {
		if keysOf(got) != want {
			t.Errorf("%s shows %s, and gets %s", name, keysOf(got), want)
		}
	}
	return want
}

func keysOf(items []item) string {
	var keys []string
	for _, it := range items {
		keys = append(keys, it["pk"].(*types.AttributeValueMemberS).Value)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}
