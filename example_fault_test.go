package mayfly_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
)

// Every third ListTables fails, and a client that does not retry sees it.
func ExampleFaultRule() {
	var rule mayfly.FaultRule
	if err := rule.UnmarshalText([]byte("ListTables every=3 error=InternalServerError")); err != nil {
		log.Fatal(err)
	}
	db, err := mayfly.Open("", mayfly.Options{Faults: []mayfly.FaultRule{rule}})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	once := func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
	for range 4 {
		_, err := db.DynamoDB().ListTables(context.Background(), &dynamodb.ListTablesInput{}, once)
		_, failed := errors.AsType[*types.InternalServerError](err)
		fmt.Println(failed)
	}
	fmt.Println(rule)
	// Output:
	// false
	// false
	// true
	// false
	// operation=ListTables every=3 error=InternalServerError
}
