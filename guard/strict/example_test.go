package strict_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/strict"
)

// A client that does not see expired items, although the endpoint still returns them.
func ExampleMiddleware() {
	db := openWithExpiredSession()
	defer db.Close()
	rules := strict.Rules{Tables: map[string]string{"sessions": "expires"}, Now: db.Clock().Now}
	client := dynamodb.New(db.DynamoDB().Options(), strict.Middleware(rules))
	fmt.Println("endpoint:", countSessions(db.DynamoDB()), "client:", countSessions(client))
	// Output: endpoint: 1 client: 0
}

// A client from a configuration of the SDK.
func ExampleMiddleware_config() {
	config := aws.Config{Region: "eu-west-1"}
	db := dynamodb.NewFromConfig(config, strict.Middleware(strict.Rules{Tables: map[string]string{"sessions": "expires"}}))
	fmt.Println(db.Options().Region)
	// Output: eu-west-1
}

// A proxy whose clients, in any language, do not see expired items. It signs requests to the
// endpoint with its own credentials.
func ExampleNewProxy() {
	db := openWithExpiredSession()
	defer db.Close()
	endpoint := httptest.NewServer(db.Handler())
	defer endpoint.Close()
	proxy, err := strict.NewProxy(strict.ProxyOptions{
		Rules:       strict.Rules{Tables: map[string]string{"sessions": "expires"}, Now: db.Clock().Now},
		Endpoint:    endpoint.URL,
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(proxy)
	defer server.Close()
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(server.URL),
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
	fmt.Println("endpoint:", countSessions(db.DynamoDB()), "client:", countSessions(client))
	// Output: endpoint: 1 client: 0
}

// openWithExpiredSession returns a database that keeps expired items, as Amazon's does for a while,
// and has one.
func openWithExpiredSession() *mayfly.DB {
	db, err := mayfly.Open("", lateOptions)
	if err != nil {
		log.Fatal(err)
	}
	ctx, c := context.Background(), db.DynamoDB()
	_, err = c.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("sessions"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("sessions"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires"), Enabled: aws.Bool(true)},
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("sessions"), Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "a"}, "expires": num(fmt.Sprint(start.Unix() - 1)),
	}})
	if err != nil {
		log.Fatal(err)
	}
	return db
}

func countSessions(c *dynamodb.Client) int32 {
	out, err := c.Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String("sessions")})
	if err != nil {
		log.Fatal(err)
	}
	return out.Count
}
