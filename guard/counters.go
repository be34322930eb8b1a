package guard

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// counts are the numbers of events, by What.
type counts [whatCount]atomic.Int64

// latenesses collects a Lateness.
type latenesses struct {
	mu struct {
		sync.Mutex
		Lateness
	}
}

func (l *latenesses) add(d time.Duration) {
	i, _ := slices.BinarySearch(LatenessBounds[:], d)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.Buckets[i]++
	l.mu.Count++
	l.mu.Sum += d
	l.mu.Max = max(l.mu.Max, d)
}

// unitsConsumed are sums of units.
type unitsConsumed struct {
	mu struct {
		sync.Mutex
		read, write float64
	}
}
