package mayfly_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	scaling "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
)

// A scaling policy acts after a restart, on the minutes from then on, and its activities are kept.
func TestScalingAfterRestart(t *testing.T) {
	dir := t.TempDir()
	const table = "orders"
	open := func() (*mayfly.DB, *applicationautoscaling.Client) {
		db, err := mayfly.Open(dir, mayfly.Options{ClockControl: mayfly.ClockControlOn, Start: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), Frozen: true})
		if err != nil {
			t.Fatal(err)
		}
		return db, applicationautoscaling.New(applicationautoscaling.Options{
			Region: "us-east-1", BaseEndpoint: aws.String("http://in.process"), Credentials: aws.AnonymousCredentials{}, HTTPClient: &http.Client{Transport: db.Transport()}})
	}
	db, client := open()
	_, err := db.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(table), ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(5)},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dimension := scaling.ScalableDimensionDynamoDBTableWriteCapacityUnits
	if _, err := client.RegisterScalableTarget(t.Context(), &applicationautoscaling.RegisterScalableTargetInput{
		ServiceNamespace: "dynamodb", ResourceId: aws.String("table/" + table), ScalableDimension: dimension, MinCapacity: aws.Int32(1), MaxCapacity: aws.Int32(40),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutScalingPolicy(t.Context(), &applicationautoscaling.PutScalingPolicyInput{
		PolicyName: aws.String("p"), ServiceNamespace: "dynamodb", ResourceId: aws.String("table/" + table), ScalableDimension: dimension, PolicyType: "TargetTrackingScaling",
		TargetTrackingScalingPolicyConfiguration: &scaling.TargetTrackingScalingPolicyConfiguration{TargetValue: aws.Float64(50),
			PredefinedMetricSpecification: &scaling.PredefinedMetricSpecification{PredefinedMetricType: "DynamoDBWriteCapacityUtilization"}},
	}); err != nil {
		t.Fatal(err)
	}
	minute := func() {
		t.Helper()
		for i := range 300 {
			put := &dynamodb.PutItemInput{TableName: aws.String(table), Item: map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}}}
			if _, err := db.DynamoDB().PutItem(t.Context(), put); err != nil {
				t.Fatal(err)
			}
		}
		if moved, err := db.Clock().Advance(t.Context(), time.Minute); err != nil || moved.Unfinished {
			t.Fatal(moved, err)
		}
	}
	want := func(units int64) {
		t.Helper()
		out, err := db.DynamoDB().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
		if err != nil || *out.Table.ProvisionedThroughput.WriteCapacityUnits != units {
			t.Errorf("%+v, %v; want %d", out.Table.ProvisionedThroughput, err, units)
		}
	}
	minute()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db, client = open()
	defer func() { db.Close() }()
	db.Clock().Freeze()
	minute()
	want(5) // the minute from before is forgotten
	minute()
	want(10)
	out, err := client.DescribeScalingActivities(t.Context(), &applicationautoscaling.DescribeScalingActivitiesInput{ServiceNamespace: "dynamodb"})
	if err != nil || len(out.ScalingActivities) != 1 {
		t.Errorf("activities %+v, %v", out, err)
	}
}
