package mayfly

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	scaling "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Faults strike the calls of the program, also in process, and not the server's own calls on its
// types. These do not count either.
func TestFaultsSpareOwnWork(t *testing.T) {
	db := open(t, "", Options{Start: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), Frozen: true, ClockControl: ClockControlOn, Faults: []FaultRule{
		{Operation: "UpdateTable", Error: "InternalServerError"},
		{Operation: "DescribeTable", Every: 2, Error: "InternalServerError"},
	}})
	table := aws.String("orders")
	_, err := db.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: table, ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(5)},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := applicationautoscaling.New(applicationautoscaling.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://in.process"), Credentials: aws.AnonymousCredentials{}, HTTPClient: &http.Client{Transport: db.Transport()}})
	resource, dimension := aws.String("table/orders"), scaling.ScalableDimensionDynamoDBTableWriteCapacityUnits
	if _, err := client.RegisterScalableTarget(t.Context(), &applicationautoscaling.RegisterScalableTargetInput{
		ServiceNamespace: "dynamodb", ResourceId: resource, ScalableDimension: dimension, MinCapacity: aws.Int32(1), MaxCapacity: aws.Int32(40),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutScalingPolicy(t.Context(), &applicationautoscaling.PutScalingPolicyInput{
		PolicyName: aws.String("p"), ServiceNamespace: "dynamodb", ResourceId: resource, ScalableDimension: dimension, PolicyType: "TargetTrackingScaling",
		TargetTrackingScalingPolicyConfiguration: &scaling.TargetTrackingScalingPolicyConfiguration{TargetValue: aws.Float64(50),
			PredefinedMetricSpecification: &scaling.PredefinedMetricSpecification{PredefinedMetricType: "DynamoDBWriteCapacityUtilization"}},
	}); err != nil {
		t.Fatal(err)
	}
	calls := 0
	describe := func() (units int64) {
		t.Helper()
		calls++
		out, err := db.DynamoDB().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: table})
		if _, failed := errors.AsType[*types.InternalServerError](err); failed != (calls%2 == 0) {
			t.Errorf("call %d: %v", calls, err)
		}
		if err != nil {
			return 0
		}
		return *out.Table.ProvisionedThroughput.WriteCapacityUnits
	}
	for range 3 {
		for i := range 300 {
			if _, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}}}); err != nil {
				t.Fatal(err)
			}
		}
		if moved, err := db.Clock().Advance(t.Context(), time.Minute); err != nil || moved.Unfinished {
			t.Fatal(moved, err)
		}
		describe()
	}
	describe()
	if units := describe(); units != 10 {
		t.Errorf("%d write units, want the 10 of the policy", units)
	}
	_, err = db.DynamoDB().UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: table, DeletionProtectionEnabled: aws.Bool(true)})
	if _, failed := errors.AsType[*types.InternalServerError](err); !failed {
		t.Errorf("a change by the program: %v", err)
	}
}
