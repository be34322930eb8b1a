package armed

import "hash/maphash"

// ledger finds slots by the hashes of their keys: an open hash table of numbers. A map from keys to
// numbers would hold each key's text a second time, and takes 40 bytes per entry. The ledger takes
// 13, which the garbage collector skips.
type ledger struct {
	// length: a power of two; upper half: a hash, lower half: the slot's number plus 1; 0 is empty
	cells []uint64
	n     int
}

var ledgerSeed = maphash.MakeSeed()

func hash(k Key) uint32 { return uint32(maphash.String(ledgerSeed, string(k))) }

func (l *ledger) home(cell uint64) int { return int(cell>>32) & (len(l.cells) - 1) }

// find returns the slot with the hash that match accepts: several keys may have one hash.
func (l *ledger) find(h uint32, match func(slot int32) bool) (slot int32, has bool) {
	if l.n == 0 {
		return 0, false
	}
	for c := l.home(uint64(h) << 32); l.cells[c] != 0; c = (c + 1) & (len(l.cells) - 1) {
		if uint32(l.cells[c]>>32) != h {
			continue
		}
		if slot = int32(uint32(l.cells[c])) - 1; match(slot) {
			return slot, true
		}
	}
	return 0, false
}

// add enters a slot that is not in the ledger.
func (l *ledger) add(h uint32, slot int32) {
	if l.n >= len(l.cells)/4*3 {
		before := l.cells
		l.cells = make([]uint64, max(2*len(before), 64))
		for _, cell := range before {
			if cell != 0 {
				l.place(cell)
			}
		}
	}
	l.place(uint64(h)<<32 | uint64(uint32(slot+1)))
	l.n++
}

func (l *ledger) place(cell uint64) {
	c := l.home(cell)
	for l.cells[c] != 0 {
		c = (c + 1) & (len(l.cells) - 1)
	}
	l.cells[c] = cell
}

// drop removes an existing slot, and moves up the following ones that would not be found across the
// gap.
func (l *ledger) drop(h uint32, slot int32) {
	mask := len(l.cells) - 1
	gap := l.home(uint64(h) << 32)
	for l.cells[gap] != uint64(h)<<32|uint64(uint32(slot+1)) {
		gap = (gap + 1) & mask
	}
	for c := (gap + 1) & mask; l.cells[c] != 0; c = (c + 1) & mask {
		if (c-l.home(l.cells[c]))&mask >= (c-gap)&mask {
			l.cells[gap] = l.cells[c]
			gap = c
		}
	}
	l.cells[gap] = 0
	l.n--
}
