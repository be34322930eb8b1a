package console_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// newTable makes a table with the key id, whose items expire at expires.
func (w *world) newTable(t testing.TB, name string) {
	t.Helper()
	ctx := t.Context()
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	}
	if _, err := w.db.CreateTable(ctx, in); err != nil {
		t.Fatal(err)
	}
	w.waitActive(t, name)
	if w.name == "dynalite" { // it has no TTL
		return
	}
	if _, err := w.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires"), Enabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
}

// waitActive waits until a table is active.
func (w *world) waitActive(t testing.TB, name string) {
	t.Helper()
	waiter := dynamodb.NewTableExistsWaiter(w.db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 20*time.Millisecond
	})
	if err := waiter.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute); err != nil {
		t.Fatal(err)
	}
}

// put puts an item with an attribute that is a number, such as a deadline.
func (w *world) put(t testing.TB, table, id string, expires int64) {
	t.Helper()
	w.putItem(t, table, map[string]types.AttributeValue{"id": text(id), "expires": number(expires)})
}

func (w *world) putItem(t testing.TB, table string, item map[string]types.AttributeValue) {
	t.Helper()
	if _, err := w.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
