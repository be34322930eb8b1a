package autoscale_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/autoscale"
)

var (
	begin  = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	writes = autoscale.Use{Table: "orders", Write: true}
)

const (
	namespace = "dynamodb"
	resource  = "table/orders"
	dimension = "dynamodb:table:WriteCapacityUnits"
)

// rig is a scaler without a worker: the test calls it for each minute. The table orders has 5 write
// units and a policy with a target of 50 %.
type rig struct {
	*autoscale.Scaler
	t     *testing.T
	db    *dynamodb.Client // of the test
	now   time.Time
	units float64 // consumed in each minute

	calls  []string                      // the scaler's operations on its table
	before func(op string, in any) error // is called before each operation of the scaler; nil: none
}

func newRig(t *testing.T) *rig {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{Start: begin, Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r := &rig{t: t, db: db.DynamoDB(), now: begin}
	watched := dynamodb.New(db.DynamoDB().Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clip(o.APIOptions), func(s *middleware.Stack) error {
			return s.Initialize.Add(middleware.InitializeMiddlewareFunc("test", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				op := middleware.GetOperationName(ctx)
				r.calls = append(r.calls, op)
				if r.before != nil {
					if err := r.before(op, in.Parameters); err != nil {
						return middleware.InitializeOutput{}, middleware.Metadata{}, err
					}
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
		})
	})
	r.Scaler = autoscale.New(autoscale.Options{
		DB: watched, Streams: db.Streams(), Now: func() time.Time { return r.now }, Region: "us-east-1", Account: "000000000000",
		Units: func(autoscale.Use, time.Time) float64 { return r.units }, Begun: func() bool { return false },
	})
	r.create(types.BillingModeProvisioned, &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(5)})
	r.register(dimension)
	return r
}

func (r *rig) create(mode types.BillingMode, units *types.ProvisionedThroughput) {
	r.t.Helper()
	_, err := r.db.CreateTable(r.t.Context(), &dynamodb.CreateTableInput{TableName: &writes.Table, BillingMode: mode, ProvisionedThroughput: units,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// register registers the table's target for a dimension, with a policy.
func (r *rig) register(dimension string) {
	r.t.Helper()
	_, err := r.RegisterScalableTarget(r.t.Context(), &autoscale.RegisterScalableTargetInput{ServiceNamespace: aws.String(namespace), ResourceId: aws.String(resource),
		ScalableDimension: &dimension, MinCapacity: aws.Int64(1), MaxCapacity: aws.Int64(100)})
	if err != nil {
		r.t.Fatal(err)
	}
	metric := "DynamoDBWriteCapacityUtilization"
	if strings.Contains(dimension, "Read") {
		metric = "DynamoDBReadCapacityUtilization"
	}
	_, err = r.PutScalingPolicy(r.t.Context(), &autoscale.PutScalingPolicyInput{PolicyName: aws.String("half|of it"), ServiceNamespace: aws.String(namespace),
		ResourceId: aws.String(resource), ScalableDimension: &dimension, PolicyType: aws.String("TargetTrackingScaling"),
		TargetTrackingScalingPolicyConfiguration: &autoscale.TargetTrackingConfiguration{TargetValue: aws.Float64(50),
			PredefinedMetricSpecification: &autoscale.PredefinedMetric{PredefinedMetricType: &metric}}})
	if err != nil {
		r.t.Fatal(err)
	}
}

// minutes lets minutes end.
func (r *rig) minutes(n int) {
	r.t.Helper()
	for range n {
		r.now = r.now.Add(time.Minute)
		if err := r.Evaluate(r.t.Context(), writes, r.now); err != nil {
			r.t.Fatal(err)
		}
	}
}

// activities returns the activities of a page as "status: message", the latest first, and the token
// of the next page.
func (r *rig) activities(resource *string, most int64, after *string) (texts []string, next *string) {
	r.t.Helper()
	out, err := r.DescribeScalingActivities(r.t.Context(), &autoscale.DescribeActivitiesInput{
		ServiceNamespace: aws.String(namespace), ResourceId: resource, MaxResults: &most, NextToken: after})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range out.ScalingActivities {
		texts = append(texts, a.StatusCode+": "+a.StatusMessage)
	}
	return texts, out.NextToken
}

func (r *rig) wantActivities(want ...string) {
	r.t.Helper()
	if got, _ := r.activities(aws.String(resource), 50, nil); !slices.Equal(got, want) {
		r.t.Errorf("activities\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A minute costs reads of single items, whatever else is stored.
func TestMinuteReadsItems(t *testing.T) {
	r := newRig(t)
	r.units = 60
	r.calls = nil
	r.minutes(1)
	if want := []string{"GetItem", "GetItem", "DescribeTable"}; !slices.Equal(r.calls, want) {
		t.Errorf("calls %v, want %v", r.calls, want)
	}
}

// A change that keeps failing is an activity each time its reason changes, and once an hour.
func TestFailedActivities(t *testing.T) {
	r := newRig(t)
	r.units = 300 // of 5 units a second
	failed := func(reason string) string {
		return "Failed: Failed to set write capacity units to 10. Reason: " + reason
	}
	refusal := error(&types.LimitExceededException{Message: aws.String("not now")})
	r.before = func(op string, _ any) error {
		if op == "UpdateTable" {
			return refusal
		}
		return nil
	}
	r.minutes(30)
	r.wantActivities(failed("LimitExceededException: not now"))
	refusal = &types.LimitExceededException{Message: aws.String("nor now")}
	r.minutes(30)
	r.wantActivities(failed("LimitExceededException: nor now"), failed("LimitExceededException: not now"))
	r.minutes(60)
	r.wantActivities(failed("LimitExceededException: nor now"), failed("LimitExceededException: nor now"), failed("LimitExceededException: not now"))
	r.before = nil
	r.minutes(1)
	if got, _ := r.activities(nil, 1, nil); !slices.Equal(got, []string{"Successful: Successfully set write capacity units to 10. Change successfully fulfilled by dynamodb."}) {
		t.Errorf("last activity %v", got)
	}
}

// A table that is deleted while its policy acts is no success. The policy stays, and acts on the next
// table of the name.
func TestDeletedMeanwhile(t *testing.T) {
	r := newRig(t)
	r.units = 300
	r.minutes(1)
	described := 0
	r.before = func(op string, _ any) error {
		if op == "DescribeTable" {
			if described++; described == 2 {
				_, err := r.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &writes.Table})
				return err
			}
		}
		return nil
	}
	r.minutes(1)
	r.before = nil
	const gone = "Failed: Failed to set write capacity units to 10. Reason: the table or index no longer exists, or is on demand"
	r.wantActivities(gone)
	r.minutes(3)
	r.create(types.BillingModeProvisioned, &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(5)})
	r.minutes(2)
	r.wantActivities("Successful: Successfully set write capacity units to 10. Change successfully fulfilled by dynamodb.", gone)
}

// A minute that is noticed after the next one does not move the timer back.
func TestMinutesOutOfOrder(t *testing.T) {
	r := newRig(t)
	for _, step := range []struct{ minute, want int }{{1, 2}, {3, 4}, {2, 4}, {3, 4}, {4, 5}} {
		r.Consumed(t.Context(), writes, begin.Add(time.Duration(step.minute)*time.Minute))
		if got, want := r.Armed(t.Context(), writes), fmt.Sprint(begin.Add(time.Duration(step.want)*time.Minute).Unix()); got != want {
			t.Errorf("after minute %d the timer is armed for %s, want %s", step.minute, got, want)
		}
	}
}

// Activities are listed in pages, the latest first, of all resources and of one.
func TestActivityPages(t *testing.T) {
	r := newRig(t)
	r.units = 300
	n := 0
	r.before = func(op string, _ any) error {
		if op == "UpdateTable" {
			n++
			return &types.LimitExceededException{Message: aws.String(fmt.Sprint(n))}
		}
		return nil
	}
	r.minutes(121) // 120 activities
	for _, of := range []*string{nil, aws.String(resource)} {
		r.calls = nil
		got, next := r.activities(of, 50, nil)
		if !slices.Equal(r.calls, []string{"Query"}) {
			t.Errorf("a page of activities needs the calls %v", r.calls)
		}
		for next != nil {
			var more []string
			more, next = r.activities(of, 7, next)
			got = append(got, more...)
		}
		if len(got) != 120 || !strings.HasSuffix(got[0], ": 120") || !strings.HasSuffix(got[119], ": 1") {
			t.Errorf("%d activities: %v", len(got), got)
		}
	}
	for _, none := range []string{"table/other", "", strings.Repeat("x", 3000)} {
		if got, _ := r.activities(&none, 50, nil); got != nil {
			t.Errorf("activities of %q: %v", none, got)
		}
	}
	for _, bad := range []string{"?", "", strings.Repeat("eHh4", 500), "_w"} {
		_, err := r.DescribeScalingActivities(t.Context(), &autoscale.DescribeActivitiesInput{ServiceNamespace: aws.String(namespace), NextToken: &bad})
		if err == nil || !strings.Contains(err.Error(), "token") {
			t.Errorf("token %q: %v", bad, err)
		}
	}
	if _, err := r.DescribeScalingActivities(t.Context(), &autoscale.DescribeActivitiesInput{ServiceNamespace: aws.String(namespace), NextToken: aws.String("eHh4")}); err != nil {
		t.Error(errors.Unwrap(err), err)
	}
}
