package engine

import "fmt"

// ExpiryMode decides about an item between its deadline and its removal.
type ExpiryMode string

const (
	// ExpiryStrict hides an item from its deadline on, and removes it as soon as possible.
	ExpiryStrict ExpiryMode = ""
	// ExpiryAWS leaves an item visible and writable until its removal, a delay after its deadline,
	// as Amazon does.
	ExpiryAWS ExpiryMode = "aws"
)

// Expiry is a table's expiry setting. Its zero value is strict. Seed and Delay are for ExpiryAWS
// only and zero in strict expiry, so that equal settings are equal values.
type Expiry struct {
	Mode  ExpiryMode
	Seed  uint64 // of the draws: the same seed and key always yield the same delay
	Delay Delay  // the distribution of the delays
}

// String returns the mode with its parameters.
func (x Expiry) String() string {
	if x.Mode == ExpiryStrict {
		return "strict"
	}
	return fmt.Sprintf("%s, %s, seed %d", x.Mode, x.Delay, x.Seed)
}

// removal returns the instant of removal of an item whose deadline is armed at now. In aws expiry
// it is the key's delay after the deadline, or after now if the deadline has passed: no item can be
// found expired before it is written. It is at least the first whole second after the deadline,
// because Amazon expires an item when now > value, both in whole seconds.
func (x Expiry) removal(deadline, now Instant, key Key) Instant {
	if x.Mode != ExpiryAWS || deadline >= farthest {
		return deadline
	}
	return max(max(deadline, now)+x.Delay.forDraw(draw(x.Seed, key)), secondAfter(deadline))
}

// farthest is the first deadline without a delay, some 292 million years from now: later instants
// overflow.
const farthest = Never - delayMax - 1000

// secondAfter returns the first whole second after an instant.
func secondAfter(i Instant) Instant {
	into := i % 1000
	if into < 0 { // before 1970
		into += 1000
	}
	return i - into + 1000
}

// late reports whether the item's removal is after its deadline, so that the deadline does not hide
// it. Only aws expiry makes such headers, and no others, so a header alone shows how to judge the
// item.
func (h header) late() bool { return h.removal != h.deadline }

// inherit copies the instant of removal from the replaced header if that armed the same deadline.
// Writing an item again does not keep it alive.
func (h *header) inherit(old header) {
	if h.generation == old.generation && h.deadline == old.deadline {
		h.removal = old.removal
	}
}
