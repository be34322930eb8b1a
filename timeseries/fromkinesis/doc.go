// Package fromkinesis ingests readings from a Kinesis stream. Each shard has a checkpoint, saved
// after the samples before it are durable. After a crash the later records come again and make the
// same items.
//
// Several processes share the shards of a stream by leases (package internal/work/lease), in the table
// mayfly.leases at the series' endpoint, and take over the shards of a dead process. The checkpoint
// is part of the lease: only its holder can write it, so a checkpoint never goes back, and never
// moves to a place that its writer has not reached.
//
// When a stream is split or merged, a child shard is read after all its parents have been read to
// their ends. Shards are read from their beginnings. A stream that was deleted and created again
// under the same name is a different stream.
//
// Records that were deleted at the end of their retention before they were read are logged. The
// receiver puts unusable records aside and continues; aggregated records of the producer library
// are put aside whole.
package fromkinesis
