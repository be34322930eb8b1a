// Package armed holds the deadlines that wait in memory for their instants.
package armed

import "strconv"

// Key is an item's key in canonical bytes.
type Key string

// Entry is a deadline.
type Entry struct {
	Key     Key
	Value   string // text of the TTL attribute; "" if it is At in whole seconds
	Version string // API JSON of the version attribute; "" if there is none
	At      int64  // the deadline, in ms since the epoch
	Armer   Armer  // gets the outcome, once; may be nil
}

// Text returns the TTL value, also if it was left out because it follows from the instant.
func (e Entry) Text() string {
	if e.Value == "" {
		return strconv.FormatInt(e.At/1000, 10)
	}
	return e.Value
}

// Lean returns the entry without its value if that follows from the instant.
func (e Entry) Lean() Entry {
	var room [20]byte
	if e.At%1000 == 0 && e.Value == string(strconv.AppendInt(room[:0], e.At/1000, 10)) {
		e.Value = ""
	}
	return e
}

// notify calls the armer with the outcome.
func (e Entry) notify(how Outcome) {
	if e.Armer != nil {
		e.Armer.Finished(e, how)
	}
}

// Armer arms entries and gets their outcomes. An armer of many entries distinguishes them by their
// fields: a closure for each of a million costs as much memory as the entry.
type Armer interface {
	// Finished is called from any goroutine, and must not block.
	Finished(e Entry, how Outcome)
}

// RememberingArmer is an armer that keeps a list of finished entries. An entry is in the list
// before it leaves the set, so a reader always finds it in one of the two.
type RememberingArmer interface {
	Armer
	// Remember is called before Finished, while the set is locked.
	Remember(e Entry, how Outcome)
}

// Func is the armer of one entry.
type Func func(Outcome)

// Finished implements Armer.
func (f Func) Finished(_ Entry, how Outcome) { f(how) }

// Outcome is how an entry ended. A failed attempt that will be repeated is not an outcome.
type Outcome int

// The outcomes.
const (
	Removed  Outcome = iota // guard removed the item
	Refused                 // the condition failed: the item was renewed or is gone
	Spared                  // a dry run would have removed the item
	Replaced                // a later arm or disarm of the key came first
	Failed                  // the endpoint refuses the removal permanently
)
