package conformance_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/conformance"
)

// TestPeer stands for a test of yours: it holds an endpoint at a URL against the suite.
func ExampleExercise() {
	TestPeer := func(t *testing.T) {
		conformance.Exercise(t, func(t *testing.T) conformance.Endpoint {
			return conformance.Endpoint{
				DB: dynamodb.New(dynamodb.Options{
					BaseEndpoint: aws.String("http://127.0.0.1:8000"), Region: "us-east-1",
					Credentials: aws.AnonymousCredentials{}, HTTPClient: conformance.HTTPClient(),
				}),
				Known: map[string]string{"TransactWriteItems": "the endpoint has no transactions"},
			}
		})
	}
	_ = TestPeer
}

func ExampleHTTPClient() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"TableNames":["orders"]}`)
	}))
	defer server.Close()
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &server.URL, Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: conformance.HTTPClient(),
	})
	out, err := client.ListTables(context.Background(), &dynamodb.ListTablesInput{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.TableNames)
	// Output: [orders]
}

func ExampleStreamReader_Read() {
	ctx := context.Background()
	db, err := mayfly.Open("", mayfly.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	made, err := db.DynamoDB().CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly},
	})
	if err != nil {
		log.Fatal(err)
	}
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "1"}}
	if _, err := db.DynamoDB().PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: key}); err != nil {
		log.Fatal(err)
	}
	if _, err := db.DynamoDB().DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("orders"), Key: key}); err != nil {
		log.Fatal(err)
	}

	reader := conformance.StreamReader{Client: db.Streams(), StreamARN: *made.TableDescription.LatestStreamArn}
	records, err := reader.Read(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range records {
		fmt.Println(r.EventName)
	}
	// Output:
	// INSERT
	// REMOVE
}
