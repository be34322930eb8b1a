package scheduler

import (
	"context"
	"net/url"
)

// Request is a request of the scheduler's API.
type Request struct {
	Path   map[string]string    // unescaped segments of the path, by label
	Query  url.Values           // unescaped
	Header func(string) string  // returns the value of a header, or ""
	Decode func(into any) error // parses the body's JSON
	Region string               // of the signature; empty: unknown
}

// Operation is an operation of EventBridge Scheduler.
type Operation struct {
	Name   string
	Method string
	Path   string // a segment in braces is a label
	Do     func(ctx context.Context, r *Request) (any, error)
}

// Operations returns the table of EventBridge Scheduler's operations. To add one: a method, a file
// for it, a line here.
func (s *Scheduler) Operations() []Operation {
	return []Operation{
		{"CreateSchedule", "POST", "/schedules/{Name}", answer(s.CreateSchedule, (*CreateScheduleInput).fill)},
		{"UpdateSchedule", "PUT", "/schedules/{Name}", answer(s.UpdateSchedule, (*UpdateScheduleInput).fill)},
		{"GetSchedule", "GET", "/schedules/{Name}", answer(s.GetSchedule, (*GetScheduleInput).fill)},
		{"DeleteSchedule", "DELETE", "/schedules/{Name}", answer(s.DeleteSchedule, (*DeleteScheduleInput).fill)},
		{"ListSchedules", "GET", "/schedules", answer(s.ListSchedules, (*ListSchedulesInput).fill)},
		{"CreateScheduleGroup", "POST", "/schedule-groups/{Name}", answer(s.CreateScheduleGroup, (*CreateScheduleGroupInput).fill)},
		{"GetScheduleGroup", "GET", "/schedule-groups/{Name}", answer(s.GetScheduleGroup, (*GetScheduleGroupInput).fill)},
		{"DeleteScheduleGroup", "DELETE", "/schedule-groups/{Name}", answer(s.DeleteScheduleGroup, (*DeleteScheduleGroupInput).fill)},
		{"ListScheduleGroups", "GET", "/schedule-groups", answer(s.ListScheduleGroups, (*ListScheduleGroupsInput).fill)},
		{"ListTagsForResource", "GET", "/tags/{ResourceArn}", answer(s.ListTagsForResource, (*ListTagsForResourceInput).fill)},
		{"TagResource", "POST", "/tags/{ResourceArn}", answer(s.TagResource, (*TagResourceInput).fill)},
		{"UntagResource", "DELETE", "/tags/{ResourceArn}", answer(s.UntagResource, (*UntagResourceInput).fill)},
	}
}

// answer returns the function of an operation. fill completes the method's input from the request.
func answer[In, Out any](do func(context.Context, *In) (*Out, error), fill func(*In, *Request) error) func(context.Context, *Request) (any, error) {
	return func(ctx context.Context, r *Request) (any, error) {
		in := new(In)
		if err := fill(in, r); err != nil {
			return nil, err
		}
		out, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}

// query returns a parameter of the query; nil if it is missing.
func (r *Request) query(name string) *string {
	if !r.Query.Has(name) {
		return nil
	}
	return ref(r.Query.Get(name))
}

func (in *ScheduleInput) fill(r *Request) error {
	if err := r.Decode(in); err != nil {
		return err
	}
	in.Name, in.CatchUp, in.Region = r.Path["Name"], r.Header(headerCatchUp), r.Region
	return nil
}

func (in *CreateScheduleInput) fill(r *Request) error { return (*ScheduleInput)(in).fill(r) }
func (in *UpdateScheduleInput) fill(r *Request) error { return (*ScheduleInput)(in).fill(r) }

func (in *GetScheduleInput) fill(r *Request) error {
	*in = GetScheduleInput{Name: r.Path["Name"], GroupName: r.query("groupName")}
	return nil
}

func (in *DeleteScheduleInput) fill(r *Request) error {
	*in = DeleteScheduleInput{Name: r.Path["Name"], GroupName: r.query("groupName"), ClientToken: r.query("clientToken")}
	return nil
}

func (in *ListSchedulesInput) fill(r *Request) error {
	*in = ListSchedulesInput{
		ScheduleGroup: r.query("ScheduleGroup"), NamePrefix: r.query("NamePrefix"), State: r.query("State"),
		MaxResults: r.query("MaxResults"), NextToken: r.query("NextToken"),
	}
	return nil
}

func (in *CreateScheduleGroupInput) fill(r *Request) error {
	err := r.Decode(in)
	in.Name = r.Path["Name"]
	return err
}

func (in *GetScheduleGroupInput) fill(r *Request) error {
	in.Name = r.Path["Name"]
	return nil
}

func (in *DeleteScheduleGroupInput) fill(r *Request) error {
	*in = DeleteScheduleGroupInput{Name: r.Path["Name"], ClientToken: r.query("clientToken")}
	return nil
}

func (in *ListScheduleGroupsInput) fill(r *Request) error {
	*in = ListScheduleGroupsInput{NamePrefix: r.query("NamePrefix"), MaxResults: r.query("MaxResults"), NextToken: r.query("NextToken")}
	return nil
}

func (in *ListTagsForResourceInput) fill(r *Request) error {
	in.ResourceArn = r.Path["ResourceArn"]
	return nil
}

func (in *TagResourceInput) fill(r *Request) error {
	err := r.Decode(in)
	in.ResourceArn = r.Path["ResourceArn"]
	return err
}

func (in *UntagResourceInput) fill(r *Request) error {
	*in = UntagResourceInput{ResourceArn: r.Path["ResourceArn"], TagKeys: r.Query["TagKeys"]}
	return nil
}

// Action is an operation on classic rules: POST / with X-Amz-Target AWSEvents.<Name>.
type Action struct {
	Name string
	Do   func(ctx context.Context, r *Request) (any, error)
}

// Actions returns the table of the operations on classic rules.
func (s *Scheduler) Actions() []Action {
	return []Action{
		{"PutRule", act(s.PutRule)},
		{"DescribeRule", act(s.DescribeRule)},
		{"DeleteRule", act(s.DeleteRule)},
		{"EnableRule", act(s.EnableRule)},
		{"DisableRule", act(s.DisableRule)},
		{"ListRules", act(s.ListRules)},
		{"ListRuleNamesByTarget", act(s.ListRuleNamesByTarget)},
		{"PutTargets", act(s.PutTargets)},
		{"RemoveTargets", act(s.RemoveTargets)},
		{"ListTargetsByRule", act(s.ListTargetsByRule)},
		{"TagResource", act(s.TagRule)},
		{"UntagResource", act(s.UntagRule)},
		{"ListTagsForResource", act(s.ListTagsOfRule)},
	}
}

// act returns the function of an action. The body is the method's input.
func act[In, Out any](do func(context.Context, *In) (*Out, error)) func(context.Context, *Request) (any, error) {
	return answer(do, func(in *In, r *Request) error { return r.Decode(in) })
}
