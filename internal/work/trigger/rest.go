package trigger

import (
	"sync"
	"time"
)

// rests combines the waits of a trigger's lanes. While all lanes with records wait for instants of
// the database's clock, the trigger rests until the first of these instants, and `advance` of the
// clock stops there.
type rests struct {
	announce func(until time.Time) // receives the instant; zero: the rest is over
	mu       struct {
		sync.Mutex
		busy      int // lanes with a worker
		waiting   map[*lane]time.Time
		announced time.Time // last passed to announce
	}
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
	var until time.Time
	if r.mu.busy == 0 {
		for _, at := range r.mu.waiting {
			if until.IsZero() || at.Before(until) {
				until = at
			}
		}
	}
	if !until.Equal(r.mu.announced) {
		r.mu.announced = until
		r.announce(until)
	}
}
