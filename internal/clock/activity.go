package clock

import (
	"context"
	"sync"
)

// Activity counts work in flight, so that a clock can be advanced only when there is none. The zero
// value is ready for use.
type Activity struct {
	mu struct {
		sync.Mutex
		count int
		idle  chan struct{} // closed when count falls to zero; nil without a waiter
	}
}

// Begin counts one more piece of work until the returned function is called. A second call of that
// function does nothing.
func (a *Activity) Begin() (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.count++
	return sync.OnceFunc(a.end)
}

func (a *Activity) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.count--
	if a.mu.count == 0 && a.mu.idle != nil {
		close(a.mu.idle)
		a.mu.idle = nil
	}
}

// Count returns the number of pieces of work in flight.
func (a *Activity) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.count
}

// Idle waits until the count has been zero at some moment since the call, or ctx is done.
func (a *Activity) Idle(ctx context.Context) error {
	a.mu.Lock()
	if a.mu.count == 0 {
		a.mu.Unlock()
		return ctx.Err()
	}
	if a.mu.idle == nil {
		a.mu.idle = make(chan struct{})
	}
	idle := a.mu.idle
	a.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
