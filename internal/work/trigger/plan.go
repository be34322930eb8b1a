package trigger

import (
	"time"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/pattern"
)

// plan is what a trigger does, wherever it was declared.
type plan struct {
	id        string // names its consumer and goes into the ids of its deliveries: a mapping's UUID, or a declared trigger's name
	arn       string // the source of its deliveries
	table     string // whose stream is read; or
	stream    string // the ARN of the stream that is
	missed    bool   // it was not there when it was last read
	start     deliver.Start
	target    string // ARN
	filter    *pattern.Pattern
	batch     int           // records of a batch
	window    time.Duration // for which records gather, by the database's clock
	parallel  int           // batches of a shard at one time: its lanes
	ordered   bool          // the records of a key are handed over in their order, and what fails is tried again in its place
	single    bool          // each record is a delivery of its own
	bisect    bool
	retries   int           // after the first attempt; infinite
	age       time.Duration // beyond which records are given up; 0: never
	partial   bool          // the target's answer may name the records that failed
	onFailure string        // ARN that is told of what was given up; may be empty
}

// GroupPrefix is what the group of a trigger's parcels begins with; its id follows. No schedule group has a name like that.
const GroupPrefix = "trigger:"

// group is that of the trigger's parcels, in metrics and dead letters.
func (p *plan) group() string { return GroupPrefix + p.id }

// starts are the words for where to begin.
var starts = map[string]deliver.Start{trimHorizon: deliver.TrimHorizon, latest: deliver.Latest}
