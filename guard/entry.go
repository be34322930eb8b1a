package guard

import "strconv"

// entry is a deadline that a strategy has found.
type entry struct {
	key   key
	value string // text of the TTL attribute; "" if it is at in whole seconds
	// API JSON of the version attribute; "" without Options.Version, or if the item had none
	version string
	at      int64 // the deadline, in ms since the epoch
	armer   armer // gets the outcome, once; may be nil
}

// text returns the TTL value, also if it was left out because it follows from the instant.
func (e entry) text() string {
	if e.value == "" {
		return strconv.FormatInt(e.at/1000, 10)
	}
	return e.value
}

// lean returns the entry without its value if that follows from the instant.
func (e entry) lean() entry {
	var room [20]byte
	if e.at%1000 == 0 && e.value == string(strconv.AppendInt(room[:0], e.at/1000, 10)) {
		e.value = ""
	}
	return e
}

// notify calls the armer with the outcome.
func (e entry) notify(how outcome) {
	if e.armer != nil {
		e.armer.finished(e, how)
	}
}

// armer arms entries and gets their outcomes. An armer of many entries distinguishes them by their
// fields: a closure for each of a million costs as much memory as the entry.
type armer interface {
	// finished is called from any goroutine, and must not block.
	finished(e entry, how outcome)
}

// rememberingArmer is an armer that keeps a list of finished entries. An entry is in the list
// before it leaves armed, so a reader always finds it in one of the two.
type rememberingArmer interface {
	armer
	// remember is called before finished, with armed.mu held.
	remember(e entry, how outcome)
}

// armerFunc is the armer of one entry.
type armerFunc func(outcome)

func (f armerFunc) finished(_ entry, how outcome) { f(how) }

// outcome is how an entry ended. A failed attempt that will be repeated is not an outcome.
type outcome int

const (
	removed  outcome = iota // guard removed the item
	refused                 // the condition failed: the item was renewed or is gone
	spared                  // a dry run would have removed the item
	replaced                // a later arm or disarm of the key came first
	// the endpoint refuses the removal permanently; Event and log have the reason
	failed
)
