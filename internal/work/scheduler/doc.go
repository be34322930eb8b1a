// Package scheduler is what EventBridge Scheduler's operations and EventBridge's classic scheduled rules mean, and the firing of both.
//
// It is written against the AWS SDK's clients and keeps everything in tables, so it runs on any endpoint whose items expire exactly: the embedded database, or
// one that guard looks after. There are no timers here: a schedule's next firing is an item with a deadline, and its expiry is the firing.
//
// # Words
//
// An occurrence is an instant for which a schedule's expression stands. A firing is one run of a schedule: an occurrence with its number, and a deadline, which is the
// occurrence plus what a flexible time window adds. To arm is to put the item of a firing. An incarnation is a schedule from its creation to its deletion,
// a version one of its states between two updates.
//
// # Tables
//
// A schedule group is a table (mayfly.schedules.<group>), so that each is reaped and read in turn and none holds up another; the rules are a group of their own
// (mayfly.rules). Its items are keyed by the schedule's name and the part:
//
//	definition     what the schedule is; no deadline
//	firing         the next firing, where there is one; its deadline is due
//	remains        the next firing of the version before, while that has some that were due before the update
//	token#<op>#<t> what a ClientToken was used for, for a day
//
// The table mayfly.scheduler holds the groups. Tables are made at their first use.
//
// # Firing
//
// The item of a firing carries all that the delivery needs, so that nothing is read when it expires. For a page of expired firings the next ones are armed, a transaction
// for up to 50 of them:
//
//	update definition  set armed = n+1   if incarnation and version are those of firing n, and armed = n
//	put firing n+1
//
// So nothing is armed after a deletion or an update, and a firing that comes twice arms once. Then the deliveries are handed to the courier. A record is done when its deliveries
// are: made, parked or dead letters. Hence every firing is delivered at least once, with an ID that is a hash over schedule, incarnation, version and number, so that
// each attempt has the same. A firing that was due before an update or a deletion is still delivered as it was.
//
// Where firings lag behind, an update finds occurrences that were due before it and are not even armed. They remain to the version that it ends, by the catch-up of that,
// in a part of their own: see remains.go. An update that comes while something remains keeps it, and of the version that it ends itself only the firing that is
// armed is delivered. After a deletion nothing more is armed.
//
// A create or update is answered when definition and firing are durable, in one transaction.
//
// An occurrence is missed when it is processed more than 60 s after its deadline, because the process was down. What becomes of it is the schedule's catch-up:
//
//	last  (default, as AWS has it) the latest missed occurrence runs, those before it do not
//	all   each runs, one after the other
//	skip  none runs
//
// Where somebody switched off a table's stream and firings expired before it was on again, those of recurring schedules are armed again, and follow the same rule.
//
// # Beyond AWS
//
// These are extensions that the plain API's clients cannot meet by accident:
//
//   - The expressions instant(2030-01-01T12:00:00.250) and every(250 milliseconds), to the millisecond; see internal/work/cron.
//   - The header X-Mayfly-Catch-Up of CreateSchedule and UpdateSchedule: all, last or skip. The tag mayfly:catch-up of a group says what holds for its
//     schedules that have none.
//   - Targets arn:mayfly:<service>:<region>:<account>:<resource>, such as arn:mayfly:exec:::backup, which are whatever a mapping says.
//
// # Where AWS is silent
//
//   - An at() that has passed is accepted, and fires at once.
//   - The texts of AWS that are not known are ours: see the check files.
//   - An update keeps a rate's pace, unless it changes expression, time zone or StartDate: then it begins anew, as at creation.
//   - An update of a one-time schedule that has fired fires again only where it changes the expression or the time zone, or enables it. Where it
//     does not, and asks for the deletion after completion, the schedule is deleted at once.
//   - A recurring schedule that is deleted after its completion stays until its EndDate.
//   - A ClientToken is remembered for its schedule as long as that lives and a day longer, and one of an update or a deletion for a day; with another
//     request it is a ConflictException. The same token for two names is two tokens.
package scheduler
