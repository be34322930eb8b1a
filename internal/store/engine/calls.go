package engine

import "sync/atomic"

// calls counts the calls that are inside the engine, Run among them. The store must not be used while it closes, so Close waits for them.
type calls struct {
	inside atomic.Int64
	begun  atomic.Int64  // since the engine was opened
	last   chan struct{} // has a token when the last call has left since Close began
}

// enter begins a call that uses the store; it is refused once Close has begun or the store has stopped. leave ends it. Calls may be nested.
//
// A lock that callers hold for reading would do the same, but a nested call would wait for Close while Close waits for the outer one.
func (e *Engine) enter() error {
	e.calls.inside.Add(1)
	e.calls.begun.Add(1)
	// Close sets closed and then looks at inside, so either it sees this call or this call sees it.
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
		default: // it is told already
		}
	}
}

// waitCalls returns when no call is inside. It is called once closed is set, which lets none in any more.
func (e *Engine) waitCalls() {
	for e.calls.inside.Load() != 0 {
		<-e.calls.last
	}
}
