package trigger

import (
	"sync"
	"time"
)

// rests sums up what the lanes of a trigger wait for: as long as all that have something wait for an instant of the database's clock, the trigger rests until the first of
// these instants, and `advance` of the clock stops there.
type rests struct {
	tell func(until time.Time) // zero: no longer
	mu   struct {
		sync.Mutex
		busy    int // lanes that work
		waiting map[*lane]time.Time
		told    time.Time
	}
}

// work counts a lane that begins (1) or ends (-1) to work.
func (r *rests) work(change int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.busy += change
	r.tellLocked()
}

// wait notes that a working lane waits for an instant, until wake is called for it.
func (r *rests) wait(l *lane, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.waiting == nil {
		r.mu.waiting = map[*lane]time.Time{}
	}
	r.mu.waiting[l] = until
	r.mu.busy--
	r.tellLocked()
}

// wake notes that a lane works again, unless that is noted.
func (r *rests) wake(l *lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, waits := r.mu.waiting[l]; !waits {
		return
	}
	delete(r.mu.waiting, l)
	r.mu.busy++
	r.tellLocked()
}

func (r *rests) tellLocked() {
	var until time.Time
	if r.mu.busy == 0 {
		for _, at := range r.mu.waiting {
			if until.IsZero() || at.Before(until) {
				until = at
			}
		}
	}
	if !until.Equal(r.mu.told) {
		r.mu.told = until
		r.tell(until)
	}
}
