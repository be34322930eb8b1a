package sink

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Lazy holds one connection. It connects at the first request; concurrent requests wait for the
// same attempt. It connects again after the connection breaks. Set Open, Broken and Shut before
// use.
type Lazy[T any] struct {
	// connects; ctx is done after Patience, or when the sink is closed
	Open func(ctx context.Context) (T, error)
	// reports whether a connection is broken; nil: never
	Broken func(T) bool
	Shut   func(T) // closes a connection

	mu struct {
		sync.Mutex
		closed  bool
		have    bool
		current T
		opening *opening[T] // nil unless an attempt is under way
	}
}

// opening is one attempt to connect. Its result may be read once done is closed.
type opening[T any] struct {
	done    chan struct{}
	cancel  context.CancelFunc
	current T
	err     error
}

// Patience is the time limit of an attempt to connect.
const Patience = 10 * time.Second

// Get returns the connection, and connects if necessary. If the attempt fails, Get returns its
// error, and the next Get makes another attempt. If ctx is done first, Get returns GivenUp, and the
// attempt goes on.
func (l *Lazy[T]) Get(ctx context.Context) (T, error) {
	current, have, o := l.look()
	if have {
		return current, nil
	}
	select {
	case <-o.done:
		return o.current, o.err
	case <-ctx.Done():
		var none T
		return none, GivenUp(ctx)
	}
}

// look returns the present connection, or the attempt to wait for, which it starts if there is
// none.
func (l *Lazy[T]) look() (current T, have bool, o *opening[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		o = &opening[T]{done: make(chan struct{}), err: ErrClosed}
		close(o.done)
		return current, false, o
	}
	if l.mu.have && (l.Broken == nil || !l.Broken(l.mu.current)) {
		return l.mu.current, true, nil
	}
	if l.mu.opening == nil {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		l.mu.opening = &opening[T]{done: make(chan struct{}), cancel: cancel}
		go l.open(ctx, l.mu.opening)
	}
	return current, false, l.mu.opening
}

// open makes one attempt. Close waits for it.
func (l *Lazy[T]) open(ctx context.Context, o *opening[T]) {
	defer o.cancel()
	l.mu.Lock()
	broken, connected := l.mu.current, l.mu.have
	l.mu.have = false
	l.mu.Unlock()
	if connected {
		l.Shut(broken)
	}
	o.current, o.err = l.Open(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case o.err == nil && l.mu.closed:
		l.Shut(o.current)
		o.err = ErrClosed
	case o.err == nil:
		l.mu.current, l.mu.have = o.current, true
	case errors.Is(o.err, context.Canceled): // ended by Close, not by the caller
		o.err = ErrClosed
	}
	l.mu.opening = nil
	close(o.done)
}

// Close closes the connection. Later requests return ErrClosed.
func (l *Lazy[T]) Close() {
	l.mu.Lock()
	l.mu.closed = true
	o := l.mu.opening
	l.mu.Unlock()
	if o != nil {
		o.cancel()
		<-o.done
	}
	l.mu.Lock()
	current, have := l.mu.current, l.mu.have
	l.mu.have = false
	l.mu.Unlock()
	if have {
		l.Shut(current)
	}
}
