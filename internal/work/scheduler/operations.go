package scheduler

import "github.com/mayflydb/mayfly/internal/work/api"

// Operations returns the table of EventBridge Scheduler's operations. To add one: a method, a file
// for it, a line here.
func (s *Scheduler) Operations() []api.Operation {
	return []api.Operation{
		{Name: "CreateSchedule", Method: "POST", Path: "/schedules/{Name}", Do: api.Bind(s.CreateSchedule)},
		{Name: "UpdateSchedule", Method: "PUT", Path: "/schedules/{Name}", Do: api.Bind(s.UpdateSchedule)},
		{Name: "GetSchedule", Method: "GET", Path: "/schedules/{Name}", Do: api.Bind(s.GetSchedule)},
		{Name: "DeleteSchedule", Method: "DELETE", Path: "/schedules/{Name}", Do: api.Bind(s.DeleteSchedule)},
		{Name: "ListSchedules", Method: "GET", Path: "/schedules", Do: api.Bind(s.ListSchedules)},
		{Name: "CreateScheduleGroup", Method: "POST", Path: "/schedule-groups/{Name}", Do: api.Bind(s.CreateScheduleGroup)},
		{Name: "GetScheduleGroup", Method: "GET", Path: "/schedule-groups/{Name}", Do: api.Bind(s.GetScheduleGroup)},
		{Name: "DeleteScheduleGroup", Method: "DELETE", Path: "/schedule-groups/{Name}", Do: api.Bind(s.DeleteScheduleGroup)},
		{Name: "ListScheduleGroups", Method: "GET", Path: "/schedule-groups", Do: api.Bind(s.ListScheduleGroups)},
		{Name: "ListTagsForResource", Method: "GET", Path: "/tags/{ResourceArn}", Do: api.Bind(s.ListTagsForResource)},
		{Name: "TagResource", Method: "POST", Path: "/tags/{ResourceArn}", Do: api.Bind(s.TagResource)},
		{Name: "UntagResource", Method: "DELETE", Path: "/tags/{ResourceArn}", Do: api.Bind(s.UntagResource)},
	}
}

// Actions returns the table of the operations on classic rules: POST / with X-Amz-Target
// AWSEvents.<Name>.
func (s *Scheduler) Actions() []api.Operation {
	return []api.Operation{
		{Name: "PutRule", Do: api.Bind(s.PutRule)},
		{Name: "DescribeRule", Do: api.Bind(s.DescribeRule)},
		{Name: "DeleteRule", Do: api.Bind(s.DeleteRule)},
		{Name: "EnableRule", Do: api.Bind(s.EnableRule)},
		{Name: "DisableRule", Do: api.Bind(s.DisableRule)},
		{Name: "ListRules", Do: api.Bind(s.ListRules)},
		{Name: "ListRuleNamesByTarget", Do: api.Bind(s.ListRuleNamesByTarget)},
		{Name: "PutTargets", Do: api.Bind(s.PutTargets)},
		{Name: "RemoveTargets", Do: api.Bind(s.RemoveTargets)},
		{Name: "ListTargetsByRule", Do: api.Bind(s.ListTargetsByRule)},
		{Name: "TagResource", Do: api.Bind(s.TagRule)},
		{Name: "UntagResource", Do: api.Bind(s.UntagRule)},
		{Name: "ListTagsForResource", Do: api.Bind(s.ListTagsOfRule)},
	}
}
