package engine

import "sync/atomic"

// calls counts the calls inside the engine, including Run. Close waits for them, because the store
// must not be used while it closes.
type calls struct {
	inside atomic.Int64
	items  atomic.Int64  // calls that read or write items, since the engine was opened
	last   chan struct{} // holds a token when the last call has left after Close began
}

// enter begins a call that uses the store, and leave ends it. enter returns an error once Close has
// begun or the store has stopped. Calls may be nested.
//
// A read lock would do the same, but a nested call would wait for Close while Close waits for the
// outer call.
func (e *Engine) enter() error {
	e.calls.inside.Add(1)
	// Close sets closed and then reads inside, so either Close sees this call or this call sees
	// Close.
	err := e.ready()
	if err != nil {
		e.leave()
	}
	return err
}

func (e *Engine) leave() {
	if e.calls.inside.Add(-1) == 0 && e.closed.Load() {
		select {
		case e.calls.last <- struct{}{}:
		default: // Close has its token already
		}
	}
}

// waitCalls returns when no call is inside. The caller has set closed, so no further call enters.
func (e *Engine) waitCalls() {
	for e.calls.inside.Load() != 0 {
		<-e.calls.last
	}
}
