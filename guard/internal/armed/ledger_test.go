package armed

import (
	"math/rand/v2"
	"testing"
)

// A ledger finds the same slots as a map, also if all hashes are similar.
func TestLedger(t *testing.T) {
	for _, hashes := range []uint32{1, 3, 64, 1 << 20} {
		random := rand.New(rand.NewPCG(1, uint64(hashes)))
		var l ledger
		has := map[int32]uint32{}
		for range 20_000 {
			slot := int32(random.IntN(300))
			h := uint32(slot) * 2654435761 % hashes << (32 - 20)
			_, in := has[slot]
			got, found := l.find(h, func(i int32) bool { return i == slot })
			if found != in || found && got != slot {
				t.Fatalf("%d hashes: slot %d: found %t as %d; it is in: %t", hashes, slot, found, got, in)
			}
			if in && random.IntN(2) == 0 {
				l.drop(h, slot)
				delete(has, slot)
			} else if !in {
				l.add(h, slot)
				has[slot] = h
			}
			if l.n != len(has) {
				t.Fatalf("%d hashes: %d slots of %d", hashes, l.n, len(has))
			}
		}
		for slot, h := range has {
			l.drop(h, slot)
		}
		for _, cell := range l.cells {
			if cell != 0 {
				t.Fatalf("%d hashes: something is left", hashes)
			}
		}
	}
}
