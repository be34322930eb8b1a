package engine

import (
	"cmp"

	"github.com/mayflydb/mayfly/internal/invariant"
)

// position is a place in a table's deadline entries, which are ordered by instant of removal and then by key.
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

// marks say where a table's deadline entries begin. Without them the reaper would seek the head through the tombstones of all that it
// has removed, which takes up to a second. They are guarded by the commit section.
//
// In memory the mark is a whole position: TTL values are whole seconds, so tens of thousands of entries may share an instant. On
// disk it is the instant alone.
type marks struct {
	low    position // no live entry lies below it, except those that were skipped
	stored Instant  // the mark on disk: not above low.removal, nor above skipped.removal
	// skipped is the first entry that the reaper left behind because it, or its item, lies in a damaged file. Never: there is none.
	skipped position
	// since is the least position committed since the reaper last took a snapshot: what a pass has not seen, it must not pass over.
	since position
}

func newMarks(stored Instant) marks {
	return marks{low: position{removal: stored}, stored: stored, since: position{removal: Never}, skipped: position{removal: Never}}
}

// reset is called before the reaper takes a snapshot; it gives the position to read from.
func (m *marks) reset() position {
	m.since = position{removal: Never}
	return m.low
}

// lower keeps the marks below an entry that the present commit carries. It says whether the mark on disk has to be lowered to the
// entry's instant, in the same batch.
func (m *marks) lower(p position) (store bool) {
	if invariant.Injected(invariant.KeepMark) {
		return false
	}
	m.since, m.low = firstOf(m.since, p), firstOf(m.low, p)
	if p.removal < m.stored {
		m.stored = p.removal
		return true
	}
	return false
}

// pass raises the mark in memory behind a pass of the reaper that left everything from left on.
func (m *marks) pass(left position) {
	left = firstOf(m.since, left)
	if left.compare(m.low) > 0 {
		m.low = left
	}
}

// raise is pass in the commit section of a reap. It says whether the mark on disk moves.
func (m *marks) raise(left position) (store bool) {
	m.pass(left)
	if removal := min(m.low.removal, m.skipped.removal); removal > m.stored {
		m.stored = removal
		return true
	}
	return false
}

// skip keeps the mark on disk below an entry that is left behind. It is called before the pass that leaves it.
func (m *marks) skip(p position) { m.skipped = firstOf(m.skipped, p) }

// retry lowers the mark in memory to the first entry that was left behind.
func (m *marks) retry() {
	m.low = firstOf(m.low, m.skipped)
	m.skipped = position{removal: Never}
}

// lowest is the position below which no live entry lies.
func (m *marks) lowest() position { return firstOf(m.low, m.skipped) }
