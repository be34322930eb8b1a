package guard

import "time"

// What is the kind of an event.
type What int

// Event is something that has happened.
type Event struct {
	What What
	Key  string // of the item, as JSON, if the event is about one
	// for Removed: from the deadline to the endpoint's answer. If a schedule removed the item: to the
	// time in its stream record, which has whole seconds at Amazon
	Late  time.Duration
	Read  float64 // for Consumed: read units
	Write float64 // for Consumed: write units
	Err   error   // for Failed, Throttled, Retried and BadValue
}

// The kinds of events.
const (
	Armed What = iota // a deadline is waited for
	// one is no longer, because the item was renewed, lost its deadline or was deleted
	Disarmed
	Removed   // an item was removed; Late is how long after its deadline
	Refused   // a removal was refused, because the item was renewed or gone
	Spared    // a dry run would have removed an item
	Throttled // the endpoint wanted to be asked less often
	Failed    // guard gave up a removal; Err has the reason
	BadValue  // a TTL attribute that is no number of epoch seconds; the item stays
	Consumed  // a response reported consumed units: Read and Write
	Archived  // an item was handed to the archive
	// an attempt at a removal failed, other than by throttling, and will be repeated; Err has the
	// reason
	Retried
	// an overdue item was found that the strategy did not know of; its removal is an own event
	Missed

	whatCount = iota // how many kinds there are
)
