package guard

import "github.com/mayflydb/mayfly/guard/internal/schedule"

// Permission is an IAM action that a function needs, and its resource.
type Permission struct {
	Action string // for example "dynamodb:Query"
	On     Resource
}

// Resource is a kind of resource that permissions are for.
type Resource string

// The resources.
const (
	OnTable     Resource = "table"     // the table that is guarded
	OnIndex     Resource = "index"     // its index of deadlines
	OnLeases    Resource = "leases"    // the table mayfly.leases
	OnSchedules Resource = "schedules" // the schedules of the group "guard.<table>"
	OnRole      Resource = "role"      // the role that schedules run as
)

// ScheduleGroup returns the name of the schedule group for a table: "guard." and the table's name,
// or if that is too long its beginning and a hash of it.
func ScheduleGroup(table string) string { return schedule.Group(table) }

// SweepPermissions returns the permissions of Sweep, which makes no audit, if Attribute is set, there is no mark and no
// archive, and the table of leases exists.
func SweepPermissions() []Permission {
	return []Permission{
		{"dynamodb:DescribeTable", OnTable},
		{"dynamodb:DeleteItem", OnTable},
		{"dynamodb:Query", OnIndex},
		{"dynamodb:Scan", OnIndex}, // for the layout of the index, and for the patrol
		{"dynamodb:GetItem", OnLeases},
		{"dynamodb:PutItem", OnLeases},
		{"dynamodb:Query", OnLeases},
		{"dynamodb:DeleteItem", OnLeases}, // a worker's own row, when it goes
	}
}

// StreamPermissions returns the permissions of StreamRecords, which makes no audit, if Attribute is set and the group of
// the schedules exists. The event source mapping needs further ones.
func StreamPermissions() []Permission {
	return []Permission{
		{"dynamodb:DescribeTable", OnTable},
		{"dynamodb:DeleteItem", OnTable}, // for items that have expired already
		{"scheduler:CreateSchedule", OnSchedules},
		{"scheduler:GetSchedule", OnSchedules},
		{"scheduler:UpdateSchedule", OnSchedules},
		{"scheduler:DeleteSchedule", OnSchedules},
		{"iam:PassRole", OnRole},
	}
}

// SchedulePermissions returns the permissions of the role that schedules run as, without a
// dead-letter queue.
func SchedulePermissions() []Permission { return []Permission{{"dynamodb:DeleteItem", OnTable}} }
