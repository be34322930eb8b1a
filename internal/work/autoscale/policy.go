package autoscale

import "context"

// TargetTrackingConfiguration is the configuration of a policy. The cooldowns are stored without
// effect.
type TargetTrackingConfiguration struct {
	TargetValue                   *float64          `json:",omitempty"` // percent
	PredefinedMetricSpecification *PredefinedMetric `json:",omitempty"`
	CustomizedMetricSpecification *map[string]any   `json:",omitempty"`
	ScaleOutCooldown              *int64            `json:",omitempty"` // seconds
	ScaleInCooldown               *int64            `json:",omitempty"`
	DisableScaleIn                *bool             `json:",omitempty"`
}

// PredefinedMetric names the metric that a policy tracks.
type PredefinedMetric struct {
	PredefinedMetricType *string `json:",omitempty"`
	ResourceLabel        *string `json:",omitempty"`
}

func (c *TargetTrackingConfiguration) scaleInDisabled() bool {
	return c.DisableScaleIn != nil && *c.DisableScaleIn
}

// Alarm is an alarm of CloudWatch. The alarms here are none of those, so lists of them are empty.
type Alarm struct{ AlarmName, AlarmARN string }

// PutScalingPolicyInput is the input of PutScalingPolicy.
type PutScalingPolicyInput struct {
	PolicyName, ServiceNamespace, ResourceId, ScalableDimension *string
	PolicyType                                                  *string
	StepScalingPolicyConfiguration                              *map[string]any
	PredictiveScalingPolicyConfiguration                        *map[string]any
	TargetTrackingScalingPolicyConfiguration                    *TargetTrackingConfiguration
}

// PutScalingPolicyOutput is the answer.
type PutScalingPolicyOutput struct {
	PolicyARN string
	Alarms    []Alarm
}

const targetTracking = "TargetTrackingScaling"

// PutScalingPolicy creates the policy of a target, or replaces it. It checks the shape, the place,
// the policy, and last the target.
func (s *Scaler) PutScalingPolicy(ctx context.Context, in *PutScalingPolicyInput) (*PutScalingPolicyOutput, error) {
	var sh shape
	sh.text("policyName", in.PolicyName, true, nameMax)
	p, err := newPlace(&sh, in.ServiceNamespace, in.ResourceId, in.ScalableDimension)
	if err != nil {
		return nil, err
	}
	if err := in.check(p); err != nil {
		return nil, err
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	var t storedTarget
	found, err := s.get(ctx, p.id(kindTarget, ""), &t)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, missing("No scalable target registered for " + p.described())
	}
	policy, found, err := s.policyOf(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case found && policy.Name != *in.PolicyName:
		return nil, invalid("Only one TargetTrackingScaling policy for a given metric specification is allowed.")
	case !found:
		policy = storedPolicy{place: p, Name: *in.PolicyName, Created: s.o.Now().UnixMilli()}
		policy.ARN = "arn:aws:autoscaling:" + s.o.Region + ":" + s.o.Account + ":scalingPolicy:" + uuid() + ":resource/dynamodb/" + p.Resource + ":policyName/" + policy.Name
	}
	policy.Config = *in.TargetTrackingScalingPolicyConfiguration
	if err := s.put(ctx, kindPolicy, p, policy); err != nil {
		return nil, err
	}
	s.setWatched(p.use(), true)
	return &PutScalingPolicyOutput{policy.ARN, []Alarm{}}, nil
}

// check checks the type and the configuration of a policy.
func (in *PutScalingPolicyInput) check(p place) error {
	c := in.TargetTrackingScalingPolicyConfiguration
	metric := "DynamoDBReadCapacityUtilization"
	if p.use().Write {
		metric = "DynamoDBWriteCapacityUtilization"
	}
	switch {
	case in.PolicyType == nil || *in.PolicyType != targetTracking:
		return invalid("Unsupported policy type for dynamodb; tables have policies of the type TargetTrackingScaling only.")
	case in.StepScalingPolicyConfiguration != nil || in.PredictiveScalingPolicyConfiguration != nil || c == nil:
		return invalid("The policy type TargetTrackingScaling needs TargetTrackingScalingPolicyConfiguration, and no other configuration.")
	case c.CustomizedMetricSpecification != nil || c.PredefinedMetricSpecification == nil || c.PredefinedMetricSpecification.PredefinedMetricType == nil:
		return invalid("PredefinedMetricSpecification is required; mayfly tracks no customized metrics.")
	case *c.PredefinedMetricSpecification.PredefinedMetricType != metric:
		return invalid("The metric of a policy for the scalable dimension " + p.Dimension + " must be " + metric + ".")
	case c.TargetValue == nil || !(*c.TargetValue >= 20 && *c.TargetValue <= 90):
		return invalid("Target value must be between 20 and 90 for the metric " + metric + ".")
	}
	return nil
}

// DeletePolicyInput is the input of DeleteScalingPolicy.
type DeletePolicyInput struct{ PolicyName, ServiceNamespace, ResourceId, ScalableDimension *string }

// DeleteScalingPolicy deletes a policy. The capacity stays.
func (s *Scaler) DeleteScalingPolicy(ctx context.Context, in *DeletePolicyInput) (*Nothing, error) {
	var sh shape
	sh.text("policyName", in.PolicyName, true, nameMax)
	p, err := newPlace(&sh, in.ServiceNamespace, in.ResourceId, in.ScalableDimension)
	if err != nil {
		return nil, err
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	policy, found, err := s.policyOf(ctx, p)
	if err != nil {
		return nil, err
	}
	if !found || policy.Name != *in.PolicyName {
		return nil, missing("No scaling policy found for " + p.described() + ", policy name: " + *in.PolicyName)
	}
	s.setWatched(p.use(), false)
	return &Nothing{}, s.remove(ctx, p.id(kindPolicy, ""))
}

// ScalingPolicy describes a policy in answers.
type ScalingPolicy struct {
	PolicyARN, PolicyName, ServiceNamespace, ResourceId, ScalableDimension, PolicyType string
	TargetTrackingScalingPolicyConfiguration                                           TargetTrackingConfiguration
	Alarms                                                                             []Alarm
	CreationTime                                                                       Timestamp
}

// DescribePoliciesInput is the input of DescribeScalingPolicies.
type DescribePoliciesInput struct {
	PolicyNames                                     []string
	ServiceNamespace, ResourceId, ScalableDimension *string
	MaxResults                                      *int64
	NextToken                                       *string
}

// DescribePoliciesOutput is a page of policies, by resource and dimension.
type DescribePoliciesOutput struct {
	ScalingPolicies []ScalingPolicy
	NextToken       *string `json:",omitempty"`
}

// DescribeScalingPolicies lists policies.
func (s *Scaler) DescribeScalingPolicies(ctx context.Context, in *DescribePoliciesInput) (*DescribePoliciesOutput, error) {
	l, err := newListing(in.ServiceNamespace, one(in.ResourceId), in.ScalableDimension, in.MaxResults, in.NextToken)
	if err != nil {
		return nil, err
	}
	l.names = in.PolicyNames
	found, err := all[storedPolicy](ctx, s, kindPolicy)
	if err != nil {
		return nil, err
	}
	page, next := pageOf(l, found, func(p *storedPolicy) (place, string) { return p.place, p.Name })
	out := &DescribePoliciesOutput{ScalingPolicies: []ScalingPolicy{}, NextToken: next}
	for i := range page {
		p := &page[i]
		out.ScalingPolicies = append(out.ScalingPolicies, ScalingPolicy{
			p.ARN, p.Name, namespace, p.Resource, p.Dimension, targetTracking, p.Config, []Alarm{}, Timestamp(p.Created),
		})
	}
	return out, nil
}
