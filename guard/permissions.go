package guard

import (
	"slices"

	"github.com/mayflydb/mayfly/guard/internal/schedule"
)

// Permission is an IAM action that a part of guard needs, and its resource.
type Permission struct {
	Action string // for example "dynamodb:Query"
	On     Resource
}

// Resource is a kind of resource that permissions are for.
type Resource string

// The resources.
const (
	OnTable         Resource = "table"          // the table that is guarded
	OnIndex         Resource = "index"          // its index of deadlines
	OnStream        Resource = "stream"         // its stream
	OnLeases        Resource = "leases"         // the table of leases: Tables.Leases
	OnDeadlines     Resource = "deadlines"      // the table of deadlines: Tables.Deadlines
	OnSchedules     Resource = "schedules"      // the schedules of the group "guard.<table>"
	OnScheduleGroup Resource = "schedule group" // that group
	OnRole          Resource = "role"           // the role that schedules run as
	OnKey           Resource = "key"            // the KMS key of guard's own tables
	OnAnything      Resource = "*"              // the action has no resource
)

// Use is a part of guard with permissions of its own.
type Use string

// The uses.
const (
	UseRun     Use = "run"            // Guard.Run and Guard.Report
	UseInit    Use = "init"           // Init
	UseStatus  Use = "status"         // Look
	UseUndo    Use = "undo"           // PutBack; Options.DryRun stands for its own
	UseProxy   Use = "proxy"          // strict.Proxy: what it needs beside the application's permissions
	UseSweep   Use = "sweep"          // Sweep, if the table of leases exists
	UseStream  Use = "stream"         // StreamRecords, if the group of the schedules exists
	UseFirings Use = "scheduler-role" // the role that schedules run as, without a dead-letter queue
)

// ScheduleGroup returns the name of the schedule group for a table: "guard." and the table's name,
// or if that is too long its beginning and a hash of it.
func ScheduleGroup(table string) string { return schedule.Group(table) }

// Permissions returns the permissions that a use of guard with these options needs. Options need no
// clients, except that Deadlines shows whether the worker has a store of its own. With the strategy
// Auto, the result allows Stream, Index and Scan.
//
// A transaction needs no permission of its own: IAM checks the action of each item in it, for
// example dynamodb:DeleteItem.
func Permissions(use Use, o Options) (all []Permission) {
	u := usage{use, o}
	for _, n := range needs {
		if n.by(u) {
			all = append(all, n.Permission)
		}
	}
	return all
}

// SweepPermissions returns the permissions of Sweep, which makes no audit, if Attribute is set, there
// is no mark, no archive and no journal, and the table of leases exists.
func SweepPermissions() []Permission { return Permissions(UseSweep, Options{Attribute: "ttl"}) }

// StreamPermissions returns the permissions of StreamRecords, which makes no audit, if Attribute is
// set and the group of the schedules exists. The event source mapping needs further ones.
func StreamPermissions() []Permission { return Permissions(UseStream, Options{Attribute: "ttl"}) }

// SchedulePermissions returns the permissions of the role that schedules run as, without a
// dead-letter queue.
func SchedulePermissions() []Permission { return Permissions(UseFirings, Options{}) }

// usage is a use of guard with its options.
type usage struct {
	use Use
	o   Options
}

// is reports whether the use is among several.
func (u usage) is(several ...Use) bool { return slices.Contains(several, u.use) }

// runs reports whether guard runs, perhaps dry, with one of several strategies.
func (u usage) runs(several ...Strategy) bool {
	return u.use == UseRun && slices.ContainsFunc(several, func(s Strategy) bool { return u.o.Strategy == s || u.o.Strategy == Auto && s != Schedule })
}

// shows reports whether a status is shown of a strategy.
func (u usage) shows(s Strategy) bool {
	return u.use == UseStatus && (u.o.Strategy == s || u.o.Strategy == Auto)
}

// removes reports whether guard itself removes items; otherwise it may be a dry run.
func (u usage) removes() bool { return u.is(UseRun, UseSweep, UseStream) && !u.o.DryRun }

// schedules reports whether guard makes schedules.
func (u usage) schedules() bool {
	return (u.runs(Schedule) || u.use == UseStream) && !u.o.DryRun
}

// describes reports whether the table is described. A dry run of StreamRecords calls nothing.
func (u usage) describes() bool { return u.use != UseFirings && !(u.use == UseStream && u.o.DryRun) }

// asksTTL reports whether the table's native TTL is read. Run compares it with a given attribute.
func (u usage) asksTTL() bool {
	return u.describes() && u.use != UseUndo && (u.use == UseRun || u.o.Attribute == "")
}

// deletes reports whether items of the table are deleted.
func (u usage) deletes() bool { return u.removes() || u.is(UseProxy, UseFirings) }

// updates reports whether items of the table are updated: marked, or put into the index.
func (u usage) updates() bool {
	return u.removes() && u.o.Mark != "" || u.use == UseInit && !u.o.DryRun
}

// gets reports whether items of the table are read one by one: for the archive or the journal, unless
// the mark returns them; in a dry run, in place of their removal or return; when a schedule or the index may be
// outdated; and by a proxy, at endpoints that do not return the item that failed a condition.
func (u usage) gets() bool {
	switch u.use {
	case UseRun, UseSweep:
		return u.o.DryRun || (u.o.Archive != nil || u.o.Undo != nil) && u.o.Mark == "" || u.runs(Schedule)
	case UseInit:
		return !u.o.DryRun
	case UseUndo:
		return u.o.DryRun
	}
	return u.use == UseProxy
}

// scans reports whether the whole table is read. With an index only the audit does that.
func (u usage) scans() bool {
	return u.runs(Stream, Schedule, Scan) || u.runs(Index) && u.o.AuditRCU >= 0 || u.use == UseInit
}

// queriesIndex reports whether deadlines are found in the index.
func (u usage) queriesIndex() bool {
	return u.runs(Index) || u.use == UseSweep || u.shows(Index)
}

// scansIndex reports whether the whole index is read: for its layout, and for the patrol.
func (u usage) scansIndex() bool { return u.queriesIndex() || u.use == UseInit }

func (u usage) follows() bool { return u.runs(Stream, Schedule) }

// leases reports whether leases are taken, or workers report.
func (u usage) leases() bool {
	return u.is(UseRun, UseSweep) || u.use == UseInit && !u.o.DryRun
}

// makesLeases reports whether the table of leases is made if it is missing.
func (u usage) makesLeases() bool { return u.leases() && u.use != UseSweep }

// remote reports whether deadlines, if they are stored, are in a table at the endpoint.
func (u usage) remote() bool { return u.o.Deadlines == nil || u.o.Deadlines == u.o.DB }

// storesDeadlines reports whether deadlines are stored in a table at the endpoint.
func (u usage) storesDeadlines() bool { return u.runs(Stream) && u.remote() }

// makesWithKey reports whether tables are made that a key of KMS encrypts.
func (u usage) makesWithKey() bool { return u.makesLeases() && u.o.Tables.KMSKey != "" }

// needs are all permissions of all parts of guard, each with the usages that need it. This is the
// only list: TestPermissions compares it with the calls that are made.
var needs = []struct {
	Permission
	by func(usage) bool
}{
	{Permission{"dynamodb:DescribeTable", OnTable}, usage.describes},
	{Permission{"dynamodb:DescribeTimeToLive", OnTable}, usage.asksTTL},
	{Permission{"dynamodb:DeleteItem", OnTable}, usage.deletes},
	{Permission{"dynamodb:UpdateItem", OnTable}, usage.updates},
	{Permission{"dynamodb:GetItem", OnTable}, usage.gets},
	{Permission{"dynamodb:PutItem", OnTable}, func(u usage) bool { return u.use == UseUndo && !u.o.DryRun }},
	{Permission{"dynamodb:Scan", OnTable}, usage.scans},
	{Permission{"dynamodb:UpdateTable", OnTable}, func(u usage) bool { return u.use == UseInit && !u.o.DryRun }},
	// for reads of indexes that lack the TTL attribute
	{Permission{"dynamodb:BatchGetItem", OnTable}, func(u usage) bool { return u.use == UseProxy }},
	{Permission{"dynamodb:Query", OnIndex}, usage.queriesIndex},
	{Permission{"dynamodb:Scan", OnIndex}, usage.scansIndex},
	{Permission{"dynamodb:DescribeStream", OnStream}, usage.follows},
	{Permission{"dynamodb:GetShardIterator", OnStream}, usage.follows},
	{Permission{"dynamodb:GetRecords", OnStream}, usage.follows},
	{Permission{"dynamodb:CreateTable", OnLeases}, usage.makesLeases},
	{Permission{"dynamodb:DescribeTable", OnLeases}, usage.makesLeases},
	{Permission{"dynamodb:TagResource", OnLeases}, func(u usage) bool { return u.makesLeases() && len(u.o.Tables.Tags) > 0 }},
	// for endpoints that do not return the item that failed a condition
	{Permission{"dynamodb:GetItem", OnLeases}, usage.leases},
	{Permission{"dynamodb:PutItem", OnLeases}, usage.leases},
	{Permission{"dynamodb:Query", OnLeases}, func(u usage) bool { return u.leases() || u.use == UseStatus }},
	{Permission{"dynamodb:DeleteItem", OnLeases}, usage.leases}, // a worker's own row, when it goes
	{Permission{"dynamodb:CreateTable", OnDeadlines}, usage.storesDeadlines},
	{Permission{"dynamodb:DescribeTable", OnDeadlines}, usage.storesDeadlines},
	{Permission{"dynamodb:TagResource", OnDeadlines}, func(u usage) bool { return u.storesDeadlines() && len(u.o.Tables.Tags) > 0 }},
	// a status asks for the deadlines of any strategy, and finds out that there are none
	{Permission{"dynamodb:GetItem", OnDeadlines}, func(u usage) bool { return u.storesDeadlines() || u.use == UseStatus && u.remote() }},
	{Permission{"dynamodb:PutItem", OnDeadlines}, usage.storesDeadlines},
	{Permission{"dynamodb:Query", OnDeadlines}, func(u usage) bool { return u.storesDeadlines() || u.shows(Stream) && u.remote() }},
	{Permission{"dynamodb:DeleteItem", OnDeadlines}, usage.storesDeadlines},
	// DynamoDB uses the key in the name of the caller. It makes a grant for itself with the table
	{Permission{"kms:CreateGrant", OnKey}, usage.makesWithKey},
	{Permission{"kms:DescribeKey", OnKey}, usage.makesWithKey},
	{Permission{"kms:Encrypt", OnKey}, usage.makesWithKey},
	{Permission{"kms:ReEncrypt*", OnKey}, usage.makesWithKey},
	{Permission{"kms:GenerateDataKey*", OnKey}, usage.makesWithKey},
	{Permission{"kms:Decrypt", OnKey}, func(u usage) bool { return (u.leases() || u.use == UseStatus) && u.o.Tables.KMSKey != "" }},
	{Permission{"scheduler:CreateScheduleGroup", OnScheduleGroup}, func(u usage) bool { return u.schedules() && u.use == UseRun }},
	{Permission{"scheduler:CreateSchedule", OnSchedules}, usage.schedules},
	{Permission{"scheduler:GetSchedule", OnSchedules}, usage.schedules},
	{Permission{"scheduler:UpdateSchedule", OnSchedules}, usage.schedules},
	{Permission{"scheduler:DeleteSchedule", OnSchedules}, usage.schedules},
	{Permission{"iam:PassRole", OnRole}, usage.schedules},
	// the endpoint's time before the first request; the proxy can do without
	{Permission{"dynamodb:DescribeEndpoints", OnAnything}, func(u usage) bool { return u.use == UseProxy }},
}
