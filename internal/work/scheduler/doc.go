// Package scheduler implements the operations of EventBridge Scheduler and of EventBridge's classic
// scheduled rules, and fires both.
//
// It uses the AWS SDK's clients and stores everything in tables, so it runs at any endpoint that
// expires items exactly: the embedded database, or a table that guard looks after. A schedule's
// next firing is a durable timer (package timer).
//
// # Words
//
// An occurrence is an instant of a schedule's expression. A firing is one run of a schedule: a
// numbered occurrence with a deadline, which is the occurrence plus an offset within the flexible
// time window. To arm a firing is to put its item. An incarnation is a schedule from its creation
// to its deletion, a version one of its states between two updates.
//
// # Tables
//
// A schedule group is a table (mayfly.schedules.<group>), so that groups do not delay each other.
// The rules are a group of their own (mayfly.rules). Items are keyed by the schedule's name and a
// part:
//
//	definition     the schedule itself; no deadline
//	firing         the next firing, if there is one; its deadline is due
//	remains        the next firing of the version before, as long as it lags behind the update
//	token#<op>#<t> the use of a ClientToken, for a day
//
// The table mayfly.scheduler holds the groups. Each table is created at its first use.
//
// # Firing
//
// The item of a firing has all that the delivery needs, so nothing is read when it expires. For a
// page of expired firings the scheduler arms the next ones, in transactions of up to 50:
//
//	update definition  set armed = n+1   if incarnation and version equal firing n's, and armed = n
//	put firing n+1
//
// So a deleted or updated schedule arms nothing more, and a firing that comes twice arms once. Then
// the courier takes the deliveries. A record is done when its deliveries are made, parked or dead
// letters. Hence every firing is delivered at least once. Its ID is a hash of schedule,
// incarnation, version and number, so each attempt has the same ID. A firing that was due before an
// update or a deletion is delivered unchanged.
//
// If firings lag behind, an update may find occurrences that were due before it and are not armed.
// They belong to the version that it ends, follow that version's catch-up, and are armed in a part
// of their own: see tail.go. A further update keeps them; of the version that it ends itself,
// only the armed firing is delivered. After a deletion nothing more is armed.
//
// A create or update returns when definition and firing are durable, in one transaction.
//
// An occurrence is missed if it is processed more than 60 s after its deadline, because the process
// was down. The schedule's catch-up decides about it:
//
//	last  (default, as in AWS) the latest missed occurrence runs, earlier ones do not
//	all   each runs, one after the other
//	skip  none runs
//
// If firings expire while their table has no stream, recurring schedules arm theirs again,
// and follow the same rule.
//
// # Beyond AWS
//
// Clients of the plain API cannot use these extensions by accident:
//
//   - The expressions instant(2030-01-01T12:00:00.250) and every(250 milliseconds), to the millisecond; see internal/work/cron.
//   - The header X-Mayfly-Catch-Up of CreateSchedule and UpdateSchedule: all, last or skip. A group's tag
//     mayfly:catch-up is the default of its schedules.
//   - Targets arn:mayfly:<service>:<region>:<account>:<resource>, such as arn:mayfly:exec:::backup, which
//     a mapping defines.
//
// # Where AWS is silent
//
//   - An at() in the past is accepted, and fires at once.
//   - Unknown texts of AWS are ours: see the check files.
//   - An update keeps the pace of a rate, unless it changes expression, time zone or StartDate: then the
//     rate begins anew, as at creation.
//   - An update of a one-time schedule that has fired makes it fire again only if it changes the
//     expression or the time zone, or enables the schedule. Otherwise, if it asks for deletion after
//     completion, the schedule is deleted at once.
//   - A recurring schedule that is deleted after its completion stays until its EndDate.
//   - A ClientToken of a creation is stored until a day after the schedule's deletion, and one of an update
//     or a deletion for a day. With another request it is a ConflictException. Tokens of different names
//     are different tokens.
package scheduler
