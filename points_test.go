package mayfly

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/points"
)

// A provisioned table has levels from its creation until its deletion.
func TestLevelsOfTables(t *testing.T) {
	db, err := Open("", Options{Start: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), Frozen: true, ClockControl: ClockControlOn})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	level := func() string {
		now := db.engine.Points().Now() / 60_000
		return fmt.Sprint(db.engine.Points().Points(points.Key{Namespace: points.DynamoDB, Metric: points.ProvisionedReads, Table: "orders"}, now, now+1))
	}
	table, units := aws.String("orders"), func(n int64) *types.ProvisionedThroughput {
		return &types.ProvisionedThroughput{ReadCapacityUnits: &n, WriteCapacityUnits: &n}
	}
	_, err = db.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: table, ProvisionedThroughput: units(5),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
	})
	if got := level(); err != nil || got != fmt.Sprintf("[{%d 1 5 5 5}]", db.engine.Points().Now()/60_000) {
		t.Error(got, err)
	}
	_, err = db.DynamoDB().UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: table, ProvisionedThroughput: units(6)})
	if got := level(); err != nil || got != fmt.Sprintf("[{%d 1 6 6 6}]", db.engine.Points().Now()/60_000) {
		t.Error(got, err)
	}
	_, err = db.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: table})
	if got := level(); err != nil || got != "[]" {
		t.Error(got, err)
	}
}
