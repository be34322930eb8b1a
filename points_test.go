package mayfly

import (
	"fmt"
	"slices"
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

// Errors count in one metric, also those of faults.
func TestErrorsInPoints(t *testing.T) {
	db := open(t, "", Options{Frozen: true, Faults: []FaultRule{
		{Operation: "GetItem", Table: "internal", Error: "InternalServerError"},
		{Operation: "GetItem", Table: "rate", Error: "ThrottlingException"},
		{Operation: "GetItem", Table: "units", Error: "ProvisionedThroughputExceededException"},
		{Operation: "GetItem", Table: "account", Error: "RequestLimitExceeded"},
		{Operation: "GetItem", Table: "unavailable", Error: "ServiceUnavailable"},
	}})
	count := func(metric, table, operation string) (n float64) {
		for _, p := range db.engine.Points().Points(points.Key{Namespace: points.DynamoDB, Metric: metric, Table: table, Operation: operation}, points.Oldest, 1<<40) {
			n += p.Sum
		}
		return n
	}
	for _, c := range []struct {
		table                   string
		user, system, throttled float64
	}{
		{"internal", 0, 1, 0}, {"rate", 0, 0, 1}, {"units", 0, 0, 1}, {"account", 0, 0, 1}, {"unavailable", 0, 0, 0}, {"invalid", 1, 0, 0},
	} {
		makeTable(t, db.DynamoDB(), c.table)
		before := count(points.UserErrors, "", "")
		key := keyOf("a")
		if c.table == "invalid" {
			key = map[string]types.AttributeValue{"other": &types.AttributeValueMemberS{Value: "a"}}
		}
		_, err := db.DynamoDB().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &c.table, Key: key})
		if err == nil {
			t.Errorf("%s: no error", c.table)
		}
		got := []float64{count(points.UserErrors, "", "") - before, count(points.SystemErrors, c.table, "GetItem"), count(points.Throttled, c.table, "GetItem")}
		if want := []float64{c.user, c.system, c.throttled}; !slices.Equal(got, want) {
			t.Errorf("%s: %v user errors, system errors and throttled requests, want %v", c.table, got, want)
		}
	}
}
