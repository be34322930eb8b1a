package engine

import (
	"cmp"

	"github.com/mayflydb/mayfly/internal/invariant"
)

// position is a place in a table's deadline entries, which are ordered by instant of removal and
// then by key.
type position struct {
	removal Instant
	suffix  string
}

func (p position) compare(q position) int {
	if c := cmp.Compare(p.removal, q.removal); c != 0 {
		return c
	}
	return cmp.Compare(p.suffix, q.suffix)
}

func firstOf(p, q position) position {
	if q.compare(p) < 0 {
		return q
	}
	return p
}

// marks holds the lower bounds of a table's deadline entries. Without them the reaper would seek
// the first entry through the tombstones of all that it has removed, which takes up to a second.
// The commit section guards them.
//
// In memory the mark is a whole position: TTL values are whole seconds, so tens of thousands of
// entries may share an instant. On disk it is the instant alone.
type marks struct {
	low    position // no live entry lies below it, except those that were skipped
	stored Instant  // the mark on disk: at or below low.removal and skipped.removal
	// skipped is the first entry that the reaper left because it, or its item, lies in a damaged
	// file. Never: none.
	skipped position
	// since is the least position committed since the reaper last took a snapshot. The mark must
	// not pass it, because the reaper has not seen it.
	since position
}

func newMarks(stored Instant) marks {
	return marks{low: position{removal: stored}, stored: stored, since: position{removal: Never}, skipped: position{removal: Never}}
}

// reset prepares for a snapshot of the reaper, and returns the position to read from.
func (m *marks) reset() position {
	m.since = position{removal: Never}
	return m.low
}

// lower keeps the marks below an entry of the present commit. It reports whether the same batch
// must lower the mark on disk to the entry's instant.
func (m *marks) lower(p position) (store bool) {
	if !invariant.Injected(invariant.KeepMark) {
		m.since, m.low = firstOf(m.since, p), firstOf(m.low, p)
		if store = p.removal < m.stored; store {
			m.stored = p.removal
		}
	}
	m.check(p)
	return store
}

// pass raises the mark in memory to left, the first entry that a pass of the reaper has not
// handled, or to an earlier one that was committed during the pass.
func (m *marks) pass(left position) {
	left = firstOf(m.since, left)
	if left.compare(m.low) > 0 {
		m.low = left
	}
}

// raise is pass for a commit that removes items. It also raises m.stored, and reports whether the
// commit must write that to disk.
func (m *marks) raise(left position) (store bool) {
	m.pass(left)
	if removal := min(m.low.removal, m.skipped.removal); removal > m.stored {
		m.stored = removal
		store = true
	}
	invariant.Check(m.stored <= m.lowest().removal, "the mark on disk is above the one in memory: %+v", *m)
	return store
}

// skip keeps the mark on disk below an unreadable entry. Call it before pass or raise, which let
// the mark in memory pass over the entry.
func (m *marks) skip(p position) { m.skipped = firstOf(m.skipped, p) }

// retry lowers the mark in memory to the first skipped entry, so that the next pass reads it again.
func (m *marks) retry() {
	m.low = firstOf(m.low, m.skipped)
	m.skipped = position{removal: Never}
}

// lowest returns the position below which no live entry lies.
func (m *marks) lowest() position { return firstOf(m.low, m.skipped) }
