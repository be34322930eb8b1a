package due

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
)

const (
	retryFirst = 10 * time.Millisecond
	retryMost  = 5 * time.Second
)

// Handle is a source's place in a queue.
type Handle struct {
	queue    *Queue
	source   Source
	head     atomic.Int64 // the earliest instant at which an entry may be due; Never from the start of a Drain until a Wake or its end
	paused   atomic.Bool  // a Drain failed, and it is not yet time to try again
	failures int          // Drains in a row that failed; touched by Run only
	mu       struct {
		sync.Mutex
		draining bool
		began    int64       // the head that the running Drain began with; Never when none runs
		retry    clock.Timer // set while paused
	}
}

// Wake tells that something of this source is due at the instant at, perhaps sooner than anything known. It costs one load when it is not.
// It is called after the entry can be seen by Drain.
func (h *Handle) Wake(at int64) {
	if h.lower(at) {
		h.queue.signal()
	}
}

// Head is the earliest instant at which something of this source may be due, counting what is being drained.
func (h *Handle) Head() int64 {
	head, _ := h.undone()
	return head
}

// Remove takes the source out of its queue. A Drain that is running goes on to its end.
func (h *Handle) Remove() {
	h.queue.remove(h)
	h.stopRetry()
}

// due reports whether the source is to be drained at now.
func (h *Handle) due(now int64) bool { return h.head.Load() <= now && !h.paused.Load() }

// begin marks a Drain as running and forgets the head, so that any Wake from here on stands out against it.
func (h *Handle) begin() (head int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.draining = true
	h.mu.began = h.head.Swap(Never)
	return h.mu.began
}

// end puts the head where the Drain says, unless a Wake meanwhile put it lower.
func (h *Handle) end(next int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.draining = false
	h.mu.began = Never
	if invariant.Injected(invariant.LoseWake) {
		h.head.Store(next)
	}
	h.lower(next)
}

// lower puts the head at the instant at unless it is there or before, and reports whether it did.
func (h *Handle) lower(at int64) bool {
	for {
		head := h.head.Load()
		if at >= head {
			return false
		}
		if h.head.CompareAndSwap(head, at) {
			return true
		}
	}
}

// undone is the earliest instant at which there may be something left to do, and whether a Drain is running.
func (h *Handle) undone() (head int64, draining bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(h.mu.began, h.head.Load()), h.mu.draining
}

// retryLater leaves the source alone for a while of real time, twice as long with every failure in a row: what fails is the machine,
// and the clock may be frozen.
func (h *Handle) retryLater() {
	wait := retryMost
	if shift := h.failures; shift < 9 {
		wait = min(retryFirst<<shift, retryMost)
	}
	h.failures++
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused.Store(true)
	h.mu.retry = clock.AfterFunc(wait, func() {
		h.paused.Store(false)
		h.queue.signal()
	})
}

// stopRetry ends the pause early, so that the next Run begins afresh.
func (h *Handle) stopRetry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.retry != nil {
		h.mu.retry.Stop()
		h.mu.retry = nil
	}
	h.paused.Store(false)
}
