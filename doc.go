// Package mayfly is an embedded DynamoDB-compatible database in which items expire exactly at their deadlines.
//
// An item whose TTL attribute names an instant is gone, from its table and from every index, from that instant on: not within a few
// days, and not a millisecond early. Its removal is a record in the table's stream, in the same atomic batch as the removal, so it is
// never lost and never doubled.
//
//	db, err := mayfly.Open("data", mayfly.Options{})   // or "" for a database in memory
//	defer db.Close()
//
// # Talking to it
//
// The database speaks the DynamoDB API, and there are three ways to it:
//
//   - [DB.DynamoDB] and [DB.Streams] give clients of the AWS SDK for Go whose calls stay in this process. Code written against them
//     runs against Amazon's service unchanged.
//     [DB.Scheduler] is one for EventBridge Scheduler, and [DB.Transport] carries those for classic rules and for Lambda's event source mappings.
//   - [DB.Serve] serves every other client over HTTP, on a listener of yours; [DB.Handler] is an http.Handler, to be mounted on a server of yours.
//   - `mayfly serve` is that server as a program.
//
// # Schedules
//
// Schedules fire to the millisecond, rules and triggers with them. What they call is said by [Options.Targets]: Go functions, webhooks and whatever else implements
// package target's interface, by ARN. Every firing is delivered at least once, with an id that stays the same; what fails is tried again and
// ends as a dead letter.
//
// # Time
//
// A database has a clock of its own. It runs with the machine's until it is frozen, set, advanced or given another rate, so a test of
// what happens in a month takes a millisecond: see [DB.Clock]. It only ever goes forward.
//
// # What is promised
//
//   - Nothing is removed or hidden before its deadline; a fraction in the TTL number is rounded up to the millisecond.
//   - From its deadline on an item does not exist for anyone: reads, scans, counts, indexes, conditions, transactions.
//   - An item whose deadline moved or vanished is not removed on the old one.
//   - Each expiry makes exactly one REMOVE record, with the service's identity and the old image.
//   - What was acknowledged survives a crash, with its deadline, its index entries and its record (with [Sync]).
//
// # How it fails
//
// An error of the API has the SDK's type for it, such as *types.ConditionalCheckFailedException. When the log cannot be written the
// database stops: every call fails from then on, [DB.Failed] is closed and [DB.Err] tells why. Opening it again finds everything
// that was acknowledged.
package mayfly
