package engine

import (
	"slices"
	"sync"
	"sync/atomic"
)

// stripeCount is how many locks the keys of the whole store share. Two writers meet on a stripe by chance as rarely as
// writers/stripeCount; the array costs 4096 × 24 bytes.
const stripeCount = 4096

// stripe guards the items of every partition key that hashes to it.
type stripe struct {
	sync.Mutex
	// last is the number of the last commit that changed something under this stripe. It is set inside the commit section,
	// before the batch is applied, so whoever has seen a change finds a number not lower than the change's.
	last atomic.Uint64
}

// stripeOf chooses by partition key, so an item collection has one stripe.
func stripeOf(table uint32, hash uint32) uint32 {
	return (hash ^ table*0x9E3779B1) % stripeCount
}

// lockStripes locks each stripe once, in ascending order, which is what keeps two multi-key writers from waiting for each other.
// It sorts and compacts ids in place and gives them back for unlockStripes.
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
