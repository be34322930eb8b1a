package guard

// Permission is an action of IAM that a function needs, and on what.
type Permission struct {
	Action string // such as "dynamodb:Query"
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

// SweepPermissions are what Sweep needs, where Attribute is given, there are no marks and no archive, and the leases' table exists.
func SweepPermissions() []Permission {
	return []Permission{
		{"dynamodb:DescribeTable", OnTable},
		{"dynamodb:DeleteItem", OnTable},
		{"dynamodb:Query", OnIndex},
		{"dynamodb:Scan", OnIndex}, // to learn what the index's partition key holds, and for the patrol
		{"dynamodb:GetItem", OnLeases},
		{"dynamodb:PutItem", OnLeases},
		{"dynamodb:Query", OnLeases},
		{"dynamodb:DeleteItem", OnLeases}, // a worker's own row, when it goes
	}
}

// StreamPermissions are what StreamRecords needs, where Attribute is given and the group of the schedules exists. The event source mapping needs its own.
func StreamPermissions() []Permission {
	return []Permission{
		{"dynamodb:DescribeTable", OnTable},
		{"dynamodb:DeleteItem", OnTable}, // of what has expired already
		{"scheduler:CreateSchedule", OnSchedules},
		{"scheduler:GetSchedule", OnSchedules},
		{"scheduler:UpdateSchedule", OnSchedules},
		{"scheduler:DeleteSchedule", OnSchedules},
		{"iam:PassRole", OnRole},
	}
}

// SchedulePermissions are what the role needs that schedules run as, without a dead letter queue.
func SchedulePermissions() []Permission {
	return []Permission{{"dynamodb:DeleteItem", OnTable}}
}
