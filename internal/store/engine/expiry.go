package engine

import "fmt"

// ExpiryMode says what becomes of an item between its deadline and its removal.
type ExpiryMode string

const (
	// ExpiryStrict hides an item from its deadline on, and removes it as soon as can be.
	ExpiryStrict ExpiryMode = ""
	// ExpiryAWS leaves an item visible and writable until it is removed, a delay after its deadline, as Amazon does.
	ExpiryAWS ExpiryMode = "aws"
)

// Expiry is how a table's items expire. It is strict where it is zero; Seed and Delay are for ExpiryAWS only, and zero in strict expiry, so that
// equal settings are equal values.
type Expiry struct {
	Mode  ExpiryMode
	Seed  uint64 // of the draws: the same seed and key give the same delay, always and everywhere
	Delay Delay  // what the delays are drawn from
}

// String names the mode, and what belongs to it.
func (x Expiry) String() string {
	if x.Mode == ExpiryStrict {
		return "strict"
	}
	return fmt.Sprintf("%s, %s, seed %d", x.Mode, x.Delay, x.Seed)
}

// removal is the instant at which an item is to be removed whose deadline is armed at now. In aws expiry it is later than the deadline by the
// key's delay, which counts from now where the deadline was past already: nothing can be found to be expired before it is written. And it is
// not before the first whole second after the deadline, since there an item expires when now > value, both in whole seconds.
func (x Expiry) removal(deadline, now Instant, key Key) Instant {
	if x.Mode != ExpiryAWS || deadline >= farthest {
		return deadline
	}
	return max(max(deadline, now)+x.Delay.of(draw(x.Seed, key)), secondAfter(deadline))
}

// farthest is the deadline from which on none is put off, some 292 million years from now: an instant does not hold more.
const farthest = Never - delayMax - 1000

// secondAfter is the first whole second after an instant.
func secondAfter(i Instant) Instant {
	into := i % 1000
	if into < 0 { // before 1970
		into += 1000
	}
	return i - into + 1000
}

// late says whether the item's removal was put off: then it is not hidden at its deadline. Only aws expiry makes such headers, and it makes
// no others, so a header says by itself how it is to be judged.
func (h header) late() bool { return h.removal != h.deadline }

// keep gives h the instant of removal of the header that it replaces, where that armed the same deadline: an item is not kept alive by being
// written again.
func (h *header) keep(old header) {
	if h.generation == old.generation && h.deadline == old.deadline {
		h.removal = old.removal
	}
}
