// Package engine keeps tables, items, indexes, deadlines and the stream log, and makes expiry exact.
//
// # One batch per change
//
// A write is an item, its index entries, its deadline entry and its stream record, committed as one atomic batch; so is a
// reap. Nothing is derived later, so a crash leaves either all of a change or none of it. FORMAT.md describes every key and value.
//
// # Time
//
// The engine's time is a number of whole milliseconds, asked for inside the commit section and never lower than before. An
// item is expired when now ≥ its deadline; in aws expiry it is there nevertheless, until its instant of removal (expiry.go). Every batch
// that moves time on disk carries its instant, and a directory opens at an instant not before the last one it holds, so what has been
// hidden stays hidden over a crash.
//
// # A write
//
//	lock the stripes of the keys → read what is there → decide → build the batch
//	   → commit section: clock, re-check, sequence numbers, apply without waiting
//	   → unlock → wait for the disk → answer
//
// The commit section is the one place where order is made: sequence order = apply order = log order. It is microseconds long;
// no fsync happens under any lock. See commit.go.
//
// # A read
//
// A read judges every item at one instant. See view.go for how instant and snapshot are made to fit, and for what an answer waits on.
//
// # The reaper
//
// Deadline entries are ordered by instant of removal. The reaper takes a bounded slice of what is due, locks its keys as a write
// does, looks again, and commits removal and record together. Reads never depend on it. See reap.go.
//
// # Backfills
//
// What a change of a table asks of the items that are there already, a backfill does slice by slice under their locks, as a write would: it moves them
// to a new TTL generation, or gives them their entries in a new index. Its place is in the same batches, so it goes on there after a crash. See
// backfill.go and index_build.go.
//
// # Consumers
//
// A consumer of a stream in this process registers: what it has not got to is not trimmed, and an advance of the clock waits for it. See hold.go.
//
// # Failure
//
// A failed write or sync of the log stops the store: nothing that waits on it is acknowledged and every later call fails with
// ErrStopped. On a full disk a reserve is released, and writes that grow data fail with ErrDiskFull; deletes and reaping go on.
package engine
