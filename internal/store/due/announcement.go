package due

import "sync"

// Announcement wakes every goroutine that waits for the next event of a kind. The zero value is
// ready. To miss none, call Next, then look, then wait.
type Announcement struct {
	mu   sync.Mutex
	next chan struct{} // nil without a waiter
}

// Next returns a channel that is closed at the next event.
func (a *Announcement) Next() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == nil {
		a.next = make(chan struct{})
	}
	return a.next
}

// Announce announces an event.
func (a *Announcement) Announce() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next != nil {
		close(a.next)
		a.next = nil
	}
}
