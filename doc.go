// Package mayfly is an embedded DynamoDB-compatible database in which items expire exactly at their
// deadlines.
//
// An item with a TTL attribute does not exist from its deadline on, in its table and in every
// index: not within a few days, and not a millisecond early. Its removal is a record in the table's
// stream, in the same atomic batch, so a record is never lost or doubled.
//
//	db, err := mayfly.Open("data", mayfly.Options{})   // or "" for a database in memory
//	defer db.Close()
//
// # Clients
//
// The database speaks the DynamoDB API. There are three ways to call it:
//
//   - [DB.DynamoDB], [DB.Streams] and [DB.Scheduler] return clients of the AWS SDK for Go whose
//     calls stay in this process. Code written against them runs against Amazon's services
//     unchanged. [DB.Transport] returns the transport for other clients: EventBridge for classic
//     rules, Lambda for event source mappings.
//   - [DB.Serve] serves other programs over HTTP on a listener; [DB.Handler] returns an
//     http.Handler to mount in a server.
//   - `mayfly serve` is that server as a program.
//
// # Schedules
//
// Schedules and rules fire to the millisecond; triggers deliver stream records. [Options.Targets]
// maps the ARNs that they call to Go functions, webhooks and other implementations of package
// target's interface. Every firing is delivered at least once, with an id that stays the same. A
// failed delivery is retried and ends as a dead letter.
//
// # Time
//
// A database has its own clock, returned by [DB.Clock]. It follows the machine's clock until it is
// frozen, set, advanced or rated, so a test of a month takes milliseconds. It only goes forward.
//
// # Guarantees
//
//   - Nothing is removed or hidden before its deadline; a fraction in the TTL number is rounded
//     up to the millisecond.
//   - From its deadline on an item does not exist for reads, scans, counts, indexes, conditions
//     or transactions.
//   - An item whose deadline moved or disappeared is not removed on the old one.
//   - Each expiry writes exactly one REMOVE record, with the service's identity and the old
//     image.
//   - An acknowledged write survives a crash, with its deadline, index entries and record (with
//     [Sync]).
//
// # Errors
//
// A call returns the SDK's type for an error of the API, such as
// *types.ConditionalCheckFailedException. If the log cannot be written the database stops: every
// call returns an error from then on, [DB.Failed] is closed, and [DB.Err] returns the reason. Open
// the directory again to find every acknowledged write.
package mayfly
