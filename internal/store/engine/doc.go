// Package engine stores tables, items, indexes, deadlines and the stream log, and makes expiry
// exact.
//
// # One batch per change
//
// A write commits an item, its index entries, its deadline entry and its stream record as one
// atomic batch; so does a reap. Nothing is derived later, so a crash leaves all of a change or
// none. FORMAT.md describes every key and value.
//
// # Time
//
// The engine's time is a number of whole milliseconds. A commit reads it inside the commit section,
// and it never goes back. An item is expired when now ≥ its deadline; in aws expiry it stays
// visible until its instant of removal (expiry.go). Every batch that moves time on disk carries its
// instant, and a directory opens at or after the last instant it holds. A hidden item therefore
// stays hidden after a crash.
//
// # A write
//
//	lock the stripes of the keys → read → decide → build the batch
//	   → commit section: clock, re-check, sequence numbers, apply without waiting
//	   → unlock → wait for the disk → answer
//
// Only the commit section makes order: sequence order = apply order = log order. It takes
// microseconds, and no lock is held during an fsync. See commit.go.
//
// # A read
//
// A read judges every item at one instant. See view.go for the match between instant and snapshot,
// and for the commits that an answer waits for.
//
// # The reaper
//
// Deadline entries are ordered by instant of removal. The reaper takes a bounded slice of the due
// entries, locks their keys as a write does, re-checks them, and commits removal and record
// together. Reads never depend on it. See reap.go.
//
// # Backfills
//
// After a change of a table a backfill updates the existing items slice by slice under their locks,
// as a write would: it moves them to a new TTL generation or adds their entries to a new index.
// Each batch carries its progress, so it continues after a crash. See backfill.go and
// index_build.go.
//
// # Consumers
//
// A consumer of a stream in this process registers a Hold. The trimmer keeps the records that it
// has not passed, and an advance of the clock waits for it. See hold.go.
//
// # Failure
//
// A failed write or sync of the log stops the store: no waiting write is acknowledged and every
// later call returns ErrStopped. On a full disk a reserve is released, and writes that grow data
// return ErrDiskFull; deletes and reaping continue.
package engine
