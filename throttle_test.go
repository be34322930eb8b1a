package mayfly

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/conformance"
)

// The SDK reads the errors of throttling with their reasons, and its retries find room when the clock
// has moved on.
func TestThrottle(t *testing.T) {
	db := open(t, "", Options{Start: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Frozen: true, Throttle: true})
	url := serve(t, db)
	api := impatient(url)
	_, err := api.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:             aws.String("narrow"),
		AttributeDefinitions:  []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:             []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	put := func(options ...func(*dynamodb.Options)) error {
		_, err := api.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("narrow"), Item: keyOf("a")}, options...)
		return err
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	throttled, ok := errors.AsType[*types.ProvisionedThroughputExceededException](put())
	if !ok || len(throttled.ThrottlingReasons) != 1 || aws.ToString(throttled.ThrottlingReasons[0].Reason) != "TableWriteProvisionedThroughputExceeded" {
		t.Errorf("the second put of a second: %+v", throttled)
	}
	attempts := 0
	patient := retry.NewStandard(func(o *retry.StandardOptions) {
		o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) {
			attempts++
			_, err := db.Clock().Advance(t.Context(), time.Second)
			return 0, err
		})
	})
	if err := put(func(o *dynamodb.Options) { o.Retryer = patient }); err != nil || attempts != 1 {
		t.Errorf("with retries: %v after %d", err, attempts)
	}
	if _, text := send(t, "GET", url+"/metrics", ""); !strings.Contains(text, `mayfly_throttled_total{TableName="narrow",index="",kind="write"} 2`) {
		t.Errorf("the metrics lack two refused writes:\n%s", text)
	}
}

// impatient returns a client that tries once.
func impatient(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &url, Retryer: aws.NopRetryer{}, HTTPClient: conformance.HTTPClient(),
		Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
	})
}

// A rule fails the calls that it names, and no others. They have no effect.
func TestFaultRules(t *testing.T) {
	db := open(t, "", Options{Faults: []FaultRule{
		{Operation: "PutItem", Table: "orders", Every: 2, Error: "ProvisionedThroughputExceededException"},
		{Operation: "TransactWriteItems", Error: "TransactionCanceledException"},
		{Operation: "ListTables", Error: "InternalServerError"},
		{Operation: "Query", Table: "other", Error: "InternalServerError"},
	}})
	api := impatient(serve(t, db))
	makeTable(t, api, "orders")
	makeTable(t, api, "other")
	put := func(table, key string) error {
		_, err := api.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: keyOf(key)})
		return err
	}
	for i := range 6 {
		err := put("orders", fmt.Sprint(i))
		_, failed := errors.AsType[*types.ProvisionedThroughputExceededException](err)
		if failed != (i%2 == 1) || !failed && err != nil {
			t.Errorf("put %d: %v", i+1, err)
		}
		if err := put("other", fmt.Sprint(i)); err != nil {
			t.Errorf("another table: %v", err)
		}
	}
	scan, err := api.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("orders")})
	if err != nil || scan.Count != 3 {
		t.Errorf("%d items, %v; want the 3 of the calls that succeeded", scan.Count, err)
	}
	_, err = api.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String("orders"), Item: keyOf("x")}}, {Put: &types.Put{TableName: aws.String("other"), Item: keyOf("x")}},
	}})
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); !ok || len(cancelled.CancellationReasons) != 2 {
		t.Errorf("a transaction: %v", err)
	}
	if _, err := errors.AsType[*types.InternalServerError](listed(t, api)); !err {
		t.Error("ListTables succeeded")
	}
	// the table of an index
	_, err = api.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String("other"), IndexName: aws.String("missing"), KeyConditionExpression: aws.String("a = b")})
	if _, ok := errors.AsType[*types.InternalServerError](err); !ok {
		t.Errorf("a query of an index: %v", err)
	}
	// the rules hold for the client in this process too
	if _, err := errors.AsType[*types.InternalServerError](listed(t, db.DynamoDB())); !err {
		t.Error("ListTables in this process succeeded")
	}
}

func listed(t *testing.T, api *dynamodb.Client) error {
	_, err := api.ListTables(t.Context(), &dynamodb.ListTablesInput{}, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	return err
}
