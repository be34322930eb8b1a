// Package kv stores ordered bytes: batches that apply whole or not at all, snapshots, iterators,
// and file systems that crash on demand. It is the only importer of the LSM, Pebble, and has no
// notion of tables or items.
//
// A write has two halves. Apply puts the batch into the log's buffer and the memtable, in the order
// of the calls, without waiting for the disk: short enough for a commit section. Wait then waits
// until the log is on disk up to the batch. An applied batch is visible to every reader at once,
// and durable only after Wait.
//
// # Durability
//
//	Sync    Wait returns once the batch is on disk
//	Async   Wait returns at once; the log is synced at most AsyncWindow after the first unsynced write; Close syncs
//	Memory  no log and, by default, no files
//
// # When the disk fails
//
// A failed write or sync of the log or of the manifest stops the store for good: Failed returns the
// cause, and Stopped is closed. Every later Apply and Wait, and each Wait under way, returns the
// failure, marked ErrStopped. Nothing is acknowledged after it.
//
// Pebble does not survive such an error: rotating a log that cannot be closed panics with a mutex
// in the wrong state, which ends the process. So its file system (see guard.go) records the failure
// and reports success. From then on it leaves the directory as after a crash: new files go to
// memory, removals are dropped. Pebble stays sound until Close, and reads continue.
//
// # When the disk is full
//
// The store removes a reserve file in the directory, repeats the failed operation, and Full reports
// true. The caller then refuses writes that grow data. Its deletes add to the log and free nothing
// by themselves. So while the disk is full a goroutine flushes the memtables and compacts the
// tables, until the reserve and three times as much again is free, or until all is compacted and
// the reserve and as much again is free. Then Full reports false. A compaction leaves half of the
// reserve's size to the log and to flushes. If it lacks room beside that, the disk counts as full:
// a compaction that does not fit only grows with further writes. It is retried after a flush, and
// otherwise at growing intervals. A full disk without a reserve stops the store at the next write
// of the log.
//
// A flush or a compaction without a free file descriptor is retried too. A new log waits for one
// for half a minute.
//
// # Room on the disk
//
// Memtables start at 256 KB and double. The log's room is allocated as it is written, and an old
// log is removed when its memtable is flushed. Pebble would allocate room for the largest memtable
// and keep old logs for the next, which takes 300 MB for an empty store, and a sync gains nothing
// measurable from it. The reserve is a third larger than the largest memtable, 12 MB at least. On a
// small disk the memtables, and so the reserve, have a lower limit.
package kv
