// Package deliver brings due items and changes to targets: at least once, with nothing lost.
//
// A [Courier] hands parcels to targets. Each target has a lane, with its own concurrency, rate,
// queue and timeout. A parcel with a failed attempt is parked: it becomes an item of the table
// [RetriesTable] whose deadline is the next attempt. A parcel that has failed for good becomes a
// dead letter, an item of [DeadLettersTable]. A parcel is done only when it is delivered, durably
// parked, or durably a dead letter. Its source may pass it then, and a process that is killed at
// any moment loses nothing. After a crash anything may happen again, with the same ID.
//
// Only the timeouts of attempts and leases use timers. Everything else that waits for an instant is
// an item with a deadline.
package deliver
