// Package deliver brings what comes due, and what changes, from streams to targets: at least once, with nothing lost.
//
// A [Consumer] reads the shards of a stream, parents before their children, and hands its records over in order. Whoever has got a record calls its Done
// once it is finished with it, and the consumer's checkpoint passes a record when it and all before it are done.
//
// A [Courier] hands parcels to targets. Each target has a lane, with its own concurrency, rate, queue and timeout. A parcel whose attempt fails is parked as
// an item of the table [RetriesTable] whose deadline is the next attempt; one that has failed for good is a dead letter, an item of [DeadLettersTable].
// A parcel is done only when it is delivered, parked durably, or durably a dead letter; so whatever its source was can be passed then, and a process that is
// killed at any moment loses nothing. Everything may happen again after a crash, with the same ID.
//
// There are no timers but for the timeouts of attempts and for leases: what waits for an instant is an item with a deadline.
package deliver
