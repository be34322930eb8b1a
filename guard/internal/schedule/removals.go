package schedule

import (
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/table"
)

// A schedule deletes its item without guard. Guard learns of that from the REMOVE record: if it was
// written at or after the schedule's instant, not by the endpoint's own TTL and not because guard
// removed the item, the schedule removed the item. A user's deletion in the moments between the
// deadline and the firing looks the same, and counts as a removal.
//
// The record's time is the only one there is. At Amazon it has whole seconds, rounded down, so the
// lateness is up to a second too small.

// removal is the removal of an item for a deadline.
type removal struct {
	key armed.Key
	at  int64 // the deadline, in ms
}

// removals keeps each removal from being counted twice: guard counts its own ones itself, and a
// record may be delivered again.
type removals struct {
	mu sync.Mutex
	// the removals that guard attempts itself
	own map[removal]*attempts
	// recent removals that are counted. before has the ones from before a full counted
	counted, before map[removal]struct{}
}

// attempts are guard's own attempts at a removal.
type attempts struct {
	n    int            // that have not ended
	late *time.Duration // of the record, if that came meanwhile
}

// countedMost is the number of removals in one generation.
const countedMost = 50_000

// begin notes that guard attempts a removal itself.
func (r *removals) begin(one removal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == nil {
		r.own = map[removal]*attempts{}
	}
	if r.own[one] == nil {
		r.own[one] = &attempts{}
	}
	r.own[one].n++
}

// end notes the end of an attempt. It returns the lateness if the item's record has come meanwhile
// and its schedule was first.
func (r *removals) end(one removal, outcome armed.Outcome) (late time.Duration, count bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.own[one]
	if outcome == armed.Removed {
		r.keepLocked(one)
	}
	if a.n--; a.n > 0 {
		return 0, false
	}
	delete(r.own, one)
	if a.late == nil || r.knownLocked(one) {
		return 0, false
	}
	r.keepLocked(one)
	return *a.late, true
}

// see notes the record of a removal. It returns false if the removal is counted already, or guard
// attempts it itself at present.
func (r *removals) see(one removal, late time.Duration) (count bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.knownLocked(one) {
		return false
	}
	if a := r.own[one]; a != nil {
		a.late = &late
		return false
	}
	r.keepLocked(one)
	return true
}

func (r *removals) knownLocked(one removal) bool {
	if _, known := r.counted[one]; known {
		return true
	}
	_, known := r.before[one]
	return known
}

func (r *removals) keepLocked(one removal) {
	if r.counted == nil || len(r.counted) >= countedMost {
		r.counted, r.before = map[removal]struct{}{}, r.counted
	}
	r.counted[one] = struct{}{}
}

// firedFor returns the removal that a record shows, if a schedule may have made it.
func (s *Strategy) firedFor(k armed.Key, r News) (one removal, late time.Duration, fired bool) {
	if !r.Remove || r.ByService || s.DryRun {
		return one, 0, false
	}
	_, at, err := table.Deadline(r.Old[s.Table.Attribute])
	if err != nil || r.At.Unix() < table.WholeSeconds(at) {
		return one, 0, false
	}
	return removal{k, at}, r.At.Sub(time.UnixMilli(at)), true
}

// attempt returns an armer for a removal that guard makes itself. It calls ended at the end.
func (s *Strategy) attempt(e armed.Entry, ended func()) armed.Func {
	if s.DryRun { // it removes nothing, and attempts wait for years
		return func(armed.Outcome) { ended() }
	}
	one := removal{e.Key, e.At}
	s.removals.begin(one)
	return func(outcome armed.Outcome) {
		if late, count := s.removals.end(one, outcome); count {
			s.Removed(e.Key, late)
		}
		ended()
	}
}
