package engine

import (
	"context"
	"math/bits"
	"runtime"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Upcoming are the instants of removal of a table's items in a range of time.
type Upcoming struct {
	Counts []int64 // of each step of the range
	// the counts are complete before it: the end of the range, unless counting was cut off
	Until Instant
	First Instant  // of the range; Never: none
	Last  Instant  // of the table, or later than it while much is stale; Never: none
	Due   []DueKey // the first of the range
	Read  int      // entries counted against Period.Most
}

// DueKey is the key of an item with its instant of removal.
type DueKey struct {
	Key dynamo.Item
	At  Instant
}

// Period is the range of time of Upcoming, and the most to read and to return.
type Period struct {
	From, To Instant // To is outside, and later than From
	Steps    int     // of equal length; 0: nothing is counted, and Upcoming.Until is about the keys
	Keys     int     // the most keys to return
	Most     int     // entries to count; the first instant and the keys are found beyond them, too
}

// upcomingTurn is the number of entries between two looks at the context: about a millisecond.
const upcomingTurn = 4096

// staleMost is the number of entries of ended TTL generations that a search passes: a second's work.
// A table has as many as items until the backfill of a new TTL has visited them.
var staleMost = 1_000_000

// Upcoming counts the entries of a range. Its time grows with their number, up to Period.Most, and
// not with the table. The first instant and the keys do not depend on Most.
func (t *Table) Upcoming(ctx context.Context, r Period) (Upcoming, error) {
	e := t.e
	out := Upcoming{Counts: make([]int64, r.Steps), Until: r.To, First: Never, Last: Never}
	if err := e.enter(); err != nil {
		return out, err
	}
	defer e.leave()
	d, err := t.live()
	if err != nil {
		return out, err
	}
	e.order.Lock()
	low := t.marks.low
	e.order.Unlock()
	if out.Last, err = t.lastRemoval(ctx, d, low); err != nil || out.Last < r.From || low.removal >= r.To {
		return out, err
	}
	from := appendDeadlineKey(nil, d.ID, r.From, nil)
	if low.removal > r.From { // skips the tombstones of removed entries
		from = appendDeadlineKey(nil, d.ID, low.removal, []byte(low.suffix))
	}
	it := e.kv.NewIter(from, appendDeadlineKey(nil, d.ID, r.To, nil)) // nor of what was renewed, behind the range
	defer it.Close()
	counting, stale := r.Steps > 0, 0
	for ok, turn := it.First(), 1; ok; ok, turn = it.Next(), turn+1 {
		at := readInstant(it.Key()[tablePrefixLen:])
		if counting && out.Read == r.Most {
			counting, out.Until = false, at
		}
		if !counting && out.First != Never && len(out.Due) >= r.Keys {
			break
		}
		if turn%upcomingTurn == 0 {
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
			runtime.Gosched() // lets an expiration that is due have the processor
		}
		if counting {
			out.Read++
		}
		if counts, err := d.counts(at, it.Value()); err != nil {
			return out, err
		} else if !counts {
			if stale++; !counting && stale > staleMost {
				out.Until = min(out.Until, at)
				break
			}
			continue
		}
		if out.First == Never {
			out.First = at
		}
		if counting {
			out.Counts[r.step(at)]++
		}
		if len(out.Due) < r.Keys {
			key, err := keyItem(d.Key, it.Key()[tablePrefixLen+instantLen:])
			if err != nil {
				return out, err
			}
			out.Due = append(out.Due, DueKey{key, at})
		}
	}
	return out, it.Error()
}

// lastRemoval returns the latest instant of removal of a table; Never: none. If it is behind more
// than staleMost entries that remove nothing, lastRemoval returns the instant that it came to: no
// item is removed after that.
func (t *Table) lastRemoval(ctx context.Context, d *TableDesc, low position) (Instant, error) {
	_, end := tableSpan(spaceDeadlines, d.ID)
	it := t.e.kv.NewIter(appendDeadlineKey(nil, d.ID, low.removal, []byte(low.suffix)), end)
	defer it.Close()
	for ok, stale := it.Last(), 0; ok; ok, stale = it.Prev(), stale+1 {
		at := readInstant(it.Key()[tablePrefixLen:])
		if counts, err := d.counts(at, it.Value()); err != nil || counts || stale == staleMost {
			return at, err
		}
		if stale%upcomingTurn == upcomingTurn-1 && ctx.Err() != nil {
			return Never, ctx.Err()
		}
	}
	return Never, it.Error()
}

// counts reports whether an entry removes its item. One of an earlier TTL generation does so only if
// it was due when that generation ended; the backfill has yet to delete it otherwise.
func (d *TableDesc) counts(at Instant, value []byte) (bool, error) {
	entry, err := decodeDeadlineEntry(value)
	if err != nil || entry.generation >= d.TTL.Generation {
		return true, err
	}
	end, ok := d.TTL.endOf(entry.generation)
	return ok && at <= end, nil
}

// step returns the step of an instant of the range.
func (r Period) step(at Instant) int {
	high, low := bits.Mul64(uint64(at-r.From), uint64(r.Steps))
	step, _ := bits.Div64(high, low, uint64(r.To-r.From))
	return int(step)
}
