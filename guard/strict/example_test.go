package strict_test

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/guard/strict"
)

// A client whose tables show no expired items. Making one does not contact the endpoint.
func ExampleMiddleware() {
	config := aws.Config{Region: "eu-west-1"}
	db := dynamodb.NewFromConfig(config, strict.Middleware(strict.Rules{Tables: map[string]string{"sessions": "expires"}}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	_, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("sessions")})
	fmt.Println(err != nil)
	// Output: true
}
