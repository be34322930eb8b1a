package trigger

import (
	"time"

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/pattern"
)

// plan is the behaviour of a trigger, from a mapping or a declaration.
type plan struct {
	// a mapping's UUID, or a declared trigger's name; part of the consumer's name and of the IDs of
	// deliveries
	id        string
	arn       string // the source in deliveries
	table     string // the table whose stream is read; or
	stream    string // the stream's ARN
	missed    bool   // the stream was missing when it was last read
	start     consume.Start
	target    string // ARN
	filter    *pattern.Pattern
	batch     int           // the most records per batch
	window    time.Duration // time for which a batch waits for records, by the database's clock
	parallel  int           // lanes of a shard, each with one batch at a time
	ordered   bool          // delivers the records of a key in order, and retries in place
	single    bool          // delivers each record by itself
	bisect    bool
	retries   int           // attempts after the first, or infinite
	age       time.Duration // age at which records are abandoned; 0: never
	partial   bool          // the target's answer may name failed records
	onFailure string        // ARN that receives a notice about abandoned records, or ""
	feed      *Feed         // the feed that is read, in the form of Kinesis; nil: a stream, in the form of triggers
}

// consumer returns the name of the trigger's consumer.
func (p *plan) consumer() string {
	if p.feed != nil {
		return p.id
	}
	return consumerName(p.id)
}

// GroupPrefix begins the group of a trigger's parcels; the trigger's id follows. No schedule group
// can have such a name.
const GroupPrefix = "trigger:"

// group returns the group of the trigger's parcels in metrics and dead letters.
func (p *plan) group() string {
	if p.feed != nil {
		return GroupPrefix + feedPrefix + p.feed.Table
	}
	return GroupPrefix + p.id
}

// starts maps the API's words for a starting position.
var starts = map[string]consume.Start{trimHorizon: consume.TrimHorizon, latest: consume.Latest}
