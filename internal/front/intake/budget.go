package intake

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// SmallMax is the size in bytes of the largest small body. Small ones have a part of the budget
	// that large ones cannot take.
	SmallMax = 64 << 10
	// Patience is the longest wait for room.
	Patience = 5 * time.Second
	// DefaultBudget is the usual budget of a server.
	DefaultBudget = 128 << 20
	// LeastBudget is the smallest budget: a request of 16 MB fits into the part for large ones.
	LeastBudget = 32 << 20
)

// ErrNoRoom is the error of a wait for room that was without success. The client may retry.
var ErrNoRoom = errors.New("too many large requests at once; retry later")

// Budget bounds the bytes that a server holds in memory at once. A quarter of it is for small
// pieces, the rest for larger ones. Its methods are safe for concurrent use.
type Budget struct {
	small, large *part
	refused      atomic.Int64
}

// part is the room for the pieces of one kind.
type part struct {
	*semaphore.Weighted
	size int64
	used atomic.Int64
}

func newPart(size int64) *part { return &part{Weighted: semaphore.NewWeighted(size), size: size} }

// NewBudget returns a budget of so many bytes, at least LeastBudget.
func NewBudget(size int64) *Budget {
	large := size / 4 * 3
	return &Budget{small: newPart(size - large), large: newPart(large)}
}

// Take takes room for a piece of so many bytes. If there is none it waits, for Patience at most and
// in the order of the calls. The error is ErrNoRoom, or ctx's. The caller releases the hold.
func (b *Budget) Take(ctx context.Context, bytes int64) (*Hold, error) {
	if hold := b.Try(bytes); hold != nil {
		return hold, nil
	}
	if bytes > b.large.size {
		b.refused.Add(1)
		return nil, ErrNoRoom
	}
	patient, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	of := b.part(bytes)
	if of.Acquire(patient, bytes) != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b.refused.Add(1)
		return nil, ErrNoRoom
	}
	return newHold(of, bytes), nil
}

// Try takes room without waiting. It returns nil if there is none, or if others wait for it.
func (b *Budget) Try(bytes int64) *Hold {
	of := b.part(bytes)
	if bytes > of.size || !of.TryAcquire(bytes) {
		return nil
	}
	return newHold(of, bytes)
}

// Scarce reports whether more than half of the room for pieces of this size is taken.
func (b *Budget) Scarce(bytes int64) bool {
	of := b.part(bytes)
	return of.used.Load() > of.size/2
}

func (b *Budget) part(bytes int64) *part {
	if bytes <= SmallMax {
		return b.small
	}
	return b.large
}

func newHold(of *part, bytes int64) *Hold {
	of.used.Add(bytes)
	return &Hold{of: of, bytes: bytes}
}

// Size returns the size of the budget in bytes.
func (b *Budget) Size() int64 { return b.small.size + b.large.size }

// Used returns the bytes taken at present.
func (b *Budget) Used() int64 { return b.small.used.Load() + b.large.used.Load() }

// Refused returns the number of pieces for which there was no room in time.
func (b *Budget) Refused() int64 { return b.refused.Load() }

// Hold is room taken from a budget.
type Hold struct {
	of    *part
	bytes int64
}

// Release gives the room back. Further calls do nothing, nor do calls for nil.
func (h *Hold) Release() {
	if h == nil || h.of == nil {
		return
	}
	h.of.used.Add(-h.bytes)
	h.of.Release(h.bytes)
	h.of = nil
}
