package deliver

import "time"

// Event is an occurrence that operators count.
type Event struct {
	What    What
	Group   string // the parcel's
	Target  string // name of the lane, or the ARN if there is none
	Code    string // code of the error, if any
	Attempt int    // number of the attempt; 0 if none
	// for Attempted and Delivered: time since Delivery.Time, by the database's clock
	Lateness time.Duration
}

// What is the kind of an Event. In brackets: the scheduler's metric (docs/spec/scheduler.md §8).
type What int

const (
	Attempted What = iota // an attempt begins (InvocationAttemptCount)
	Delivered             // it has succeeded
	Failed                // it has failed (TargetErrorCount)
	// the failure was a throttled target; in addition to Failed (TargetErrorThrottledCount)
	Throttled
	// a parcel was parked without an attempt because its lane was full or too slow
	// (InvocationThrottleCount)
	LaneFull
	Parked         // a parcel was parked until its next attempt
	Dropped        // a parcel has failed for good (InvocationDroppedCount)
	DeadLettered   // its dead letter is in the table
	DeadLetterSent // its dead letter has reached its target (InvocationsSentToDeadLetterCount)
	// its dead letter cannot reach its target, and stays in the table
	// (InvocationsFailedToBeSentToDeadLetterCount)
	DeadLetterFailed
	DeadLetterTruncated // its dead letter's body was cut (…_Truncated_MessageSizeExceeded)
)

var whatNames = [...]string{"attempted", "delivered", "failed", "throttled", "lane_full", "parked", "dropped", "dead_lettered", "dead_letter_sent",
	"dead_letter_failed", "dead_letter_truncated"}

// String returns a word for labels.
func (w What) String() string { return whatNames[w] }
