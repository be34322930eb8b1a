package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	scaling "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var (
	// scalableTargetChecks test the operations on scalable targets.
	scalableTargetChecks = []check{
		{"RegisterAndDescribe", targetRegister},
		{"Change", targetChange},
		{"Pages", targetPages},
		{"Deregister", targetDeregister},
		{"Refused", targetRefused},
		{"Tags", targetTags},
	}
	// scalingPolicyChecks test the operations on policies.
	scalingPolicyChecks = []check{
		{"PutAndDescribe", scalingPut},
		{"Delete", scalingDelete},
		{"Refused", scalingRefused},
	}
	// trackingChecks move the clock, and look at what a policy does.
	trackingChecks = []check{
		{"OutAndIn", trackingOutAndIn},
		{"Bounds", trackingBounds},
		{"Index", trackingIndex},
		{"Suspended", trackingSuspended},
		{"Idle", trackingIdle},
		{"Deleted", trackingDeleted},
	}
)

const objectNotFound = "ObjectNotFoundException"

// scaled is a table's dimension with a scalable target.
type scaled struct {
	*table
	resource  string
	dimension scaling.ScalableDimension
}

// newScaled registers a target for the writes of a new table with 5 units of each kind.
func newScaled(t *testing.T, e *Endpoint, least, most int32, options ...tableOption) *scaled {
	t.Helper()
	tb := newTable(t, e, "pk:S", append([]tableOption{provisioned(5, 5)}, options...)...)
	s := &scaled{tb, "table/" + tb.name, scaling.ScalableDimensionDynamoDBTableWriteCapacityUnits}
	s.register(t, least, most)
	return s
}

// register registers the target, until the check ends.
func (s *scaled) register(t *testing.T, least, most int32) (arn string) {
	t.Helper()
	out, err := s.Scaling.RegisterScalableTarget(t.Context(), &applicationautoscaling.RegisterScalableTargetInput{
		ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceId: &s.resource, ScalableDimension: s.dimension, MinCapacity: &least, MaxCapacity: &most,
	})
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	t.Cleanup(func() {
		if _, err := s.deregister(context.Background()); err != nil {
			if _, missing := errors.AsType[*scaling.ObjectNotFoundException](err); !missing {
				t.Errorf("deregister: %v", err)
			}
		}
	})
	return aws.ToString(out.ScalableTargetARN)
}

func (s *scaled) deregister(ctx context.Context) (*applicationautoscaling.DeregisterScalableTargetOutput, error) {
	return s.Scaling.DeregisterScalableTarget(ctx, &applicationautoscaling.DeregisterScalableTargetInput{
		ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceId: &s.resource, ScalableDimension: s.dimension})
}

// usual returns the request for a policy with a target of 50 %.
func (s *scaled) usual(name string) *applicationautoscaling.PutScalingPolicyInput {
	metric := scaling.MetricTypeDynamoDBWriteCapacityUtilization
	return &applicationautoscaling.PutScalingPolicyInput{
		PolicyName: &name, ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceId: &s.resource, ScalableDimension: s.dimension,
		PolicyType: scaling.PolicyTypeTargetTrackingScaling,
		TargetTrackingScalingPolicyConfiguration: &scaling.TargetTrackingScalingPolicyConfiguration{
			TargetValue: aws.Float64(50), PredefinedMetricSpecification: &scaling.PredefinedMetricSpecification{PredefinedMetricType: metric},
		},
	}
}

func (s *scaled) policy(t *testing.T) {
	t.Helper()
	if _, err := s.Scaling.PutScalingPolicy(t.Context(), s.usual("track")); err != nil {
		t.Fatalf("put policy: %v", err)
	}
}

// targets returns the table's targets as texts.
func (s *scaled) targets(t *testing.T) (all []string) {
	t.Helper()
	out, err := s.Scaling.DescribeScalableTargets(t.Context(), &applicationautoscaling.DescribeScalableTargetsInput{
		ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceIds: []string{s.resource}})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range out.ScalableTargets {
		all = append(all, fmt.Sprintf("%s %d-%d", x.ScalableDimension, *x.MinCapacity, *x.MaxCapacity))
	}
	return all
}

func targetRegister(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 5, 100)
	out, err := e.Scaling.DescribeScalableTargets(t.Context(), &applicationautoscaling.DescribeScalableTargetsInput{
		ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceIds: []string{s.resource}, ScalableDimension: s.dimension})
	if err != nil || len(out.ScalableTargets) != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
	x := out.ScalableTargets[0]
	if x.ServiceNamespace != "dynamodb" || *x.ResourceId != s.resource || aws.ToString(x.RoleARN) == "" || aws.ToString(x.ScalableTargetARN) == "" ||
		x.CreationTime.Sub(e.now()).Abs() > time.Hour || *x.SuspendedState.DynamicScalingInSuspended {
		t.Errorf("target %+v", x)
	}
}

// A registered target changes by its given members only.
func targetChange(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 5, 100)
	_, err := e.Scaling.RegisterScalableTarget(t.Context(), &applicationautoscaling.RegisterScalableTargetInput{
		ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceId: &s.resource, ScalableDimension: s.dimension, MaxCapacity: aws.Int32(50)})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "targets", s.targets(t), []string{"dynamodb:table:WriteCapacityUnits 5-50"})
}

func targetPages(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 5, 100)
	reads := *s
	reads.dimension = scaling.ScalableDimensionDynamoDBTableReadCapacityUnits
	reads.register(t, 1, 2)
	var got []string
	pages := applicationautoscaling.NewDescribeScalableTargetsPaginator(e.Scaling, &applicationautoscaling.DescribeScalableTargetsInput{
		ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceIds: []string{s.resource}, MaxResults: aws.Int32(1)})
	for pages.HasMorePages() {
		out, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range out.ScalableTargets {
			got = append(got, string(x.ScalableDimension))
		}
	}
	same(t, "dimensions", got, []string{"dynamodb:table:ReadCapacityUnits", "dynamodb:table:WriteCapacityUnits"})
}

// A target's policies end with it.
func targetDeregister(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 5, 100)
	s.policy(t)
	if _, err := s.deregister(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "targets", s.targets(t), []string(nil))
	out, err := e.Scaling.DescribeScalingPolicies(t.Context(), &applicationautoscaling.DescribeScalingPoliciesInput{ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceId: &s.resource})
	if err != nil || len(out.ScalingPolicies) != 0 {
		t.Errorf("policies: %+v, %v", out, err)
	}
	_, err = s.deregister(t.Context())
	wantError(t, err, objectNotFound, "No scalable target found for service namespace: dynamodb, resource ID: "+s.resource+", scalable dimension: dynamodb:table:WriteCapacityUnits")
}

func targetRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", provisioned(5, 5))
	onDemand := newTable(t, e, "pk:S")
	for what, change := range map[string]func(*applicationautoscaling.RegisterScalableTargetInput){
		"no bounds":      func(in *applicationautoscaling.RegisterScalableTargetInput) { in.MinCapacity = nil },
		"crossed bounds": func(in *applicationautoscaling.RegisterScalableTargetInput) { in.MinCapacity = aws.Int32(11) },
		"nothing":        func(in *applicationautoscaling.RegisterScalableTargetInput) { in.MinCapacity = aws.Int32(0) },
		"another API":    func(in *applicationautoscaling.RegisterScalableTargetInput) { in.ServiceNamespace = "ecs" },
		"no table": func(in *applicationautoscaling.RegisterScalableTargetInput) {
			in.ResourceId = aws.String("table/none-at-all")
		},
		"no resource": func(in *applicationautoscaling.RegisterScalableTargetInput) { in.ResourceId = aws.String("none") },
		"no index": func(in *applicationautoscaling.RegisterScalableTargetInput) {
			in.ResourceId = aws.String(*in.ResourceId + "/index/none")
		},
		"of an index": func(in *applicationautoscaling.RegisterScalableTargetInput) {
			in.ScalableDimension = "dynamodb:index:ReadCapacityUnits"
		},
		"a dimension": func(in *applicationautoscaling.RegisterScalableTargetInput) {
			in.ScalableDimension = "dynamodb:table:Items"
		},
		"on demand": func(in *applicationautoscaling.RegisterScalableTargetInput) {
			in.ResourceId = aws.String("table/" + onDemand.name)
		},
	} {
		in := &applicationautoscaling.RegisterScalableTargetInput{
			ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceId: aws.String("table/" + tb.name),
			ScalableDimension: scaling.ScalableDimensionDynamoDBTableReadCapacityUnits, MinCapacity: aws.Int32(1), MaxCapacity: aws.Int32(10),
		}
		change(in)
		_, err := e.Scaling.RegisterScalableTarget(t.Context(), in)
		if problem := errorProblem(err, validation, ""); problem != "" {
			t.Errorf("%s:\n%s", what, problem)
		}
	}
	_, err := e.Scaling.DescribeScalableTargets(t.Context(), &applicationautoscaling.DescribeScalableTargetsInput{ServiceNamespace: scaling.ServiceNamespaceDynamodb, NextToken: aws.String("?")})
	wantError(t, err, "InvalidNextTokenException", "")
	_, err = e.Scaling.DescribeScalableTargets(t.Context(), &applicationautoscaling.DescribeScalableTargetsInput{ServiceNamespace: scaling.ServiceNamespaceDynamodb, MaxResults: aws.Int32(51)})
	wantError(t, err, validation, "")
}

func targetTags(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", provisioned(5, 5))
	s := &scaled{tb, "table/" + tb.name, scaling.ScalableDimensionDynamoDBTableReadCapacityUnits}
	out, err := e.Scaling.RegisterScalableTarget(t.Context(), &applicationautoscaling.RegisterScalableTargetInput{
		ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceId: &s.resource, ScalableDimension: s.dimension,
		MinCapacity: aws.Int32(1), MaxCapacity: aws.Int32(10), Tags: map[string]string{"team": "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.deregister(context.Background())
	tags, err := e.Scaling.ListTagsForResource(t.Context(), &applicationautoscaling.ListTagsForResourceInput{ResourceARN: out.ScalableTargetARN})
	if err != nil || tags.Tags["team"] != "a" {
		t.Errorf("tags %+v, %v", tags, err)
	}
	_, err = e.Scaling.ListTagsForResource(t.Context(), &applicationautoscaling.ListTagsForResourceInput{ResourceARN: aws.String(*out.ScalableTargetARN + "0")})
	wantError(t, err, notFound, "")
}

func scalingPut(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 5, 100)
	s.policy(t)
	in := s.usual("track")
	in.TargetTrackingScalingPolicyConfiguration.TargetValue = aws.Float64(70.5)
	in.TargetTrackingScalingPolicyConfiguration.ScaleInCooldown = aws.Int32(60)
	put, err := e.Scaling.PutScalingPolicy(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Scaling.DescribeScalingPolicies(t.Context(), &applicationautoscaling.DescribeScalingPoliciesInput{
		ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceId: &s.resource, PolicyNames: []string{"track", "other"}})
	if err != nil || len(out.ScalingPolicies) != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
	p := out.ScalingPolicies[0]
	c := p.TargetTrackingScalingPolicyConfiguration
	if *p.PolicyARN != *put.PolicyARN || p.PolicyType != "TargetTrackingScaling" || *c.TargetValue != 70.5 || *c.ScaleInCooldown != 60 ||
		c.PredefinedMetricSpecification.PredefinedMetricType != "DynamoDBWriteCapacityUtilization" {
		t.Errorf("policy %+v", p)
	}
}

func scalingDelete(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 5, 100)
	s.policy(t)
	remove := func() error {
		_, err := e.Scaling.DeleteScalingPolicy(t.Context(), &applicationautoscaling.DeleteScalingPolicyInput{
			PolicyName: aws.String("track"), ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceId: &s.resource, ScalableDimension: s.dimension})
		return err
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	wantError(t, remove(), objectNotFound, "No scaling policy found for …, policy name: track")
}

func scalingRefused(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 5, 100)
	s.policy(t)
	type input = applicationautoscaling.PutScalingPolicyInput
	for what, c := range map[string]struct {
		change func(in *input)
		code   string
	}{
		"a second policy": {func(in *input) { in.PolicyName = aws.String("other") }, validation},
		"step scaling":    {func(in *input) { in.PolicyType = scaling.PolicyTypeStepScaling }, validation},
		"no type":         {func(in *input) { in.PolicyType = "" }, validation},
		"no metric":       {func(in *input) { in.TargetTrackingScalingPolicyConfiguration.PredefinedMetricSpecification = nil }, validation},
		"the other metric": {func(in *input) {
			in.TargetTrackingScalingPolicyConfiguration.PredefinedMetricSpecification.PredefinedMetricType = scaling.MetricTypeDynamoDBReadCapacityUtilization
		}, validation},
		"a low target":  {func(in *input) { in.TargetTrackingScalingPolicyConfiguration.TargetValue = aws.Float64(19.9) }, validation},
		"a high target": {func(in *input) { in.TargetTrackingScalingPolicyConfiguration.TargetValue = aws.Float64(90.1) }, validation},
		"no target": {func(in *input) {
			in.ScalableDimension = scaling.ScalableDimensionDynamoDBTableReadCapacityUnits
			in.TargetTrackingScalingPolicyConfiguration.PredefinedMetricSpecification.PredefinedMetricType = scaling.MetricTypeDynamoDBReadCapacityUtilization
		}, objectNotFound},
	} {
		in := s.usual("track")
		c.change(in)
		_, err := e.Scaling.PutScalingPolicy(t.Context(), in)
		if problem := errorProblem(err, c.code, ""); problem != "" {
			t.Errorf("%s:\n%s", what, problem)
		}
	}
}

// load consumes units of writes in the present minute, and then moves into the middle of the next.
func (s *scaled) load(t *testing.T, units int) {
	t.Helper()
	s.loadIndexed(t, units, "")
	newMeter(s.Endpoint).nextMinute()
}

// loadIndexed writes items of one unit, with an attribute g unless it is empty.
func (s *scaled) loadIndexed(t *testing.T, units int, g string) {
	t.Helper()
	for batch := 0; batch < units; batch += 25 {
		var requests []types.WriteRequest
		for i := batch; i < min(units, batch+25); i++ {
			it := item("pk", fmt.Sprint(s.now().UnixMilli(), i))
			if g != "" {
				it["g"] = value(g)
			}
			requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
		}
		if _, err := s.DB.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{s.name: requests}}); err != nil {
			t.Fatal(err)
		}
	}
}

// wantWrites compares the provisioned write capacity.
func (s *scaled) wantWrites(t *testing.T, want int64) {
	t.Helper()
	if got := *s.awaitActive(t).ProvisionedThroughput.WriteCapacityUnits; got != want {
		t.Errorf("%d write units, want %d", got, want)
	}
}

// Two minutes above the target raise the capacity to consumption by target; fifteen minutes far
// below it lower it.
func trackingOutAndIn(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 2, 100)
	s.policy(t)
	newMeter(e).nextMinute()
	s.load(t, 300) // 5 units a second
	s.wantWrites(t, 5)
	s.load(t, 270)
	s.wantWrites(t, 10)
	for range 14 {
		s.load(t, 30)
	}
	s.wantWrites(t, 10)
	s.load(t, 30)
	s.wantWrites(t, 2)
	out, err := e.Scaling.DescribeScalingActivities(t.Context(), &applicationautoscaling.DescribeScalingActivitiesInput{
		ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceId: &s.resource})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range out.ScalingActivities {
		got = append(got, *a.Description+" "+string(a.StatusCode))
	}
	same(t, "activities", got, []string{"Setting write capacity units to 2. Successful", "Setting write capacity units to 10. Successful"})
}

func trackingBounds(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 4, 7)
	s.policy(t)
	newMeter(e).nextMinute()
	for range 4 {
		s.load(t, 600)
	}
	s.wantWrites(t, 7)
	for range 16 {
		s.load(t, 1)
	}
	s.wantWrites(t, 4)
}

// An index has its own target, and its table's capacity stays.
func trackingIndex(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", provisioned(50, 50), global("byG", "g:S", "ALL"), func(in *dynamodb.CreateTableInput) {
		in.GlobalSecondaryIndexes[0].ProvisionedThroughput = in.ProvisionedThroughput
		in.GlobalSecondaryIndexes[0].ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(3), WriteCapacityUnits: aws.Int64(3)}
	})
	s := &scaled{tb, "table/" + tb.name + "/index/byG", scaling.ScalableDimensionDynamoDBIndexWriteCapacityUnits}
	s.register(t, 1, 50)
	s.policy(t)
	m := newMeter(e)
	m.nextMinute()
	for range 2 {
		s.loadIndexed(t, 240, "x")
		m.nextMinute()
	}
	d := s.awaitActive(t)
	same(t, "capacity", []int64{*d.ProvisionedThroughput.WriteCapacityUnits, *d.GlobalSecondaryIndexes[0].ProvisionedThroughput.WriteCapacityUnits, *d.GlobalSecondaryIndexes[0].ProvisionedThroughput.ReadCapacityUnits},
		[]int64{50, 8, 3})
}

func trackingSuspended(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 2, 100)
	s.policy(t)
	suspend := func(on bool) {
		_, err := e.Scaling.RegisterScalableTarget(t.Context(), &applicationautoscaling.RegisterScalableTargetInput{
			ServiceNamespace: scaling.ServiceNamespaceDynamodb, ResourceId: &s.resource, ScalableDimension: s.dimension,
			SuspendedState: &scaling.SuspendedState{DynamicScalingOutSuspended: &on}})
		if err != nil {
			t.Fatal(err)
		}
	}
	suspend(true)
	newMeter(e).nextMinute()
	for range 3 {
		s.load(t, 300)
	}
	s.wantWrites(t, 5)
	suspend(false)
	s.load(t, 300)
	s.wantWrites(t, 10)
}

// A table whose consumption ends keeps its capacity. When it is used again, the time between counts.
func trackingIdle(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 1, 100)
	s.policy(t)
	newMeter(e).nextMinute()
	s.load(t, 60)
	e.Advance(2 * time.Hour)
	s.wantWrites(t, 5)
	s.load(t, 60)
	s.wantWrites(t, 2)
}

// A policy without its table does nothing, and acts on the next table of that name.
func trackingDeleted(t *testing.T, e *Endpoint) {
	s := newScaled(t, e, 2, 100)
	s.policy(t)
	newMeter(e).nextMinute()
	s.loadIndexed(t, 10, "")
	deleteTable(t, e, s.name)
	newMeter(e).nextMinute()
	in := &dynamodb.CreateTableInput{TableName: &s.name}
	in.KeySchema = keySchema(in, "pk:S")
	provisioned(5, 5)(in)
	create(t, e, in)
	for range 3 {
		s.load(t, 300)
	}
	s.wantWrites(t, 10)
}
