package trigger

import (
	"sync"
	"time"
)

// rests combines the waits of a trigger's lanes. While all lanes with records wait for instants of
// the database's clock, the trigger rests until the first of these instants, and `advance` of the
// clock stops there.
//
// A feed that waits for an earlier one rests exactly while the earlier one does: its records cannot
// be delivered before. While the earlier one works, or is about to end, the clock waits for both.
type rests struct {
	mu struct {
		sync.Mutex
		announce  func(until time.Time) // receives the instant; zero: the rest is over. Nil: not yet
		busy      int                   // lanes with a worker
		waiting   map[*lane]time.Time
		announced time.Time // last passed to announce
		follows   bool      // the rest of an earlier feed counts instead of these lanes
		follower  *rests    // of the feed that waits for this one; nil: none
	}
}

// to sets the receiver of the instants.
func (r *rests) to(announce func(until time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.announce = announce
}

// lead makes a later feed rest while this one does.
func (r *rests) lead(follower *rests) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.follower != follower {
		r.mu.follower = follower
		follower.mirror(r.mu.announced)
	}
}

// mirror takes over the instant of an earlier feed.
func (r *rests) mirror(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.follows {
		r.passLocked(until)
	}
}

// follow records that an earlier feed comes first, or no longer does.
func (r *rests) follow(follows bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.follows = follows
	r.announceLocked()
}

// work counts a worker that begins (1) or ends (-1).
func (r *rests) work(change int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.busy += change
	r.announceLocked()
}

// wait records that a worker waits for an instant, until wake.
func (r *rests) wait(l *lane, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.waiting == nil {
		r.mu.waiting = map[*lane]time.Time{}
	}
	r.mu.waiting[l] = until
	r.mu.busy--
	r.announceLocked()
}

// wake records that a worker no longer waits.
func (r *rests) wake(l *lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, waits := r.mu.waiting[l]; !waits {
		return
	}
	delete(r.mu.waiting, l)
	r.mu.busy++
	r.announceLocked()
}

func (r *rests) announceLocked() {
	if r.mu.follows {
		r.passLocked(r.mu.announced) // the consumer may not have existed when that was announced
		return
	}
	var until time.Time
	if r.mu.busy == 0 {
		for _, at := range r.mu.waiting {
			if until.IsZero() || at.Before(until) {
				until = at
			}
		}
	}
	if !until.Equal(r.mu.announced) {
		r.passLocked(until)
	}
}

// passLocked announces an instant. The follower learns of a rest, and of its end, after this
// trigger: so the clock waits for one of them meanwhile.
func (r *rests) passLocked(until time.Time) {
	r.mu.announced = until
	if r.mu.announce != nil {
		r.mu.announce(until)
	}
	if r.mu.follower != nil {
		r.mu.follower.mirror(until)
	}
}
