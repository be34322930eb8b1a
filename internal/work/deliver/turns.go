package deliver

import (
	"context"
	"slices"
	"sync"
)

// turns has places, each for one caller at a time. Groups of waiting callers take turns, so that
// many callers of one do not delay another. The callers of a group keep the order of their arrival.
// A group has as many turns in each round as its weight.
type turns struct {
	mu struct {
		sync.Mutex
		free    int       // free places; 0 if a caller waits
		waiting []*waiter // by round
		round   float64   // place in the rounds of the latest admitted caller that had waited
	}
}

// turn is a caller's request for a place.
type turn struct {
	group  string
	weight int // turns of the group in each round: at least 1, and may differ at each request
	// the caller has a place; it goes to the caller whose turn it is, which may be the same
	placed bool
}

// waiter is a caller that waits.
type waiter struct {
	group    string
	round    float64       // its place in the rounds
	admitted chan struct{} // closed when the caller has a place
}

func newTurns(places int) *turns {
	t := &turns{}
	t.mu.free = places
	return t
}

// take waits for a place. It returns false, and the caller has no place, if ctx is done before.
func (t *turns) take(ctx context.Context, next turn) bool {
	t.mu.Lock()
	if next.placed {
		t.mu.free++
	}
	if len(t.mu.waiting) == 0 && t.mu.free > 0 {
		t.mu.free--
		t.mu.Unlock()
		return true
	}
	w := t.waitLocked(next)
	if t.mu.free > 0 {
		t.admitLocked()
	}
	t.mu.Unlock()
	return t.await(ctx, w)
}

func (t *turns) await(ctx context.Context, w *waiter) bool {
	select {
	case <-w.admitted:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.mu.waiting, w)
	if at >= 0 {
		t.mu.waiting = slices.Delete(t.mu.waiting, at, at+1)
	}
	return at < 0 // it was admitted meanwhile
}

// waitLocked adds a caller after its group's latest: a round later, divided by the weight.
func (t *turns) waitLocked(next turn) *waiter {
	w := &waiter{group: next.group, round: t.mu.round, admitted: make(chan struct{})}
	for _, before := range t.mu.waiting {
		if before.group == next.group {
			w.round = before.round
		}
	}
	w.round += 1 / float64(next.weight)
	at := len(t.mu.waiting)
	for at > 0 && t.mu.waiting[at-1].round > w.round {
		at--
	}
	t.mu.waiting = slices.Insert(t.mu.waiting, at, w)
	return w
}

// free frees a place, for the caller whose turn it is.
func (t *turns) free() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.free++
	if len(t.mu.waiting) > 0 {
		t.admitLocked()
	}
}

// admitLocked gives a free place to the caller whose turn it is.
func (t *turns) admitLocked() {
	next := t.mu.waiting[0]
	t.mu.waiting = slices.Delete(t.mu.waiting, 0, 1)
	t.mu.round = next.round
	t.mu.free--
	close(next.admitted)
}
