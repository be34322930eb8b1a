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
	queue  *Queue
	source Source
	// the earliest instant at which an entry may be due; Never from the start of a Drain until a
	// Wake or its end
	head     atomic.Int64
	paused   atomic.Bool // a Drain failed, and its retry is not yet due
	failures int         // Drains in a row that failed; touched by Run only
	round    int64       // the queue's round of the last Drain; touched by Run only
	mu       struct {
		sync.Mutex
		draining bool
		began    int64       // the head that the running Drain began with; Never when none runs
		retry    clock.Timer // set while paused
	}
}

// Wake announces an entry of this source at the instant at. Call it once Drain can see the entry.
// It costs one load unless the entry lowers the head.
func (h *Handle) Wake(at int64) {
	if h.lower(at) {
		h.queue.signal()
	}
}

// Head returns the earliest instant at which an entry of this source may be due, including entries
// of a running Drain.
func (h *Handle) Head() int64 {
	head, _ := h.undone()
	return head
}

// Remove removes the source from its queue. A running Drain continues to its end.
func (h *Handle) Remove() {
	h.queue.remove(h)
	h.stopRetry()
}

// due reports whether the source is to be drained at now.
func (h *Handle) due(now int64) bool { return h.head.Load() <= now && !h.paused.Load() }

// begin marks a Drain as running and clears the head, so that every later Wake lowers it.
func (h *Handle) begin() (head int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.draining = true
	h.mu.began = h.head.Swap(Never)
	return h.mu.began
}

// end sets the head to the result of the Drain, unless a Wake set it lower meanwhile.
func (h *Handle) end(next int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.draining = false
	h.mu.began = Never
	woken := h.head.Load()
	if invariant.Injected(invariant.LoseWake) {
		h.head.Store(next)
	}
	h.lower(next)
	invariant.CheckUnless(h.head.Load() <= min(woken, next), []invariant.Fault{invariant.LoseWake}, "a drain lost the wake for %d", woken)
}

// lower lowers the head to the instant at, and reports whether the head was later.
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

// undone returns the earliest instant of work that is not drained, and whether a Drain is running.
// While one runs, the head that it began with counts.
func (h *Handle) undone() (head int64, draining bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(h.mu.began, h.head.Load()), h.mu.draining
}

// retryLater pauses the source, twice as long with every failure in a row. The pause is in real
// time: the machine is at fault, and the clock may be frozen.
func (h *Handle) retryLater() {
	wait := min(retryFirst<<min(h.failures, 9), retryMost)
	h.failures++
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused.Store(true)
	h.mu.retry = clock.AfterFunc(wait, func() {
		h.paused.Store(false)
		h.queue.signal()
	})
}

// stopRetry ends the pause, so that the next Run begins afresh.
func (h *Handle) stopRetry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.retry != nil {
		h.mu.retry.Stop()
		h.mu.retry = nil
	}
	h.paused.Store(false)
}
