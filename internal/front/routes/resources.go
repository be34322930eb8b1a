package routes

import (
	"strings"

	"github.com/mayflydb/mayfly/internal/front/wire"
)

// Owner is the region and the account in the ARNs of schedules, rules and mappings, as policies see
// them.
type Owner struct{ Region, Account string }

func (o Owner) arn(service, resource string) string {
	return "arn:aws:" + service + ":" + o.Region + ":" + o.Account + ":" + resource
}

// own returns an ARN of a request with the owner's region and account. The operations look at its
// resource only.
func (o Owner) own(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 {
		return arn // malformed: the operation refuses it
	}
	return o.arn(parts[2], parts[5])
}

// schedule returns the resource of an operation of EventBridge Scheduler. A list of schedules is
// about all of a group, or of all groups.
//
// See AWS's Service Authorization Reference, "Actions, resources, and condition keys for Amazon
// EventBridge Scheduler".
func (o Owner) schedule(operation string) func(c *wire.Call) string {
	switch {
	case operation == "ListScheduleGroups":
		return nil
	case strings.HasSuffix(operation, "Group"):
		return func(c *wire.Call) string { return o.arn(serviceScheduler, "schedule-group/"+c.Path["Name"]) }
	case operation == "ListSchedules":
		return func(c *wire.Call) string {
			group := c.Query.Get("ScheduleGroup")
			if group == "" {
				group = "*"
			}
			return o.arn(serviceScheduler, "schedule/"+group+"/*")
		}
	case strings.HasSuffix(operation, "Schedule"):
		return func(c *wire.Call) string {
			return o.arn(serviceScheduler, "schedule/"+groupOf(operation, c)+"/"+c.Path["Name"])
		}
	default: // tags
		return func(c *wire.Call) string { return o.own(c.Path["ResourceArn"]) }
	}
}

// groupOf returns the group in a call: in its body if it writes a schedule, else in its query.
func groupOf(operation string, c *wire.Call) string {
	group := c.Query.Get("groupName")
	if operation == "CreateSchedule" || operation == "UpdateSchedule" {
		var body struct{ GroupName *string }
		group = ""
		if c.Decode(&body) == nil && body.GroupName != nil {
			group = *body.GroupName
		}
	}
	if group == "" {
		group = "default"
	}
	return group
}

// rule returns the resource of an operation on rules. All rules are on the default bus. Each operation
// names the rule by one member, and only that one is decoded: the operation ignores others, also if
// they have a wrong type.
func (o Owner) rule(operation string) func(c *wire.Call) string {
	switch operation {
	case "PutRule", "DescribeRule", "DeleteRule", "EnableRule", "DisableRule":
		return bodyResource(func(m *struct{ Name string }) string { return o.arn(serviceEvents, "rule/"+m.Name) })
	case "PutTargets", "RemoveTargets", "ListTargetsByRule":
		return bodyResource(func(m *struct{ Rule string }) string { return o.arn(serviceEvents, "rule/"+m.Rule) })
	case "TagResource", "UntagResource", "ListTagsForResource":
		return bodyResource(func(m *struct{ ResourceARN string }) string { return o.taggedRule(m.ResourceARN) })
	default:
		return nil
	}
}

// taggedRule is own for the ARN of a rule, which may contain the name of the default bus.
func (o Owner) taggedRule(arn string) string {
	arn = o.own(arn)
	if name, ok := strings.CutPrefix(arn, o.arn(serviceEvents, "rule/default/")); ok {
		return o.arn(serviceEvents, "rule/"+name)
	}
	return arn
}

func bodyResource[M any](resource func(m *M) string) func(c *wire.Call) string {
	return func(c *wire.Call) string {
		var m M
		if c.Decode(&m) != nil {
			return "*" // malformed: the operation refuses it
		}
		return resource(&m)
	}
}

// mapping returns the resource of a call about a mapping, or "*" for one about all or a new one.
func (o Owner) mapping(c *wire.Call) string {
	if c.Path["UUID"] == "" {
		return "*"
	}
	return o.arn(serviceLambda, "event-source-mapping:"+c.Path["UUID"])
}
