package mayfly

import (
	"time"

	"github.com/mayflydb/mayfly/internal/work/reminder"
	"github.com/mayflydb/mayfly/internal/work/scheduler"
	"github.com/mayflydb/mayfly/internal/work/trigger"
)

// Trigger delivers the records of a stream to a target, in batches. Name, Target, and either Table
// or Stream must be set.
type Trigger struct {
	// Name identifies the trigger; its checkpoints are stored under it. 1 to 64 letters, digits,
	// "-", "_" and ".".
	Name string

	// Table is the table whose stream is read. It may be created later, and its stream may be
	// replaced. Set either Table or Stream.
	Table string

	// Stream is the ARN of the stream that is read.
	Stream string

	// Target is the ARN or the name of a mapping in Options.Targets.
	Target string

	// Start is the position without a checkpoint: "TRIM_HORIZON" for the oldest record, or
	// "LATEST". Default: "TRIM_HORIZON".
	Start string

	// Filter has up to ten event patterns in JSON. A record passes if one of them matches it.
	// Default: all records pass.
	Filter []string

	// Batch is the most records per call. Default: 100. Range: 1 to 10,000.
	Batch int

	// Window is the time that a batch waits for more records. Default: 0. Range: 0 to 300 s.
	Window time.Duration

	// Parallel is the number of batches of one shard that run at once. Records with the same key
	// keep their order. Default: 1. Range: 1 to 1000.
	Parallel int

	// Order is "key" or "none". With "key", a failing batch delays the following batches of its
	// lane. With "none", it is retried aside. Default: "key".
	Order string

	// Per is "batch" for one delivery per batch, or "record" for one per record. Default: "batch".
	Per string

	// Bisect splits a failing batch in two. It needs Order "key" and Per "batch". Default: false.
	Bisect bool

	// Partial lets the target name the failed records in its answer. It needs Order "key" and Per
	// "batch". Default: false.
	Partial bool

	// Retries is the number of attempts after the first; -1 means no limit. Default: -1, or 185
	// with Order "none". Range: -1 to 10,000, or to 185 with Order "none".
	Retries *int

	// Age is the age at which a record is given up. Default: no limit, or 24 h with Order "none".
	// Range: 1 min to 168 h, or to 24 h with Order "none".
	Age time.Duration

	// OnFailure is the ARN or the name of a mapping that receives a notice about records that were
	// given up. They become dead letters either way. Default: no notice.
	OnFailure string

	// Disabled stops the trigger but keeps its checkpoints. Default: false.
	Disabled bool
}

// Reminder calls a target at instants that the items of a table name. Each item has its own
// reminder, which follows the item's changes and disappears with it. Name, Table, Attribute and
// Target must be set.
type Reminder struct {
	// Name identifies the rule. 1 to 64 letters, digits, "-", "_" and ".".
	Name string

	// Table is the table of the items. Its stream must have new and old images. It may be created
	// later.
	Table string

	// Attribute is the path of the attribute with the instant, such as visit.times[0]["at"]. The
	// value is a number of epoch seconds, or a string in ISO 8601.
	Attribute string

	// Zone is the IANA name of the time zone of strings that have none, such as "Europe/Berlin".
	// Default: none, and a string without a zone is refused with a warning.
	Zone string

	// Offset is added to the instant: -48h is two days earlier. Default: 0. Range: ten years either
	// way.
	Offset time.Duration

	// Target is the ARN or the name of a mapping in Options.Targets.
	Target string

	// Input is the text or JSON that the target receives, with placeholders such as <$.name> for
	// attributes of the item. Default: JSON with the rule, the instants, the key and the item.
	Input string

	// Past is "drop" or "fire": the effect of an instant that was past when the item was written.
	// Default: "drop".
	Past string

	// Retries is the number of attempts after the first. Default: 185. Range: 0 to 185.
	Retries *int

	// Age is the time after which no attempt is made. Default: 24 h. Range: 1 min to 24 h.
	Age time.Duration

	// OnFailure is the ARN or the name of a mapping that receives a copy of each dead letter. The
	// database keeps dead letters either way. Default: no copy.
	OnFailure string
}

// CatchUp selects the missed occurrences of a schedule that run. An occurrence is missed if it is
// more than a minute late.
type CatchUp string

const (
	CatchUpLast CatchUp = "last" // the latest of them
	CatchUpAll  CatchUp = "all"  // each, one after another
	CatchUpSkip CatchUp = "skip" // none
)

// Triggers, reminders and CatchUp have public structs, so that go doc shows their fields. Each
// conversion to the internal type fails to compile if the two differ.

func (o Options) triggers() []trigger.Spec {
	specs := make([]trigger.Spec, len(o.Triggers))
	for i, t := range o.Triggers {
		specs[i] = trigger.Spec(t)
	}
	return specs
}

func (o Options) reminders() []reminder.Spec {
	specs := make([]reminder.Spec, len(o.Reminders))
	for i, r := range o.Reminders {
		specs[i] = reminder.Spec(r)
	}
	return specs
}

func (o Options) catchUp() scheduler.CatchUp { return scheduler.CatchUp(o.CatchUp) }
