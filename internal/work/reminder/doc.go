// Package reminder calls targets at instants that items name: "when an item of table bookings has
// startsAt, call this target two days before".
//
// A rule ([Spec]) names a table, an attribute, an offset, a target and the target's input. The rule
// follows the table's stream. A write that adds, changes or removes the instant adds, moves or
// cancels the reminder of its item; so does the removal of the item. A scan finds the items that
// are older than the rule.
//
//	table's stream ─► consume.Consumer ─► item of [TableName] whose deadline is the instant ─► its expiry ─► courier ─► target
//	scan, once ─────────────────────────┘
//
// A reminder is a durable timer (package timer). So it is exact to the millisecond, survives
// restarts, and is delivered at least once or becomes a dead letter.
//
// # One reminder per item
//
// The name of a reminder is a hash of the rule and the item's key. Each write of it is conditional
// on the position of its record in the stream, so repeated records change nothing, in whatever
// order they come. A reminder that has fired or was cancelled leaves a mark under the same name for
// a week, which also withstands repeated records. The ID of the delivery is a hash of the rule, the
// key and the instant. It is the same in every attempt and after every restart, and the message
// contains it as <mayfly.id>, so that the receiver can send one mail.
//
// # Past instants
//
// An instant is past if it lies before the write that named it, or before the scan for items that
// the scan finds. The rule decides whether such a reminder fires at once or never. A reminder that
// came due while the worker was down is not past in this sense: it fires late.
//
// If an item is removed while its table has no stream, its reminder fires.
package reminder
