// Package reminder fires targets at instants that items name: "when an item of table bookings has startsAt, call this target two days before".
//
// A rule ([Spec]) says which attribute of which table, the offset, the target and what it gets. The rule follows the table's stream: an instant that is added, changed or
// removed, by whatever write, adds, moves or cancels the reminder of its item, and so does the removal of the item. Items that there are when the rule is new are found
// by a scan.
//
//	table's stream ─► deliver.Consumer ─► item of [TableName] whose deadline is the instant ─► its expiry ─► courier ─► target
//	scan, once ─────────────────────────┘
//
// There are no timers: a reminder is an item with a deadline, and its expiry record is the firing. So it is to the millisecond, survives restarts, and is delivered at least
// once or becomes a dead letter.
//
// # One reminder per item
//
// The name of a reminder is a hash over the rule and the item's key. Each write of it is conditional on the place in the stream of the record that it follows from, so records
// that come again, in whatever order, change nothing. What has fired or was cancelled leaves a mark for a week, under the same name, that holds against records that
// come again too. The ID of the delivery is a hash over the rule, the key and the instant: the same in every attempt and after every restart, and in the
// message as <mayfly.id>, so that the receiver can send one mail.
//
// # Past instants
//
// An instant is past when it lies before the write that named it, or, for items found by the scan, before the scan. The rule says whether such a reminder fires at once
// or not at all. A worker that was down fires late what came due meanwhile; that is not past in this sense.
//
// An item that was removed while its table had no stream still gets its reminder.
package reminder
