package clock

import (
	"context"
	"sync"
)

// Activity counts what is in flight, so that a clock can be moved on only when nothing is. The zero value is ready for use.
type Activity struct {
	mu struct {
		sync.Mutex
		count int
		idle  chan struct{} // closed when count falls to zero; nil when nobody waits
	}
}

// Begin counts one thing more until the function that it returns is called; calling it again does nothing.
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

// Count is how many things are in flight.
func (a *Activity) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.count
}

// Idle waits until nothing has been in flight at some moment since the call, or ctx is done.
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
