package timer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Bell wakes a goroutine that waits for changes. It keeps one ring for the next Wait. A nil Bell
// never rings.
type Bell chan struct{}

// NewBell returns a bell that has not rung.
func NewBell() Bell { return make(Bell, 1) }

// Ring wakes the waiting goroutine, or the next one that waits. It never blocks.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// Wait returns at a ring, at a change, after a real time of poll, or when ctx is done. A poll of 0
// and a nil changed mean that there is none. rang reports whether it was a ring.
func (b Bell) Wait(ctx context.Context, poll time.Duration, changed <-chan struct{}) (rang bool) {
	var polled chan struct{}
	if poll > 0 {
		polled = make(chan struct{})
		timer := clock.AfterFunc(poll, func() { close(polled) })
		defer timer.Stop()
	}
	select {
	case <-b:
		return true
	case <-polled:
	case <-changed:
	case <-ctx.Done():
	}
	return false
}

// AfterAll returns a function that calls f at its n-th call.
func AfterAll(n int, f func()) func() {
	var calls atomic.Int64
	return func() {
		if calls.Add(1) == int64(n) {
			f()
		}
	}
}
