// Package fromkinesis ingests readings from a stream of Kinesis. Each shard has a checkpoint, which is saved when the samples before it are durable: so after a crash the records behind it
// come again, and their samples are the same items.
//
// Several processes share a stream's shards by leases (package internal/lease), in the table mayfly.leases at the series' endpoint, and each takes over what one that is gone has left. The
// checkpoint is a part of the lease: only who has it can write, so a checkpoint never goes back, and goes to no place that its writer has not been at.
//
// When a stream is split or merged, a shard's children are read when all of its parents were read to their ends. Shards are read from their beginnings, and a stream that was deleted and made
// again under the same name is another one.
//
// What was deleted at its retention's end before it was read is told. What cannot be used is put aside by the receiver, and the rest goes on; so are, as a whole, records that the
// producer library has put several into: they are not taken apart.
package fromkinesis
