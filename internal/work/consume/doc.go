// Package consume reads streams of tables at any endpoint, with checkpoints: at least once, and
// each shard in order.
//
// A [Consumer] reads the shards of a stream, parents before their children, beside other workers.
// It hands over the records in order. The handler calls Done of each record when it is finished
// with it. The consumer's checkpoint passes a record when that record and all before it are done,
// so a process that is killed at any moment loses nothing: after a restart, the records that the
// checkpoint has not passed come again. Records that the endpoint trimmed before they were read are
// a loss, which is stored until the consumer's Lost has made up for it.
//
// The workers of a fleet share the list of a stream with many shards, and pace their
// checkpoints, so that a fleet of any size makes about one call of DescribeStream and 500 writes of
// checkpoints a second.
//
// A consumer in the database's own process registers with it, by a [Registry]. Then the database
// does not trim records that the consumer has not read, and an advance of the clock waits for it.
package consume
