package engine

import (
	"slices"
	"sync"
	"sync/atomic"
)

// stripeCount is the number of locks that the keys of the whole store share. Two writers collide by
// chance with probability 1/stripeCount; the array takes 4096 × 32 bytes.
const stripeCount = 4096

// stripe guards the items of every partition key that hashes to it.
type stripe struct {
	sync.Mutex
	// last is the number of the last commit that changed something under this stripe. The commit
	// section sets it before it applies the batch, so a reader of a change finds a number at least
	// as high.
	last atomic.Uint64
	// written is the same without the reaper's commits: those remove only what the reaper itself
	// has read.
	written atomic.Uint64
}

// stripeOf returns the stripe of a partition key, so an item collection has one stripe.
func stripeOf(table uint32, hash uint32) uint32 { return (hash ^ table*0x9E3779B1) % stripeCount }

// lockStripes locks each stripe once, in ascending order, so that two multi-key writers cannot
// deadlock. It sorts and compacts ids in place and returns them for unlockStripes.
func (e *Engine) lockStripes(ids []uint32) []uint32 {
	if len(ids) > 1 {
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	for _, id := range ids {
		e.stripes[id].Lock()
	}
	return ids
}

func (e *Engine) unlockStripes(ids []uint32) {
	for _, id := range ids {
		e.stripes[id].Unlock()
	}
}
