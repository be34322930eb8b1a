package autoscale

import (
	"context"
	"net/http"
	"strings"

	"github.com/mayflydb/mayfly/internal/work/api"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Timestamp is an instant in ms since 1970, which answers have in seconds.
type Timestamp int64

// MarshalJSON returns the seconds as a number, with up to three decimals.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	return []byte(attr.SecondsText(timeOf(int64(t)))), nil
}

// SuspendedState says which scaling activities are suspended. Scheduled actions are not served.
type SuspendedState struct {
	DynamicScalingInSuspended  *bool
	DynamicScalingOutSuspended *bool
	ScheduledScalingSuspended  *bool
}

func (s *SuspendedState) in() bool {
	return s.DynamicScalingInSuspended != nil && *s.DynamicScalingInSuspended
}

func (s *SuspendedState) out() bool {
	return s.DynamicScalingOutSuspended != nil && *s.DynamicScalingOutSuspended
}

// filled returns the state with every member set.
func (s SuspendedState) filled() SuspendedState {
	for _, member := range []**bool{&s.DynamicScalingInSuspended, &s.DynamicScalingOutSuspended, &s.ScheduledScalingSuspended} {
		if *member == nil {
			*member = new(bool)
		}
	}
	return s
}

// ScalableTarget describes a target in answers.
type ScalableTarget struct {
	ServiceNamespace, ResourceId, ScalableDimension string
	MinCapacity, MaxCapacity                        int64
	RoleARN                                         string
	CreationTime                                    Timestamp
	SuspendedState                                  SuspendedState
	ScalableTargetARN                               string
}

// RegisterScalableTargetInput is the input of RegisterScalableTarget.
type RegisterScalableTargetInput struct {
	ServiceNamespace, ResourceId, ScalableDimension *string
	MinCapacity, MaxCapacity                        *int64
	RoleARN                                         *string
	SuspendedState                                  *SuspendedState
	Tags                                            map[string]string
}

// RegisterScalableTargetOutput is the answer.
type RegisterScalableTargetOutput struct{ ScalableTargetARN string }

// RegisterScalableTarget creates a target, or changes the members of one that are present. It checks the shape,
// the place, the bounds, and last the table.
func (s *Scaler) RegisterScalableTarget(ctx context.Context, in *RegisterScalableTargetInput) (*RegisterScalableTargetOutput, error) {
	var sh shape
	sh.text("roleARN", in.RoleARN, false, resourceMax)
	p, err := newPlace(&sh, in.ServiceNamespace, in.ResourceId, in.ScalableDimension)
	if err != nil {
		return nil, err
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	t := storedTarget{place: p}
	found, err := s.get(ctx, p.id(kindTarget, ""), &t)
	if err != nil {
		return nil, err
	}
	if !found {
		if in.MinCapacity == nil || in.MaxCapacity == nil {
			return nil, invalid("MinCapacity and MaxCapacity are required to register a new scalable target.")
		}
		if err := s.checkRoom(ctx, in.Tags); err != nil {
			return nil, err
		}
		t = storedTarget{
			place: p, Created: s.o.Now().UnixMilli(), Tags: in.Tags,
			ARN:  "arn:aws:application-autoscaling:" + s.o.Region + ":" + s.o.Account + ":scalable-target/" + strings.ReplaceAll(uuid(), "-", ""),
			Role: "arn:aws:iam::" + s.o.Account + ":role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/AWSServiceRoleForApplicationAutoScaling_DynamoDBTable",
		}
	}
	if err := in.change(&t); err != nil {
		return nil, err
	}
	if _, exists, err := s.capacity(ctx, p); err != nil || !exists {
		if err == nil {
			err = invalid("DynamoDB has no table or index with provisioned capacity for the resource ID: " + p.Resource)
		}
		return nil, err
	}
	if err := s.make(ctx); err != nil {
		return nil, err
	}
	return &RegisterScalableTargetOutput{t.ARN}, s.put(ctx, kindTarget, p, t)
}

// The most targets, as at Amazon for DynamoDB, and the most tags of one.
const (
	targetsMost = 5000
	tagsMost    = 50
)

// checkRoom refuses a new target beyond the limits.
func (s *Scaler) checkRoom(ctx context.Context, tags map[string]string) error {
	if len(tags) > tagsMost {
		return invalid("The collection Tags must not have a size greater than 50.")
	}
	targets, err := all[storedTarget](ctx, s, kindTarget)
	if err == nil && len(targets) >= targetsMost {
		err = &api.Error{Code: "LimitExceededException", Message: "The limit of 5000 scalable targets for dynamodb is reached.", Status: http.StatusBadRequest}
	}
	return err
}

// change sets the present members of a target, and checks its bounds.
func (in *RegisterScalableTargetInput) change(t *storedTarget) error {
	if in.MinCapacity != nil {
		t.Min = *in.MinCapacity
	}
	if in.MaxCapacity != nil {
		t.Max = *in.MaxCapacity
	}
	if in.RoleARN != nil {
		t.Role = *in.RoleARN
	}
	if in.SuspendedState != nil {
		t.Suspend = *in.SuspendedState
	}
	switch {
	case t.Min < 1:
		return invalid("Minimum capacity must be at least 1 for the scalable dimension " + t.Dimension + ".")
	case t.Max < t.Min:
		return invalid("Maximum capacity cannot be less than minimum capacity.")
	}
	return nil
}

// PlaceInput names one scalable target.
type PlaceInput struct{ ServiceNamespace, ResourceId, ScalableDimension *string }

// Nothing is an answer without members.
type Nothing struct{}

// DeregisterScalableTarget deletes a target with its policies. The capacity stays.
func (s *Scaler) DeregisterScalableTarget(ctx context.Context, in *PlaceInput) (*Nothing, error) {
	p, err := newPlace(&shape{}, in.ServiceNamespace, in.ResourceId, in.ScalableDimension)
	if err != nil {
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
		return nil, missing("No scalable target found for " + p.described())
	}
	if err := s.remove(ctx, p.id(kindPolicy, "")); err != nil {
		return nil, err
	}
	s.setWatched(p.use(), false)
	return &Nothing{}, s.remove(ctx, p.id(kindTarget, ""))
}

// DescribeScalableTargetsInput is the input of DescribeScalableTargets.
type DescribeScalableTargetsInput struct {
	ServiceNamespace  *string
	ResourceIds       []string
	ScalableDimension *string
	MaxResults        *int64
	NextToken         *string
}

// DescribeScalableTargetsOutput is a page of targets, by resource and dimension.
type DescribeScalableTargetsOutput struct {
	ScalableTargets []ScalableTarget
	NextToken       *string `json:",omitempty"`
}

// DescribeScalableTargets lists targets.
func (s *Scaler) DescribeScalableTargets(ctx context.Context, in *DescribeScalableTargetsInput) (*DescribeScalableTargetsOutput, error) {
	l, err := newListing(in.ServiceNamespace, in.ResourceIds, in.ScalableDimension, in.MaxResults, in.NextToken)
	if err != nil {
		return nil, err
	}
	found, err := all[storedTarget](ctx, s, kindTarget)
	if err != nil {
		return nil, err
	}
	page, next := pageOf(l, found, func(t *storedTarget) (place, string) { return t.place, "" })
	out := &DescribeScalableTargetsOutput{ScalableTargets: []ScalableTarget{}, NextToken: next}
	for i := range page {
		t := &page[i]
		out.ScalableTargets = append(out.ScalableTargets, ScalableTarget{
			namespace, t.Resource, t.Dimension, t.Min, t.Max, t.Role, Timestamp(t.Created), t.Suspend.filled(), t.ARN,
		})
	}
	return out, nil
}

// ListTagsInput is the input of ListTagsForResource.
type ListTagsInput struct{ ResourceARN *string }

// ListTagsOutput is the answer.
type ListTagsOutput struct{ Tags map[string]string }

// ListTagsForResource returns the tags with which a target was registered.
func (s *Scaler) ListTagsForResource(ctx context.Context, in *ListTagsInput) (*ListTagsOutput, error) {
	var sh shape
	sh.text("resourceARN", in.ResourceARN, true, 1011)
	if err := sh.err(); err != nil {
		return nil, err
	}
	targets, err := all[storedTarget](ctx, s, kindTarget)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		if t.ARN == *in.ResourceARN {
			if t.Tags == nil {
				t.Tags = map[string]string{}
			}
			return &ListTagsOutput{t.Tags}, nil
		}
	}
	return nil, unknownResource(*in.ResourceARN)
}
