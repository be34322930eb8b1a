// Package kv holds ordered bytes: batches that apply whole or not at all, snapshots, iterators, and file systems that crash on
// demand. It is the only importer of the LSM, Pebble, and knows nothing of tables or items.
//
// A write has two halves. Apply puts the batch into the log's buffer and the memtable, in the order of the calls, without waiting
// for the disk: short enough for a commit section. Wait then waits until the log is on disk up to the batch. What has been applied is
// visible to every reader at once, durable only after Wait.
//
// # Durability
//
//	Sync    Wait returns once the batch is on disk
//	Async   Wait returns at once; the log is synced at most AsyncWindow after the first write that is not; Close syncs
//	Memory  no log and, by default, no files
//
// # When the disk fails
//
// A failed write or sync of the log or of the manifest stops the store for good: Failed tells why, Stopped is closed, and every later
// Apply and Wait returns the failure, marked ErrStopped, including those that were waiting. Nothing is acknowledged after it. Pebble
// cannot be told of such an error: rotating a log that cannot be closed panics with a mutex in the wrong state, which ends the process. So the
// file system that it is given (see guard.go) records the failure, answers success, and from then on leaves the directory as it is:
// new files go to memory, removals are dropped. Pebble stays sound until Close, reads go on, and what is on disk is what a crash at the moment of
// the failure would have left.
//
// # When the disk is full
//
// A reserve file in the directory is given up, the write is tried again, and Full reports true; what then still grows data is the
// caller's to refuse. TryRestore takes the reserve back once there is room. A full disk without reserve stops the store when it hits the log.
package kv
