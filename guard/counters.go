package guard

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// counts are the numbers of events, by What.
type counts [whatCount]atomic.Int64

// totals are sums over events.
type totals struct {
	mu struct {
		sync.Mutex
		lateness    Lateness
		read, write float64 // units consumed
	}
}

func (t *totals) addRemoval(late time.Duration) {
	i, _ := slices.BinarySearch(LatenessBounds[:], late)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.lateness.Buckets[i]++
	t.mu.lateness.Count++
	t.mu.lateness.Sum += late
	t.mu.lateness.Max = max(t.mu.lateness.Max, late)
}

func (t *totals) addUnits(read, write float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.read += read
	t.mu.write += write
}
