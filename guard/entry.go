package guard

// entry is a deadline that a strategy has found.
type entry struct {
	key     key
	value   string // the TTL attribute as the item had it: the text of a number; "" where it is at in whole seconds
	version string // the version attribute as the item had it, where Options.Version is set: its JSON as the API has it; "" where it had none
	at      int64  // the deadline, in ms since the epoch
	ender   ender  // who has armed it, and is told once how it has ended; nil: nobody is told
}

// ender is who has armed entries. One that has armed many tells them apart by what they are, since a closure for each of a million costs as much as the entry.
type ender interface {
	// ended is told from any goroutine, and must not block.
	ended(e entry, as outcome)
}

// rememberer is an ender that remembers what has ended. It is told before the entry is forgotten, so that there is no moment at which a reader finds it neither armed nor over.
type rememberer interface {
	ender
	// remember is told with the lock of armed held, and before ended.
	remember(e entry, as outcome)
}

// endFunc is the ender of one entry.
type endFunc func(outcome)

func (f endFunc) ended(_ entry, as outcome) { f(as) }

// outcome is how an entry ended. An attempt that failed for a while is none: it is made again.
type outcome int

const (
	removed  outcome = iota // the item is gone, by us
	refused                 // the condition failed: it was renewed, or is gone already
	spared                  // it would have gone, but this is a dry run
	replaced                // a later arm or disarm of the same key took its place before it was due
	failed                  // the endpoint refuses it for good; Event and log say why
)
