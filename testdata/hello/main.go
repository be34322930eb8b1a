// Command hello is the smallest program with the library: it opens a database in memory and lists its
// tables. .ci/limits measures it.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
)

func main() {
	db, err := mayfly.Open("", mayfly.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	tables, err := db.DynamoDB().ListTables(context.Background(), &dynamodb.ListTablesInput{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("tables:", len(tables.TableNames))
}
